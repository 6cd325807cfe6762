/* SPDX-License-Identifier: Apache-2.0 */
/* Both routines take a colibri_mve_groups_t, mve.h, whose scales are the groups' multipliers, and write int32 sums over out.
 *
 * A byte holds column i of a step in its low nibble and column 16 + i in its high one. Both are used as 16 times their value, in
 * two's complement, without a shift down; the 16 is removed from the group's sum.
 *
 * BOUND: 16 * 128 * 7 * 127 < 2**31 a group; 8192 * 7 * 127 * 255 < 2**31 a row.
 */
#include "asm.h"

#if defined(__ARM_FEATURE_MVE)

.macro ROW a, acc
    vldrw.u32 q0, [r1], #16
    vshl.i8 q1, q0, #4
    vmladav\a\().s8 \acc, q1, q2
    vand q0, q0, q4
    vmladava.s8 \acc, q0, q3
.endm

/* One step of 8 rows; a: "a" adds to the accumulators, nothing starts them. */
.macro STEP a
    vldrw.u32 q2, [r3], #16
    vldrw.u32 q3, [r3], #16
    ROW \a, r0
    ROW \a, r2
    ROW \a, r4
    ROW \a, r6
    ROW \a, r8
    ROW \a, r10
    ROW \a, r12
    ROW \a, lr
.endm

/* void colibri_q4_blocks_mve(const colibri_mve_groups_t *job): n whole blocks of 8 rows; sums in q5 and q6, one lane a row. */
FUNCTION colibri_q4_blocks_mve
    push {r0, r4-r11, lr}
    vpush {d8-d13}
    ldr r11, [r0, #GROUPS_X_END]
    ldr r9, [r0, #GROUPS_GROUP]
    ldr r1, [r0, #GROUPS_W]
    ldr r7, [r0, #GROUPS_SCALES]
    vmov.i8 q4, #0xf0
1:  ldr r0, [sp, #48]
    ldr r3, [r0, #GROUPS_X]
    vmov.i32 q5, #0
    vmov.i32 q6, #0
2:  add r5, r3, r9
    cmp r5, r11
    it hi
    movhi r5, r11                   /* the last group may be short */
    STEP
    cmp r3, r5
    beq.w 4f
3:  STEP a
    cmp r3, r5
    bne.w 3b
4:  vmov q0[2], q0[0], r0, r4
    vmov q0[3], q0[1], r2, r6
    vmov q1[2], q1[0], r8, r12
    vmov q1[3], q1[1], r10, lr
    vldrb.u32 q2, [r7]
    vldrb.u32 q3, [r7, #4]
    adds r7, #8
    vshr.s32 q0, q0, #4
    vshr.s32 q1, q1, #4
    vmul.i32 q0, q0, q2
    vmul.i32 q1, q1, q3
    vadd.i32 q5, q5, q0
    vadd.i32 q6, q6, q1
    cmp r3, r11
    bne.w 2b

    ldr r0, [sp, #48]
    ldr r2, [r0, #GROUPS_OUT]
    vstrw.32 q5, [r2], #16
    vstrw.32 q6, [r2], #16
    str r2, [r0, #GROUPS_OUT]
    ldr r2, [r0, #GROUPS_N]
    subs r2, #1
    str r2, [r0, #GROUPS_N]
    bne.w 1b
    vpop {d8-d13}
    pop {r0, r4-r11, pc}
END colibri_q4_blocks_mve

/* void colibri_q4_rows_mve(const colibri_mve_groups_t *job): n rows of one block of block_rows rows. */
FUNCTION colibri_q4_rows_mve
    push {r4-r11, lr}
    vpush {d8-d9}
    ldr r7, [r0, #GROUPS_BLOCK_ROWS]
    vmov.i8 q4, #0xf0
1:  ldr r1, [r0, #GROUPS_W]
    ldr r2, [r0, #GROUPS_SCALES]
    ldr r3, [r0, #GROUPS_X]
    ldr r5, [r0, #GROUPS_X_END]
    movs r6, #0
2:  subs r9, r5, r3
    ldr r10, [r0, #GROUPS_GROUP]
    cmp r9, r10
    it hi
    movhi r9, r10
    lsrs r9, r9, #5
    movs r8, #0
    dls lr, r9
3:  vldrw.u32 q0, [r1]
    add r1, r1, r7, lsl #4
    vldrw.u32 q2, [r3], #16
    vshl.i8 q1, q0, #4
    vldrw.u32 q3, [r3], #16
    vmladava.s8 r8, q1, q2
    vand q0, q0, q4
    vmladava.s8 r8, q0, q3
    le lr, 3b
    ldrb r9, [r2]
    add r2, r7
    asrs r8, r8, #4
    mla r6, r8, r9, r6
    cmp r3, r5
    bne 2b

    ldrd r1, r2, [r0, #GROUPS_OUT]
    str r6, [r1], #4
    adds r2, #16
    strd r1, r2, [r0, #GROUPS_OUT]
    ldrd r1, r2, [r0, #GROUPS_SCALES]
    adds r1, #1
    subs r2, #1
    strd r1, r2, [r0, #GROUPS_SCALES]
    bne 1b
    vpop {d8-d9}
    pop {r4-r11, pc}
END colibri_q4_rows_mve

#endif

    .section .note.GNU-stack, "", %progbits
