/* SPDX-License-Identifier: Apache-2.0 */
/* void colibri_q4_sums_armv7m(int32_t sums[8], const uint8_t *weights, const int32_t *x, uint32_t n_units)
 *
 * sums[r] = sum over groups of 32 columns of multiplier[r] * (sum of q[r][i] * x[i]), for the eight rows of a block and 8 * n_units
 * columns. The last group may be shorter.
 *
 * A word of weights is a column of the eight rows, w + 8 a digit of 16. Masks leave rows k and k + 4 in halfwords of their own, so that
 * one product sums both: A[k] = S[k] + 2**16 S[k + 4], for k = 1, 2, 3; the word itself gives R = A0 + 2**4 A1 + 2**8 A2 + 2**12 A3, and
 * that A0. BOUND: 32 columns * 7 * 127 < 2**15. The sums begin with what takes the eights off again: the four words before each group
 * of x. 0.97 instructions a product.
 */
#include "model_config.h"

#include "colibri/names.h"

#if COLIBRI_USE_Q4

    .syntax unified
    .thumb

    .macro column w, x
    mla r2, \w, \x, r2
    and r12, lr, \w, lsr #4
    mla r3, r12, \x, r3
    and r12, lr, \w, lsr #8
    mla r4, r12, \x, r4
    and \w, lr, \w, lsr #12
    mla r5, \w, \x, r5
    .endm

#define UNIT_BYTES 248 /* eight columns: 62 instructions */
    .macro unit
    .rept 2
    ldm r0!, {r6-r9}
    ldrd r10, r11, [r1], #8
    column r6, r10
    column r7, r11
    ldrd r10, r11, [r1], #8
    column r8, r10
    column r9, r11
    .endr
    .endm

    /* Two rows' sums, times their multipliers: sums[row] and sums[row + 4], of which r12 holds the multipliers by bytes. */
    .macro weigh a, row, m0, m4
    sxth r10, \a
    sub r11, \a, r10
    ldr r9, [r8, #4 * \row]
    ubfx lr, \m0, #8 * \row, #8
    mla r9, r10, lr, r9
    str r9, [r8, #4 * \row]
    asr r11, r11, #16
    ldr r9, [r8, #4 * \row + 16]
    ubfx lr, \m4, #8 * \row, #8
    mla r9, r11, lr, r9
    str r9, [r8, #4 * \row + 16]
    .endm

#define X_END 0
#define GROUP_END 4
#define LAST_ENTRY 8
#define SUMS 16
    .section .text.colibri_q4_sums_armv7m, "ax", %progbits
    .balign 4
    .global colibri_q4_sums_armv7m
    .type colibri_q4_sums_armv7m, %function
    .thumb_func
colibri_q4_sums_armv7m:
    push {r0, r4-r11, lr}
    sub sp, sp, #16
    movs r4, #0
    movs r5, #0
    movs r6, #0
    movs r7, #0
    stm r0!, {r4-r7}
    stm r0!, {r4-r7}
    mov r0, r1
    mov r1, r2
    subs r3, r3, #1
    lsrs r4, r3, #2                     /* groups before the last */
    add r5, r1, r3, lsl #5
    adds r5, r5, #48
    add r5, r5, r4, lsl #4
    str r5, [sp, #X_END]
    and r3, r3, #1                      /* the loop has two units */
    adds r3, r3, #1
    movs r5, #UNIT_BYTES
    mul r3, r3, r5
    adr.w r5, .Lunits_end
    subs r5, r5, r3
    adds r5, r5, #1                     /* Thumb */
    str r5, [sp, #LAST_ENTRY]

.Lgroup:
    ldm r1!, {r2-r5}                    /* R, A1, A2, A3 */
    mov lr, #0x000f000f
    add r6, r1, #128
    ldr r7, [sp, #X_END]
    cmp r6, r7
    bhi .Lshort_group
    str r6, [sp, #GROUP_END]
.Lunits:
    .rept 2
    unit
    .endr
.Lunits_end:
    ldr r6, [sp, #GROUP_END]
    cmp r1, r6
    bne .Lunits
    sub r2, r2, r3, lsl #4
    sub r2, r2, r4, lsl #8
    sub r2, r2, r5, lsl #12             /* A0 */
    ldm r0!, {r6, r7}                   /* multipliers */
    ldr r8, [sp, #SUMS]
    weigh r2, 0, r6, r7
    weigh r3, 1, r6, r7
    weigh r4, 2, r6, r7
    weigh r5, 3, r6, r7
    ldr r6, [sp, #X_END]
    cmp r1, r6
    bne .Lgroup
    add sp, sp, #20
    pop {r4-r11, pc}

.Lshort_group:
    str r7, [sp, #GROUP_END]
    ldr r6, [sp, #LAST_ENTRY]
    bx r6
    .size colibri_q4_sums_armv7m, . - colibri_q4_sums_armv7m

#endif

    .section .note.GNU-stack, "", %progbits
