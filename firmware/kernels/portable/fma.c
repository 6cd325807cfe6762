/* SPDX-License-Identifier: Apache-2.0 */
/* binary32 fma in integers, for cores without the instruction: every bit of IEEE-754 except which NaN.
 *
 * The product (48 bits) and the addend stand in 64 bits as two words, top bit at 62, so that both stay exact: 15 bits below a
 * product's last take what the smaller operand loses when it is shifted, and the last of them is sticky. Words, because 64-bit
 * shifts and products call libgcc on several cores. The operands' order decides by exponent; after a subtraction of equal
 * exponents the sign may turn.
 *
 * Nearly all calls have normal operands and a normal result, and take a short way of their own, half the instructions of the general
 * one. It leaves a product below 2 with its top bit at 61: nothing needs it at 62, and the shift is saved.
 */
#include "../arith.h"

#if !COLIBRI_ISA_FMA

typedef struct colibri_wide {
    uint32_t high;
    uint32_t low;
} colibri_wide_t;

/* Right by n, the lost bits or-ed into the last. */
static colibri_wide_t shift_right_sticky(colibri_wide_t w, uint32_t n)
{
    colibri_wide_t out = {0, (w.high | w.low) != 0};
    if (n == 0) {
        return w;
    }
    if (n < 32) {
        out.high = w.high >> n;
        out.low = w.high << (32 - n) | w.low >> n | (w.low << (32 - n) != 0);
    } else if (n == 32) {
        out.low = w.high | (w.low != 0);
    } else if (n < 64) {
        out.low = w.high >> (n - 32) | ((w.high << (64 - n) | w.low) != 0);
    }
    return out;
}

static colibri_wide_t shift_left(colibri_wide_t w, uint32_t n)
{
    colibri_wide_t out = {w.low << (n & 31), 0};
    if (n == 0) {
        return w;
    }
    if (n < 32) {
        out.high = w.high << n | w.low >> (32 - n);
        out.low = w.low << n;
    }
    return out;
}

/* Zero bits above the highest one; value is not 0. */
static inline uint32_t leading_zeros(uint32_t value)
{
#if COLIBRI_ISA_CLZ
    return (uint32_t)__builtin_clz(value);
#else
    uint32_t n = 0;
    for (uint32_t step = 16; step != 0; step >>= 1) {
        if (value >> (32 - step) == 0) {
            n += step;
            value <<= step;
        }
    }
    return n;
#endif
}

/* A finite magnitude as significand (bit 23 set, unless 0) and exponent: significand * 2**(exponent - 150). */
static uint32_t unpack(uint32_t magnitude, int32_t *exponent)
{
    uint32_t significand = magnitude & 0x7fffffu;
    *exponent = (int32_t)(magnitude >> 23);
    if (*exponent != 0) {
        return significand | 0x800000u;
    }
    *exponent = 1;
    if (significand != 0) {
        uint32_t shift = leading_zeros(significand) - 8;
        significand <<= shift;
        *exponent -= (int32_t)shift;
    }
    return significand;
}

/* 24 by 24 bits, the top bit moved to bit 62. */
static colibri_wide_t product(uint32_t a, uint32_t b, int32_t *exponent)
{
    uint32_t a_low = a & 0xfffu;
    uint32_t a_high = a >> 12;
    uint32_t b_low = b & 0xfffu;
    uint32_t b_high = b >> 12;
    uint32_t low = a_low * b_low;
    uint32_t middle = a_low * b_high + a_high * b_low + (low >> 12);
    uint32_t high = a_high * b_high + (middle >> 12); /* product >> 24 */
    colibri_wide_t w = {high >> 8, high << 24 | (middle & 0xfffu) << 12 | (low & 0xfffu)};
    uint32_t top = w.high >> 15; /* 1 where bit 47 is set, else bit 46 */
    *exponent += (int32_t)top;
    return shift_left(w, 16 - top);
}

