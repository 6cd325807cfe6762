/* SPDX-License-Identifier: Apache-2.0 */
/* snap (docs/NUMERICS.md, section 2) of a product without a branch: with flush to zero on, y * 2**-86 is 0 just where |y| is below
 * 2**-40, and multiplying back is exact. The sum with +0.0 makes a flushed -0.0 positive. Flushing takes nothing else: what is
 * below 2**-126 in these kernels is a factor of a y below 2**-40.
 */
#define DOWN s12
#define UP s13

    /* Sets DOWN, UP and flush to zero; the register `saved` is what fp_leave restores. */
    .macro fp_enter saved, temporary
    mov \temporary, #0x14800000
    vmov DOWN, \temporary
    mov \temporary, #0x6a800000
    vmov UP, \temporary
    vmrs \saved, fpscr
    orr \temporary, \saved, #(1 << 24)
    vmsr fpscr, \temporary
    .endm

    .macro fp_leave saved
    vmsr fpscr, \saved
    .endm

    /* r6!: four results, from the sums in s0-s3. s4-s7 are the rows' scales, s14 that of x; the stack begins with four zeros. */
    .macro store_four
    vldm sp, {s8-s11}
    vmul.f32 s4, s4, s14
    vmul.f32 s5, s5, s14
    vmul.f32 s6, s6, s14
    vmul.f32 s7, s7, s14
    vmul.f32 s0, s0, s4
    vmul.f32 s1, s1, s5
    vmul.f32 s2, s2, s6
    vmul.f32 s3, s3, s7
    vmul.f32 s0, s0, DOWN
    vmul.f32 s1, s1, DOWN
    vmul.f32 s2, s2, DOWN
    vmul.f32 s3, s3, DOWN
    vfma.f32 s8, s0, UP
    vfma.f32 s9, s1, UP
    vfma.f32 s10, s2, UP
    vfma.f32 s11, s3, UP
    vstm r6!, {s8-s11}
    .endm
