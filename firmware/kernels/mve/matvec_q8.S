/* SPDX-License-Identifier: Apache-2.0 */
#include "asm.h"

#if defined(__ARM_FEATURE_MVE)

/* void colibri_q8_blocks_mve(float *out, const uint8_t *w, const int8_t *x, uint32_t n_steps, uint32_t n_blocks)
 *
 * The int32 dot products of whole blocks of 8 rows, written over out. Sixteen columns a step, each step 8 vectors of weights
 * (rows in order) that share one load of x. Eight accumulators take the even registers that VMLADAVA can use, LR included, so the
 * loop counts by x's pointer; low-overhead loops need LR. The first step starts the accumulators and keeps its x in q3; the
 * others run in a loop of 8 steps that is entered where the number of steps, a constant of the matrix, leaves a whole number of
 * rounds. Loads and products alternate: both units of a Cortex-M55 are busy.
 */
#define STEP_BYTES 68

.macro STEP
    vldrw.u32 q2, [r3], #16
    vldrw.u32 q0, [r1], #16
    vmladava.s8 r0, q0, q2
    vldrw.u32 q1, [r1], #16
    vmladava.s8 r2, q1, q2
    vldrw.u32 q0, [r1], #16
    vmladava.s8 r4, q0, q2
    vldrw.u32 q1, [r1], #16
    vmladava.s8 r6, q1, q2
    vldrw.u32 q0, [r1], #16
    vmladava.s8 r8, q0, q2
    vldrw.u32 q1, [r1], #16
    vmladava.s8 r10, q1, q2
    vldrw.u32 q0, [r1], #16
    vmladava.s8 r12, q0, q2
    vldrw.u32 q1, [r1], #16
    vmladava.s8 lr, q1, q2
.endm

FUNCTION colibri_q8_blocks_mve
    push {r4-r11, lr}
    mov r11, r0
    ldr r5, [sp, #36]
    add r5, r11, r5, lsl #5         /* end of out */
    vldrw.u32 q3, [r2], #16
    push {r2}                       /* x from its second step */
    subs r3, #1
    add r7, r2, r3, lsl #4          /* end of x */
    beq 4f
    rsbs r4, r3, #0
    and r4, r4, #7                  /* steps of the first round that are not wanted */
    movs r6, #STEP_BYTES
    adr r9, 2f
    mla r9, r4, r6, r9
    b 5f
4:  adr r9, 3f
5:  orr r9, r9, #1                  /* Thumb */

1:  ldr r3, [sp]
    vldrw.u32 q0, [r1], #16
    vmladav.s8 r0, q0, q3
    vldrw.u32 q1, [r1], #16
    vmladav.s8 r2, q1, q3
    vldrw.u32 q0, [r1], #16
    vmladav.s8 r4, q0, q3
    vldrw.u32 q1, [r1], #16
    vmladav.s8 r6, q1, q3
    vldrw.u32 q0, [r1], #16
    vmladav.s8 r8, q0, q3
    vldrw.u32 q1, [r1], #16
    vmladav.s8 r10, q1, q3
    vldrw.u32 q0, [r1], #16
    vmladav.s8 r12, q0, q3
    vldrw.u32 q1, [r1], #16
    vmladav.s8 lr, q1, q3
    bx r9
    .balign 4
2:  STEP
    STEP
    STEP
    STEP
    STEP
    STEP
    STEP
    STEP
    cmp r3, r7
    bne.w 2b
    .balign 4
3:  stm r11!, {r0, r2, r4, r6, r8, r10, r12, lr}
    cmp r11, r5
    bne.w 1b

    add sp, #4
    pop {r4-r11, pc}
END colibri_q8_blocks_mve

/* void colibri_q8_rows_mve(float *out, const uint8_t *w, const int8_t *x, uint32_t n_steps, uint32_t step_bytes, uint32_t n_rows)
 *
 * The same for rows by themselves, n_rows >= 1: row i begins at w + 16 i, and its next step is step_bytes further.
 */
FUNCTION colibri_q8_rows_mve
    push {r4-r8, lr}
    ldrd r4, r5, [sp, #24]
1:  mov r6, r1
    mov r7, r2
    movs r12, #0
    dls lr, r3
2:  vldrw.u32 q0, [r6]
    vldrw.u32 q1, [r7], #16
    add r6, r4
    vmladava.s8 r12, q0, q1
    le lr, 2b
    str r12, [r0], #4
    adds r1, #16
    subs r5, #1
    bne 1b
    pop {r4-r8, pc}
END colibri_q8_rows_mve

#endif

    .section .note.GNU-stack, "", %progbits
