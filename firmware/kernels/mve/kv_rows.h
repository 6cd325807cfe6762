/* SPDX-License-Identifier: Apache-2.0 */
/* The two kernels over the KV cache. The including file, one for each of its formats, defines the names SCORES and MIX, and
 *
 *     KV_BYTES                 bytes of an element
 *     KV_LOAD q, from, at      four elements at `from` + 4 KV_BYTES `at`, as floats in the vector of that number
 *     KV_NEXT q, from, t       four elements at `from`, which moves on; t: "t", the load is predicated
 *     KV_SCALE                 the row's scale, at r10, to r12; r10 moves on by r11 bytes
 */
#include "asm.h"

/* Offsets in colibri_kv_rows_t. */
#define KV_VALUES 0
#define KV_SCALES 4
#define KV_N_ROWS 8
#define KV_N_COLS 12
#define KV_STRIDE 16
#define KV_SCALE_STRIDE 20

/* r3: the rows, r5: bytes from one to the next; r10 and r11 the same of their scales. */
.macro KV_BEGIN
    ldr r3, [r2, #KV_VALUES]
    ldr r10, [r2, #KV_SCALES]
    ldrd r5, r11, [r2, #KV_STRIDE]
    mov r12, #KV_BYTES
    mul r5, r5, r12
    lsls r11, r11, #2
.endm

/* void SCORES(float *z, const float *q, const colibri_kv_rows_t *keys)
 *
 * A head of 16 columns, the commonest small one, stands in q4 to q7 for all rows. Scores are snapped in a second pass.
 */
FUNCTION SCORES
    push {r0, r2, r4-r11, lr}
    vpush {d8-d15}
    KV_BEGIN
    ldrd r4, r6, [r2, #KV_N_ROWS]
    cmp r6, #16
    bne 2f

    vldrw.u32 q4, [r1]
    vldrw.u32 q5, [r1, #16]
    vldrw.u32 q6, [r1, #32]
    vldrw.u32 q7, [r1, #48]
    dls lr, r4
1:  KV_SCALE
    KV_LOAD 0, r3, 0
    KV_LOAD 1, r3, 1
    vmul.f32 q0, q0, q4
    KV_LOAD 2, r3, 2
    vmul.f32 q1, q1, q5
    KV_LOAD 3, r3, 3
    vfma.f32 q0, q2, q6
    vfma.f32 q1, q3, q7
    DOT8_END
    add r3, r5
    vstmia r0!, {s0}
    le lr, 1b
    b 6f

2:  and r9, r6, #7
    lsrs r6, r6, #3
3:  KV_SCALE
    mov r8, r1
    mov r7, r3
    vmov.i32 q0, #0
    vmov.i32 q1, #0
    wls lr, r6, 5f
4:  vldrw.u32 q2, [r8], #16
    KV_NEXT 3, r7
    vfma.f32 q0, q2, q3
    vldrw.u32 q2, [r8], #16
    KV_NEXT 3, r7
    vfma.f32 q1, q2, q3
    le lr, 4b
5:  cmp r9, #0
    beq 8f
    vctp.32 r9
    vpst
    vldrwt.u32 q2, [r8], #16
    vpst
    KV_NEXT 3, r7, t
    vfma.f32 q0, q2, q3
    subs lr, r9, #4
    it lo
    movlo lr, #0
    vctp.32 lr
    vpst
    vldrwt.u32 q2, [r8]
    vpst
    KV_NEXT 3, r7, t
    vfma.f32 q1, q2, q3
8:  DOT8_END
    add r3, r5
    vstmia r0!, {s0}
    subs r4, #1
    bne 3b

6:  ldrd r0, r2, [sp, #64]
    ldr r4, [r2, #KV_N_ROWS]
    SNAP_BEGIN q1, r12, r3
    dlstp.32 lr, r4
7:  vldrw.u32 q0, [r0]
    SNAP q0, q1, r12, r3
    vstrw.32 q0, [r0], #16
    letp lr, 7b
    vpop {d8-d15}
    pop {r0, r2, r4-r11, pc}
END SCORES

/* void MIX(float *o, const float *p, const colibri_kv_rows_t *values)
 *
 * Sixteen columns over all rows at a time, then four; their sums stay in registers.
 */
FUNCTION MIX
    push {r3-r11, lr}
    vpush {d8-d11}
    KV_BEGIN
    ldrd r4, r6, [r2, #KV_N_ROWS]
    subs r6, #16
    blo 3f
1:  str r3, [sp, #32]
    mov r9, r1
    vmov.i32 q0, #0
    vmov.i32 q1, #0
    vmov.i32 q2, #0
    vmov.i32 q3, #0
    dls lr, r4
2:  KV_SCALE
    ldr r8, [r9], #4
    KV_LOAD 4, r3, 0
    KV_LOAD 5, r3, 1
    vfma.f32 q0, q4, r8
    KV_LOAD 4, r3, 2
    vfma.f32 q1, q5, r8
    KV_LOAD 5, r3, 3
    vfma.f32 q2, q4, r8
    add r3, r5
    vfma.f32 q3, q5, r8
    le lr, 2b
    SNAP_BEGIN q4, r12, r8
    SNAP q0, q4, r12, r8
    SNAP q1, q4, r12, r8
    SNAP q2, q4, r12, r8
    SNAP q3, q4, r12, r8
    vstrw.32 q0, [r0], #16
    vstrw.32 q1, [r0], #16
    vstrw.32 q2, [r0], #16
    vstrw.32 q3, [r0], #16
    ldr r10, [r2, #KV_SCALES]
    ldr r3, [sp, #32]
    adds r3, #16 * KV_BYTES
    subs r6, #16
    bhs 1b
3:  adds r6, #16
    beq 6f

4:  str r3, [sp, #32]
    mov r9, r1
    vmov.i32 q0, #0
    vctp.32 r6
    dls lr, r4
5:  KV_SCALE
    ldr r8, [r9], #4
    mov r7, r3
    vpst
    KV_NEXT 4, r7, t
    add r3, r5
    vfma.f32 q0, q4, r8
    le lr, 5b
    SNAP_BEGIN q4, r12, r8
    SNAP q0, q4, r12, r8
    vctp.32 r6
    vpst
    vstrwt.32 q0, [r0], #16
    ldr r10, [r2, #KV_SCALES]
    ldr r3, [sp, #32]
    adds r3, #4 * KV_BYTES
    subs r6, #4
    bhi 4b
6:  vpop {d8-d11}
    pop {r3-r11, pc}
END MIX

    .section .note.GNU-stack, "", %progbits
