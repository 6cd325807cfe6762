/* SPDX-License-Identifier: Apache-2.0 */
/* void colibri_q8_sums_armv7m(int32_t sums[4], const uint8_t *weights, const int32_t *x, uint32_t n_units)
 *
 * sums[r] = sum of q[r][i] * x[i] for the four rows of a block and the 8 * n_units columns of a segment, 1 <= n_units <= 64.
 *
 * A word of weights is a column of the four rows, u = q + 128 a byte each. Three products find the four sums S of its rows:
 *     R, by the word          S0 + 2**8 S1 + 2**16 S2 + 2**24 S3     modulo 2**32
 *     Q, by its halves swapped      S2 + 2**8 S3 + 2**16 S0 + 2**24 S1     modulo 2**32
 *     P, by its middle bytes        S1 + 2**8 S2
 * which begin with what takes the 128 off again: the three words before x. BOUND: 512 columns * 128 * 127 < 2**23, so that 24 bits
 * say what a sum is, and what is left of each equation then says the next. 1.4 instructions a product; a byte at a time it is 2.2.
 * No product of 64 bits: its time depends on the data on a Cortex-M3.
 */
#include "model_config.h"

#include "colibri/names.h"

#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP

    .syntax unified
    .thumb

    .macro column w, x
    mla r2, \w, \x, r2
    ubfx lr, \w, #8, #16
    mla r4, lr, \x, r4
    ror \w, \w, #16
    mla r3, \w, \x, r3
    .endm

#define UNIT_BYTES 176 /* eight columns: 44 instructions */
    .macro unit
    .rept 2
    ldm r0!, {r5-r8}
    ldm r1!, {r9-r12}
    column r5, r9
    column r6, r10
    column r7, r11
    column r8, r12
    .endr
    .endm

    .section .text.colibri_q8_sums_armv7m, "ax", %progbits
    .balign 4
    .global colibri_q8_sums_armv7m
    .type colibri_q8_sums_armv7m, %function
    .thumb_func
colibri_q8_sums_armv7m:
    push {r0, r4-r11, lr}
    sub sp, sp, #8
    mov r0, r1
    mov r1, r2
    /* The first turn of the loop takes what is no multiple of its four units. */
    add r12, r1, r3, lsl #5
    adds r12, r12, #12
    str r12, [sp]                       /* the end of x */
    subs r3, r3, #1
    and r3, r3, #3
    adds r3, r3, #1
    movs r5, #UNIT_BYTES
    mul r3, r3, r5
    adr.w r5, .Lunits_end
    subs r5, r5, r3
    adds r5, r5, #1                     /* Thumb */
    ldm r1!, {r2-r4}                    /* R, Q, P */
    bx r5
.Lunits:
    .rept 4
    unit
    .endr
.Lunits_end:
    ldr r5, [sp]
    cmp r1, r5
    bne .Lunits

    ldr r0, [sp, #8]
    sub r2, r2, r4, lsl #8              /* R - 2**8 P = S0 + 2**24 S3 */
    sbfx r5, r2, #0, #24                /* S0 */
    sub r2, r2, r5                      /* 2**24 S3: its low byte */
    sub r3, r3, r5, lsl #16
    sub r3, r3, r4, lsl #24             /* Q - 2**16 S0 - 2**24 P = S2 + 2**8 S3 */
    sub r6, r3, r2, lsr #16             /* S2 in its low 16 bits */
    sub r6, r4, r6, lsl #8              /* S1 in its low 24 bits */
    sbfx r6, r6, #0, #24
    sub r7, r4, r6
    asr r7, r7, #8                      /* S2 */
    sub r8, r3, r7
    asr r8, r8, #8                      /* S3 */
    stm r0, {r5-r8}
    add sp, sp, #12
    pop {r4-r11, pc}
    .size colibri_q8_sums_armv7m, . - colibri_q8_sums_armv7m

#endif

    .section .note.GNU-stack, "", %progbits