/* Round w, with bit 63 its top, to the value w * 2**(exponent - 190) and pack it. */
static float pack(uint32_t sign, colibri_wide_t w, int32_t exponent)
{
    uint32_t word = w.high | (w.low != 0);
    if (exponent >= 255) {
        return colibri_from_bits(sign | 0x7f800000u);
    }
    if (exponent <= 0) { /* subnormal */
        uint32_t shift = (uint32_t)(1 - exponent);
        word = shift < 32 ? word >> shift | (word << (32 - shift) != 0) : 1u;
        exponent = 1;
    }
    uint32_t rest = word & 0xffu;
    uint32_t significand = word >> 8;
    significand += (uint32_t)(rest > 0x80u) | ((uint32_t)(rest == 0x80u) & significand);
    /* The implicit bit adds one to the exponent, and so does a carry out of the significand, up to infinity. */
    return colibri_from_bits(sign | (((uint32_t)(exponent - 1) << 23) + significand));
}

/* Every operand and every result. */
static COLIBRI_NOINLINE float fma_any(float a, float b, float c)
{
    const uint32_t infinity = 0x7f800000u;
    uint32_t a_mag = colibri_magnitude(a);
    uint32_t b_mag = colibri_magnitude(b);
    uint32_t c_mag = colibri_magnitude(c);
    uint32_t p_sign = (colibri_bits(a) ^ colibri_bits(b)) & 0x80000000u;
    uint32_t c_sign = colibri_bits(c) & 0x80000000u;

    if (a_mag >= infinity || b_mag >= infinity || c_mag >= infinity) {
        uint32_t p_infinite = a_mag == infinity || b_mag == infinity;
        if (a_mag > infinity || b_mag > infinity || c_mag > infinity || (p_infinite && (a_mag == 0 || b_mag == 0)) ||
            (p_infinite && c_mag == infinity && p_sign != c_sign)) {
            return colibri_from_bits(0x7fc00000u);
        }
        return colibri_from_bits(p_infinite ? p_sign | infinity : c_sign | infinity);
    }
    if (a_mag == 0 || b_mag == 0) {
        if (c_mag == 0) {
            return colibri_from_bits(p_sign & c_sign);
        }
        return c;
    }

    int32_t a_exponent;
    int32_t b_exponent;
    int32_t c_exponent;
    uint32_t a_sig = unpack(a_mag, &a_exponent);
    uint32_t b_sig = unpack(b_mag, &b_exponent);
    uint32_t c_sig = unpack(c_mag, &c_exponent);

    /* Both as w * 2**(exponent - 189), top bit at 62. */
    int32_t exponent = a_exponent + b_exponent - 127;
    colibri_wide_t large = product(a_sig, b_sig, &exponent);
    colibri_wide_t small = {c_sig << 7, 0};
    uint32_t sign = p_sign;
    if (c_sig == 0) {
        c_exponent = exponent;
    }
    int32_t distance = exponent - c_exponent;
    if (distance < 0) {
        colibri_wide_t swap = large;
        large = small;
        small = swap;
        sign = c_sign;
        exponent = c_exponent;
        distance = -distance;
    }
    small = shift_right_sticky(small, (uint32_t)distance);

    colibri_wide_t sum;
    if (p_sign == c_sign) {
        sum.low = large.low + small.low;
        sum.high = large.high + small.high + (uint32_t)(sum.low < small.low);
    } else {
        if (large.high < small.high || (large.high == small.high && large.low < small.low)) {
            colibri_wide_t swap = large; /* only where the exponents are equal */
            large = small;
            small = swap;
            sign ^= 0x80000000u;
        }
        sum.low = large.low - small.low;
        sum.high = large.high - small.high - (uint32_t)(large.low < small.low);
        if ((sum.high | sum.low) == 0) {
            return 0.0f;
        }
    }

    uint32_t shift = sum.high != 0 ? leading_zeros(sum.high) : 32 + leading_zeros(sum.low);
    return pack(sign, shift_left(sum, shift), exponent + 1 - (int32_t)shift);
}

/* 24 by 24 bits, both with bit 23 set: the top bit at 61 or 62. */
static inline colibri_wide_t product_short(uint32_t a, uint32_t b)
{
#if COLIBRI_ISA_WIDE_PRODUCT
    uint64_t p = (uint64_t)(a << 8) * (b << 7);
    colibri_wide_t w = {(uint32_t)(p >> 32), (uint32_t)p};
#else
    uint32_t a_low = a & 0xfffu;
    uint32_t a_high = a >> 12;
    uint32_t b_low = b & 0xfffu;
    uint32_t b_high = b >> 12;
    uint32_t low = a_low * b_low;
    uint32_t middle = a_low * b_high + a_high * b_low + (low >> 12);
    uint32_t high = a_high * b_high + (middle >> 12); /* product >> 24 */
    colibri_wide_t w = {high << 7 | (middle & 0xfffu) >> 5, middle << 27 | (low & 0xfffu) << 15};
#endif
    return w;
}

