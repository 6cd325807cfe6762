/* SPDX-License-Identifier: Apache-2.0 */
/* Single operations of docs/NUMERICS.md, sections 1 and 2, without a branch.
 *
 * Selections are masks made from the borrow of a subtraction, because compilers turn ?: into branches on cores without a
 * conditional move (RISC-V), and then the time depends on the data. clang does so with masks too, unless they are hidden from it.
 */
#ifndef COLIBRI_ARITH_H
#define COLIBRI_ARITH_H

#include "coefficients.h"
#include "isa.h"

static inline uint32_t colibri_bits(float value)
{
    union {
        float f;
        uint32_t u;
    } word;
    word.f = value;
    return word.u;
}

static inline float colibri_from_bits(uint32_t bits)
{
    union {
        float f;
        uint32_t u;
    } word;
    word.u = bits;
    return word.f;
}

/* Exact to the last bit on every core, subnormals, infinities and NaN included; see portable/fma.c and portable/sqrt.c. */
float colibri_fma_portable(float a, float b, float c);
float colibri_sqrt_portable(float value);

/* a * b + c with one rounding. */
static inline float colibri_fma(float a, float b, float c)
{
#if COLIBRI_ISA_FMA
    return __builtin_fmaf(a, b, c);
#else
    return colibri_fma_portable(a, b, c);
#endif
}

static inline float colibri_sqrt(float value)
{
#if COLIBRI_ISA_SQRT
    return __builtin_sqrtf(value);
#else
    return colibri_sqrt_portable(value);
#endif
}

/* All ones where bit is 1, zero where it is 0. */
static inline uint32_t colibri_mask_of_bit(uint32_t bit)
{
    return colibri_hide(0u - bit);
}

/* All ones where a < b, else zero. MUST: a, b < 2**31. */
static inline uint32_t colibri_mask_below(uint32_t a, uint32_t b)
{
    return colibri_mask_of_bit((a - b) >> 31);
}

/* The same for any a and b. */
static inline uint32_t colibri_mask_below_u32(uint32_t a, uint32_t b)
{
    return colibri_mask_of_bit(((~a & b) | ((~a | b) & (a - b))) >> 31);
}

/* All ones where a == b, else zero. */
static inline uint32_t colibri_mask_equal(uint32_t a, uint32_t b)
{
    uint32_t difference = a ^ b;
    return ~colibri_mask_of_bit((difference | (0u - difference)) >> 31);
}

/* The bits where mask is all ones, else otherwise. */
static inline uint32_t colibri_select(uint32_t mask, uint32_t bits, uint32_t otherwise)
{
    return otherwise ^ ((bits ^ otherwise) & mask);
}

static inline uint32_t colibri_magnitude(float value)
{
    return colibri_bits(value) & 0x7fffffffu;
}

/* +0.0 where |value| < 2**-40. */
static inline float colibri_snap(float value)
{
    uint32_t bits = colibri_bits(value);
    return colibri_from_bits(bits & ~colibri_mask_below(bits & 0x7fffffffu, COLIBRI_SNAP_BITS));
}

/* A number that orders as the float does, for finite values without -0.0; never 0. */
static inline uint32_t colibri_order_key(float value)
{
    uint32_t bits = colibri_bits(value);
    return bits ^ (colibri_mask_of_bit(bits >> 31) | 0x80000000u);
}

static inline float colibri_from_order_key(uint32_t key)
{
    return colibri_from_bits(key ^ (~colibri_mask_of_bit(key >> 31) | 0x80000000u));
}

/* value rounded to nearest even, as rint + 0x1.8p23: its low bits are the integer in two's complement. |value| <= 2**22. */
#define COLIBRI_RINT_MAGIC 0x1.8p23f

#endif
