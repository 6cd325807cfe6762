/* SPDX-License-Identifier: Apache-2.0 */
/* Both routines take a colibri_mve_groups_t: mve.h. */
#include "asm.h"

#if defined(__ARM_FEATURE_MVE)

/* One step of 8 rows; a: "a" adds to the accumulators, nothing starts them. */
.macro STEP a
    vldrw.u32 q2, [r3], #16
    vldrw.u32 q0, [r1], #16
    vmladav\a\().s8 r0, q0, q2
    vldrw.u32 q1, [r1], #16
    vmladav\a\().s8 r2, q1, q2
    vldrw.u32 q0, [r1], #16
    vmladav\a\().s8 r4, q0, q2
    vldrw.u32 q1, [r1], #16
    vmladav\a\().s8 r6, q1, q2
    vldrw.u32 q0, [r1], #16
    vmladav\a\().s8 r8, q0, q2
    vldrw.u32 q1, [r1], #16
    vmladav\a\().s8 r10, q1, q2
    vldrw.u32 q0, [r1], #16
    vmladav\a\().s8 r12, q0, q2
    vldrw.u32 q1, [r1], #16
    vmladav\a\().s8 lr, q1, q2
.endm

/* void colibri_q8_group_blocks_mve(const colibri_mve_groups_t *job): n whole blocks of 8 rows.
 *
 * The sums of a block stand in q3 and q4, one lane a row.
 */
FUNCTION colibri_q8_group_blocks_mve
    push {r0, r4-r11, lr}
    vpush {d8-d11}
    SNAP_BEGIN q5, r2, r4
    ldr r1, [r0, #GROUPS_W]
    ldr r7, [r0, #GROUPS_SCALES]
    ldr r11, [r0, #GROUPS_X_END]
1:  ldr r0, [sp, #32]
    ldr r3, [r0, #GROUPS_X]
    ldr r9, [r0, #GROUPS_X_SCALES]
    vmov.i32 q3, #0
    vmov.i32 q4, #0
2:  ldr r0, [sp, #32]
    ldr r5, [r0, #GROUPS_GROUP]
    add r5, r3
    cmp r5, r11
    it hi
    movhi r5, r11                   /* the last group may be short */
    STEP
    cmp r3, r5
    beq 4f
3:  STEP a
    cmp r3, r5
    bne 3b
4:  vmov q0[2], q0[0], r0, r4
    vmov q0[3], q0[1], r2, r6
    vmov q1[2], q1[0], r8, r12
    vmov q1[3], q1[1], r10, lr
    ldr r0, [r9], #4
    vldrw.u32 q2, [r7], #16
    vcvt.f32.s32 q0, q0
    vmul.f32 q2, q2, r0
    vfma.f32 q3, q0, q2
    vldrw.u32 q2, [r7], #16
    vcvt.f32.s32 q1, q1
    vmul.f32 q2, q2, r0
    vfma.f32 q4, q1, q2
    cmp r3, r11
    bne 2b

    mov r2, #DOWN_BITS
    mov r4, #0
    SNAP q3, q5, r2, r4
    SNAP q4, q5, r2, r4
    ldr r0, [sp, #32]
    ldr r2, [r0, #GROUPS_OUT]
    vstrw.32 q3, [r2], #16
    vstrw.32 q4, [r2], #16
    str r2, [r0, #GROUPS_OUT]
    ldr r2, [r0, #GROUPS_N]
    subs r2, #1
    str r2, [r0, #GROUPS_N]
    bne.w 1b
    vpop {d8-d11}
    pop {r0, r4-r11, pc}
END colibri_q8_group_blocks_mve

/* void colibri_q8_group_rows_mve(const colibri_mve_groups_t *job): n rows of one block of block_rows rows. */
FUNCTION colibri_q8_group_rows_mve
    push {r4-r11, lr}
    ldr r7, [r0, #GROUPS_BLOCK_ROWS]
1:  ldr r1, [r0, #GROUPS_W]
    ldr r2, [r0, #GROUPS_SCALES]
    ldr r3, [r0, #GROUPS_X]
    ldr r4, [r0, #GROUPS_X_SCALES]
    ldr r5, [r0, #GROUPS_X_END]
    movs r8, #0
    vmov s4, r8                     /* the sum */
2:  subs r9, r5, r3
    ldr r10, [r0, #GROUPS_GROUP]
    cmp r9, r10
    it hi
    movhi r9, r10
    lsrs r9, r9, #4
    movs r8, #0
    dls lr, r9
3:  vldrw.u32 q0, [r1]
    add r1, r1, r7, lsl #4
    vldrw.u32 q2, [r3], #16
    vmladava.s8 r8, q0, q2
    le lr, 3b
    vmov s0, r8
    vldr s1, [r2]
    vldr s2, [r4]
    vcvt.f32.s32 s0, s0
    vmul.f32 s1, s1, s2
    vfma.f32 s4, s0, s1
    add r2, r2, r7, lsl #2
    adds r4, #4
    cmp r3, r5
    bne 2b

    vmov r8, s4
    bic r9, r8, #0x80000000
    cmp r9, #SNAP_BITS
    it lo
    movlo r8, #0
    ldrd r1, r2, [r0, #GROUPS_OUT]
    str r8, [r1], #4
    adds r2, #16
    strd r1, r2, [r0, #GROUPS_OUT]
    ldrd r1, r2, [r0, #GROUPS_SCALES]
    adds r1, #4
    subs r2, #1
    strd r1, r2, [r0, #GROUPS_SCALES]
    bne 1b
    pop {r4-r11, pc}
END colibri_q8_group_rows_mve

#endif

    .section .note.GNU-stack, "", %progbits
