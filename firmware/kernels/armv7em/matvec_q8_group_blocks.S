/* SPDX-License-Identifier: Apache-2.0 */
/* void colibri_q8_group_blocks_armv7em(colibri_blocks_t *blocks): rows of int8 with a scale for each group of columns.
 *
 * As matvec_q8_blocks.S, with a float sum over the groups. After each group come the four rows' scales in the weights, and the
 * scale of x in x. No flush to zero here: a small term of the float sum may still decide a rounding.
 */
#include "model_config.h"

#include "colibri/names.h"

#if COLIBRI_USE_Q8_GROUP

#include "asm.h"
#include "q8_unit.h"

#define ZEROS 0         /* 16 bytes */
#define X 16
#define GROUP_BYTES 20  /* of x, without its scale */
#define X_LAST 24       /* the end of the last group's elements */
#define OUT 28
#define OUT_END 32
#define ENTRY 36        /* into the loop, for a last group that is short */
#define GROUP_END 40
#define BLOCKS 44
#define FRAME_BYTES 52

FUNCTION colibri_q8_group_blocks_armv7em
    push {r4-r11, lr}
    sub sp, sp, #FRAME_BYTES
    str r0, [sp, #BLOCKS]
    ldmia r0, {r0, r5, r6, r7, r8, r9, r10} /* weights, x, x_scale, out, out_end, n_units, group_units */
    movs r1, #0
    movs r2, #0
    movs r3, #0
    movs r4, #0
    stm sp, {r1-r5}
    strd r7, r8, [sp, #OUT]
    lsl r1, r10, #4
    str r1, [sp, #GROUP_BYTES]
    subs r9, r9, #1
    udiv r2, r9, r10                    /* groups before the last */
    add r1, r5, r9, lsl #4
    adds r1, r1, #16
    add r1, r1, r2, lsl #2
    str r1, [sp, #X_LAST]
    and r9, r9, #3                      /* a group is a multiple of four units */
    adds r9, r9, #1
    movs r10, #Q8_UNIT_BYTES
    mul r9, r9, r10
    adr.w r10, .Lunits_end
    subs r10, r10, r9
    adds r10, r10, #1                   /* Thumb */
    str r10, [sp, #ENTRY]

.Lblock:
    ldr r5, [sp, #X]
    vldm sp, {s8-s11}
.Lgroup:
    ldm sp, {r1-r4}
    ldrd r6, r7, [sp, #GROUP_BYTES]
    add r6, r6, r5
    cmp r6, r7
    bhi .Lshort_group
    str r6, [sp, #GROUP_END]
.Lunits:
    .rept 4
    Q8_UNIT
    .endr
.Lunits_end:
    ldr r6, [sp, #GROUP_END]
    cmp r5, r6
    bne .Lunits
    sub r1, r1, r2
    sub r3, r3, r4
    vmov s0, s1, r2, r1
    vmov s2, s3, r4, r3
    vldm r0!, {s4-s7}
    vldm r5!, {s12}
    vcvt.f32.s32 s0, s0
    vcvt.f32.s32 s1, s1, #8
    vcvt.f32.s32 s2, s2
    vcvt.f32.s32 s3, s3, #8
    vmul.f32 s4, s4, s12
    vmul.f32 s5, s5, s12
    vmul.f32 s6, s6, s12
    vmul.f32 s7, s7, s12
    vfma.f32 s8, s0, s4
    vfma.f32 s9, s1, s5
    vfma.f32 s10, s2, s6
    vfma.f32 s11, s3, s7
    ldr r7, [sp, #X_LAST]
    cmp r6, r7
    bne .Lgroup

    vmov r1, r2, s8, s9
    vmov r3, r4, s10, s11
    .irp y, r1, r2, r3, r4              /* snap */
    lsl r6, \y, #1
    cmp r6, #0x57000000
    it lo
    movlo \y, #0
    .endr
    ldrd r6, r7, [sp, #OUT]
    stm r6!, {r1-r4}
    str r6, [sp, #OUT]
    cmp r6, r7
    bne .Lblock

    ldr r1, [sp, #BLOCKS]
    str r0, [r1]
    str r6, [r1, #12]
    add sp, sp, #FRAME_BYTES
    pop {r4-r11, pc}

.Lshort_group:
    str r7, [sp, #GROUP_END]
    ldr pc, [sp, #ENTRY]
END colibri_q8_group_blocks_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