/* As unsigned numbers, 1 <= biased exponent <= 254. */
static inline uint32_t is_normal(uint32_t exponent)
{
    return exponent - 1 < 254;
}

float colibri_fma_portable(float a, float b, float c)
{
    uint32_t a_bits = colibri_bits(a);
    uint32_t b_bits = colibri_bits(b);
    uint32_t c_bits = colibri_bits(c);
    uint32_t a_exponent = a_bits >> 23 & 0xffu;
    uint32_t b_exponent = b_bits >> 23 & 0xffu;
    uint32_t c_exponent = c_bits >> 23 & 0xffu;
    if (!is_normal(a_exponent) || !is_normal(b_exponent) || !is_normal(c_exponent)) {
        return fma_any(a, b, c);
    }

    /* Both as w * 2**(exponent - 189), c's top bit at 62, the product's there or below. */
    colibri_wide_t p = product_short((a_bits & 0x7fffffu) | 0x800000u, (b_bits & 0x7fffffu) | 0x800000u);
    uint32_t c_high = (c_bits << 7 & 0x3fffffffu) | 0x40000000u;
    uint32_t c_low;
    int32_t exponent = (int32_t)(a_exponent + b_exponent) - 126;
    int32_t distance = exponent - (int32_t)c_exponent;
    if (distance >= 0) {
        uint32_t n = (uint32_t)distance;
        if (n < 32) {
            c_low = c_high << 1 << (31 - n); /* exact */
            c_high >>= n;
        } else if (n < 64) {
            c_low = c_high >> (n - 32) | (c_high << 1 << (63 - n) != 0);
            c_high = 0;
        } else {
            c_low = 1;
            c_high = 0;
        }
    } else {
        uint32_t n = (uint32_t)-distance;
        exponent = (int32_t)c_exponent;
        c_low = 0;
        if (n < 32) {
            p.low = p.low >> n | p.high << 1 << (31 - n) | (p.low << 1 << (31 - n) != 0);
            p.high >>= n;
        } else if (n < 64) {
            p.low = p.high >> (n - 32) | ((p.high << 1 << (63 - n) | p.low) != 0);
            p.high = 0;
        } else {
            p.low = 1;
            p.high = 0;
        }
    }

    uint32_t sign = a_bits ^ b_bits;
    if ((int32_t)(sign ^ c_bits) >= 0) {
        c_low += p.low;
        c_high += p.high + (uint32_t)(c_low < p.low);
    } else {
        uint32_t borrow = p.low < c_low;
        c_low = p.low - c_low;
        c_high = p.high - c_high - borrow;
        if ((int32_t)c_high < 0) {
            sign = ~sign;
            c_high = ~c_high + (uint32_t)(c_low == 0);
            c_low = 0u - c_low;
        }
    }
    if (c_high == 0) {
        return fma_any(a, b, c); /* 0, or nearly all cancelled */
    }
    exponent++;
#if COLIBRI_ISA_CLZ
    uint32_t shift = leading_zeros(c_high);
    c_high = c_high << shift | c_low >> 1 >> (31 - shift);
    c_low <<= shift;
    exponent -= (int32_t)shift;
#else
    while (c_high >> 31 == 0) { /* seldom more than twice: only where much is cancelled */
        c_high = c_high << 1 | c_low >> 31;
        c_low <<= 1;
        exponent--;
    }
#endif
    if (!is_normal((uint32_t)exponent)) {
        return fma_any(a, b, c);
    }
    uint32_t significand = c_high >> 8;
    uint32_t rest = c_high << 24 | (c_low != 0); /* what is rounded: top bit the first lost, last bit sticky */
    significand += rest > 0x80000000u || (rest == 0x80000000u && (significand & 1u) != 0);
    /* The implicit bit adds one to the exponent, and so does a carry out of the significand, up to infinity. */
    return colibri_from_bits((sign & 0x80000000u) | (((uint32_t)(exponent - 1) << 23) + significand));
}

#endif
