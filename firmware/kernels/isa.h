/* SPDX-License-Identifier: Apache-2.0 */
/* What this compiler may use of this core. With select.c the only file that tests instruction set macros. */
#ifndef COLIBRI_ISA_H
#define COLIBRI_ISA_H

#include "colibri/config.h"

/* COLIBRI_ISA_FMA, _SQRT: binary32 fma and square root are one instruction each. */
#if defined(__GNUC__) && !COLIBRI_SOFT_FMA
#if (defined(__ARM_FEATURE_FMA) && defined(__ARM_FP) && (__ARM_FP & 4)) || defined(__aarch64__) || \
    (defined(__riscv_flen) && __riscv_flen >= 32)
#define COLIBRI_ISA_FMA 1
#define COLIBRI_ISA_SQRT 1
#elif defined(__x86_64__) || (defined(__i386__) && defined(__SSE_MATH__))
#if defined(__FMA__)
#define COLIBRI_ISA_FMA 1
#else
#define COLIBRI_ISA_FMA 0
#endif
#define COLIBRI_ISA_SQRT 1
#else
#define COLIBRI_ISA_FMA 0
#define COLIBRI_ISA_SQRT 0
#endif
#else
#define COLIBRI_ISA_FMA 0
#define COLIBRI_ISA_SQRT 0
#endif

/* COLIBRI_ISA_CLZ: leading zeros are one instruction. COLIBRI_ISA_WIDE_PRODUCT: so, or nearly, is a product of 64 bits. Elsewhere
 * both are calls of libgcc. */
#if defined(__GNUC__) && (defined(__ARM_FEATURE_CLZ) || defined(__x86_64__) || defined(__riscv_zbb))
#define COLIBRI_ISA_CLZ 1
#else
#define COLIBRI_ISA_CLZ 0
#endif
#if defined(__ARM_FEATURE_CLZ) || defined(__x86_64__) || defined(__riscv_mul)
#define COLIBRI_ISA_WIDE_PRODUCT 1
#else
#define COLIBRI_ISA_WIDE_PRODUCT 0
#endif

/* value, of which the compiler knows nothing any more. Where a core has no conditional select, clang recognises a mask made from a
 * borrow and branches on it; on Arm and AArch64 it selects, and hiding the mask there would only cost instructions.
 */
static inline uint32_t colibri_hide(uint32_t value)
{
#if defined(__clang__) && !defined(__arm__) && !defined(__aarch64__)
    __asm__("" : "+r"(value));
#endif
    return value;
}

/* COLIBRI_ISA_ARMV7M: Cortex-M3 and all above it: Thumb-2 on 32 bits. */
#if defined(__thumb2__) && defined(__ARM_ARCH) && __ARM_ARCH >= 7
#define COLIBRI_ISA_ARMV7M 1
#else
#define COLIBRI_ISA_ARMV7M 0
#endif

/* COLIBRI_ISA_DSP: Cortex-M4, M7, and M33 with the DSP extension: two 16-bit products an instruction, and binary32. */
#if defined(__ARM_FEATURE_DSP) && defined(__thumb2__) && defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__aarch64__)
#define COLIBRI_ISA_DSP 1
#else
#define COLIBRI_ISA_DSP 0
#endif

/* COLIBRI_ISA_MVE: vectors of 16 bytes, binary32 among them (Cortex-M55). */
#if defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2)
#define COLIBRI_ISA_MVE 1
#else
#define COLIBRI_ISA_MVE 0
#endif

/* The floating-point control register. colibri_fp_enter saves it and sets round to nearest even, no flush to zero, no default
 * NaN, no traps; colibri_fp_leave restores it, exception flags included. The "memory" clobbers keep the computation, which
 * loads and stores the state, between the two. With no FPU there is nothing to do.
 */
typedef struct colibri_fp_control {
    uintptr_t saved;
} colibri_fp_control_t;

#if defined(__GNUC__) && defined(__ARM_FP) && !defined(__aarch64__)
static inline colibri_fp_control_t colibri_fp_enter(void)
{
    colibri_fp_control_t control;
    uintptr_t wanted = 0;
#if defined(__ARM_FEATURE_MVE)
    wanted = 0x40000u; /* LTPSIZE = 4: no tail predication left over; the reset value */
#endif
    __asm__ volatile("vmrs %0, fpscr\n\tvmsr fpscr, %1" : "=&r"(control.saved) : "r"(wanted) : "memory");
    return control;
}

static inline void colibri_fp_leave(colibri_fp_control_t control)
{
    __asm__ volatile("vmsr fpscr, %0" : : "r"(control.saved) : "memory");
}
#elif defined(__GNUC__) && defined(__aarch64__)
static inline colibri_fp_control_t colibri_fp_enter(void)
{
    colibri_fp_control_t control;
    uint64_t fpcr;
    uint64_t fpsr;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr\n\tmsr fpcr, xzr" : "=&r"(fpcr), "=&r"(fpsr) : : "memory");
    control.saved = (uintptr_t)(fpcr | fpsr << 32);
    return control;
}

static inline void colibri_fp_leave(colibri_fp_control_t control)
{
    uint64_t fpcr = (uint64_t)control.saved & 0xffffffffu;
    uint64_t fpsr = (uint64_t)control.saved >> 32;
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(fpcr), "r"(fpsr) : "memory");
}
#elif defined(__GNUC__) && defined(__riscv_flen)
static inline colibri_fp_control_t colibri_fp_enter(void)
{
    colibri_fp_control_t control;
    __asm__ volatile("fscsr %0, zero" : "=r"(control.saved) : : "memory");
    return control;
}

static inline void colibri_fp_leave(colibri_fp_control_t control)
{
    __asm__ volatile("fscsr zero, %0" : : "r"(control.saved) : "memory");
}
#elif defined(__GNUC__) && (defined(__x86_64__) || defined(__SSE_MATH__))
static inline colibri_fp_control_t colibri_fp_enter(void)
{
    colibri_fp_control_t control;
    uint32_t saved;
    uint32_t wanted = 0x1f80u; /* all exceptions masked, round to nearest, no FTZ, no DAZ */
    __asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "=m"(saved) : "m"(wanted) : "memory");
    control.saved = saved;
    return control;
}

static inline void colibri_fp_leave(colibri_fp_control_t control)
{
    uint32_t saved = (uint32_t)control.saved;
    __asm__ volatile("ldmxcsr %0" : : "m"(saved) : "memory");
}
#else
static inline colibri_fp_control_t colibri_fp_enter(void)
{
    colibri_fp_control_t control = {0};
    return control;
}

static inline void colibri_fp_leave(colibri_fp_control_t control)
{
    (void)control;
}
#endif

#if defined(__GNUC__)
#define COLIBRI_NOINLINE __attribute__((noinline))
#else
#define COLIBRI_NOINLINE
#endif

#endif
