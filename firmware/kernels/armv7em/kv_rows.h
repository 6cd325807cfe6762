/* SPDX-License-Identifier: Apache-2.0 */
/* The two kernels over the KV cache, which differ by its format only in how elements are read. The including file defines
 *
 *   ELEMENT_LOG2            log2 of the bytes of a stored element
 *   LOAD_EIGHT cursor       s24 to s31 = the next eight elements. s8 to s11, r10, r11 and lr may be lost.
 *   LOAD_ONE cursor         s24 = the next element
 *   LOAD_SCALE              s12 = the row's scale; r9, its address, moves on by r12
 */
#ifndef COLIBRI_ARMV7EM_KV_ROWS_H
#define COLIBRI_ARMV7EM_KV_ROWS_H

#include "asm.h"

/* clang-format off */
.macro SCORES_LANE lane
    LOAD_ONE r4
    vldm r7!, {s16}
    vfma.f32 \lane, s16, s24
    subs r2, #1
    beq 4b
.endm

/* void scores(float *z, const float *q, const colibri_kv_rows_t *keys)
 *
 * r0  z    r1  q    r3  rows left    r4  element    r5  columns    r6  bytes from a row's end to the next row
 * r7  element of q    r8  fpscr    r9  scale    r12  bytes from a scale to the next    [sp]  eight zeros
 */
.macro SCORES name
FUNCTION \name
    push {r4-r11, lr}
    vpush {s16-s31}
    FLUSH_ON r8, r3
    mov r3, #0
    vmov s0, s1, r3, r3
    vmov s2, s3, r3, r3
    vmov s4, s5, r3, r3
    vmov s6, s7, r3, r3
    vpush {s0-s7}
    ldr r4, [r2, #KV_VALUES]
    ldr r9, [r2, #KV_SCALES]
    ldr r3, [r2, #KV_N_ROWS]
    ldr r5, [r2, #KV_N_COLS]
    ldr r6, [r2, #KV_STRIDE]
    ldr r12, [r2, #KV_SCALE_STRIDE]
    sub r6, r6, r5
    lsl r6, r6, #ELEMENT_LOG2
    lsl r12, r12, #2
1:  LOAD_SCALE
    vldm sp, {s0-s7}
    mov r7, r1
    subs r2, r5, #8
    blo 3f
2:  LOAD_EIGHT r4
    vldm r7!, {s16-s23}
    vfma.f32 s0, s16, s24
    vfma.f32 s1, s17, s25
    vfma.f32 s2, s18, s26
    vfma.f32 s3, s19, s27
    vfma.f32 s4, s20, s28
    vfma.f32 s5, s21, s29
    vfma.f32 s6, s22, s30
    vfma.f32 s7, s23, s31
    subs r2, #8
    bhs 2b
3:  adds r2, #8
    bne 5f
4:  DOT8_END
    SNAP s0
    vstm r0!, {s0}
    add r4, r6
    subs r3, #1
    bne 1b
    add sp, #32
    vmsr fpscr, r8
    vpop {s16-s31}
    pop {r4-r11, pc}
5:  SCORES_LANE s0
    SCORES_LANE s1
    SCORES_LANE s2
    SCORES_LANE s3
    SCORES_LANE s4
    SCORES_LANE s5
    SCORES_LANE s6
END \name
.endm

/* void mix(float *o, const float *p, const colibri_kv_rows_t *values): eight columns at a time over all rows, then one.
 *
 * r0  o    r1  p    r3  rows    r4  first element of the columns    r5  columns left    r6  bytes from the end of what is read of a row to the next
 * r7  element    r8  fpscr    r9  scale    r12  bytes from a scale to the next    [sp]  rows left    [sp, #4]  the first scale
 */
.macro MIX name
FUNCTION \name
    push {r4-r11, lr}
    vpush {s16-s31}
    FLUSH_ON r8, r3
    ldr r4, [r2, #KV_VALUES]
    ldr r3, [r2, #KV_SCALES]
    ldr r5, [r2, #KV_N_COLS]
    ldr r6, [r2, #KV_STRIDE]
    ldr r12, [r2, #KV_SCALE_STRIDE]
    ldr r2, [r2, #KV_N_ROWS]
    push {r2, r3}
    sub r6, #8
    lsl r6, r6, #ELEMENT_LOG2
    lsl r12, r12, #2
    subs r5, #8
    blo 3f
1:  mov r3, #0
    vmov s0, s1, r3, r3
    vmov s2, s3, r3, r3
    vmov s4, s5, r3, r3
    vmov s6, s7, r3, r3
    ldrd r2, r9, [sp]
    mov r3, r1
    mov r7, r4
2:  LOAD_SCALE
    LOAD_EIGHT r7
    vldm r3!, {s16}
    vfma.f32 s0, s16, s24
    vfma.f32 s1, s16, s25
    vfma.f32 s2, s16, s26
    vfma.f32 s3, s16, s27
    vfma.f32 s4, s16, s28
    vfma.f32 s5, s16, s29
    vfma.f32 s6, s16, s30
    vfma.f32 s7, s16, s31
    add r7, r6
    subs r2, #1
    bne 2b
    SNAP_FOUR s0, s1, s2, s3
    SNAP_FOUR s4, s5, s6, s7
    vstm r0!, {s0-s7}
    add r4, #(8 << ELEMENT_LOG2)
    subs r5, #8
    bhs 1b
3:  adds r5, #8
    beq 6f
    add r6, #(7 << ELEMENT_LOG2)
4:  vmov.f32 s0, ZERO
    ldrd r2, r9, [sp]
    mov r3, r1
    mov r7, r4
5:  LOAD_SCALE
    LOAD_ONE r7
    vldm r3!, {s16}
    vfma.f32 s0, s16, s24
    add r7, r6
    subs r2, #1
    bne 5b
    SNAP s0
    vstm r0!, {s0}
    add r4, #(1 << ELEMENT_LOG2)
    subs r5, #1
    bne 4b
6:  vmsr fpscr, r8
    add sp, #8
    vpop {s16-s31}
    pop {r4-r11, pc}
END \name
.endm
/* clang-format on */

#endif
