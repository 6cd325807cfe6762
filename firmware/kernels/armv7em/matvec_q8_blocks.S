/* SPDX-License-Identifier: Apache-2.0 */
/* void colibri_q8_blocks_armv7em(colibri_blocks_t *blocks): rows of int8 with one scale each.
 *
 * 0.92 instructions a product for 128 columns, everything included. Two rows share a halfword, so that one SMLAD makes four
 * products; the even row's own sum, by sign extension of the low bytes, is what takes the two apart: (256 * odd + even) - even is
 * 256 times the odd row's sum, and VCVT with eight fraction bits rounds it as it would the sum. Four rows share x, four words of
 * which one LDM loads.
 */
#include "model_config.h"

#include "colibri/names.h"

#if COLIBRI_USE_Q8

#include "asm.h"
#include "q8_unit.h"
#include "store.h"

/* The stack. A block begins with one LDM of what it needs, its first instruction in the loop included. */
#define ZEROS 0         /* 16 bytes */
#define X 16
#define ENTRY 20        /* into the loop, so that what is left is a multiple of eight units */
#define SEGMENT_END 24  /* of x: the end of the present segment */
#define MORE_SEGMENTS 28
#define OUT 32
#define OUT_END 36
#define SUMS 40         /* of the segments before, 16 bytes */
#define X_END 56
#define FIRST_END 60
#define BLOCKS 64
#define SAVED_FPSCR 68
#define FRAME_BYTES 76

FUNCTION colibri_q8_blocks_armv7em
    push {r4-r11, lr}
    sub sp, sp, #FRAME_BYTES
    str r0, [sp, #BLOCKS]
    FLUSH_ON r1, r2
    str r1, [sp, #SAVED_FPSCR]
    ldmia r0, {r0, r5, r6, r7, r8, r9}  /* weights, x, x_scale, out, out_end, n_units */
    vldr X_SCALE, [r6]
    movs r1, #0
    movs r2, #0
    movs r3, #0
    movs r4, #0
    stm sp, {r1-r5}                     /* zeros and x */
    add r10, sp, #SUMS
    stm r10, {r1-r4}
    strd r7, r8, [sp, #OUT]
    add r10, r5, r9, lsl #4
    str r10, [sp, #X_END]
    /* The first segment takes what is not a multiple of 64 units, its first turn of the loop what is none of 8. */
    subs r9, r9, #1
    lsrs r10, r9, #6
    str r10, [sp, #MORE_SEGMENTS]
    and r10, r9, #63
    add r10, r5, r10, lsl #4
    adds r10, r10, #16
    str r10, [sp, #SEGMENT_END]
    str r10, [sp, #FIRST_END]
    and r9, r9, #7
    adds r9, r9, #1
    movs r10, #Q8_UNIT_BYTES
    mul r9, r9, r10
    adr.w r10, .Lunits_end
    subs r10, r10, r9
    adds r10, r10, #1                   /* Thumb */
    str r10, [sp, #ENTRY]

.Lblock:
    ldm sp, {r1-r5, pc}

.Lunits:
    .rept 8
    Q8_UNIT
    .endr
.Lunits_end:
    ldr r6, [sp, #SEGMENT_END]
    cmp r5, r6
    bne .Lunits
    sub r1, r1, r2
    sub r3, r3, r4
    ldr r6, [sp, #MORE_SEGMENTS]
    cbz r6, .Lonly_segment

    asr r1, r1, #8
    asr r3, r3, #8
    add r10, sp, #SUMS
    ldm r10, {r6-r9}
    add r1, r1, r6
    add r2, r2, r7
    add r3, r3, r8
    add r4, r4, r9
    ldr r6, [sp, #X_END]
    cmp r5, r6
    beq .Llast_segment
    stm r10, {r1-r4}
    ldm sp, {r1-r4}
    add r6, r5, #1024                   /* 64 units of x */
    str r6, [sp, #SEGMENT_END]
    b .Lunits

.Llast_segment:
    ldm sp, {r6-r9}
    stm r10, {r6-r9}
    ldr r6, [sp, #FIRST_END]
    str r6, [sp, #SEGMENT_END]
    vmov s0, s1, r2, r1
    vmov s2, s3, r4, r3
    vcvt.f32.s32 s0, s0
    vcvt.f32.s32 s1, s1
    vcvt.f32.s32 s2, s2
    vcvt.f32.s32 s3, s3
    b .Lstore

.Lonly_segment:
    vmov s0, s1, r2, r1
    vmov s2, s3, r4, r3
    vcvt.f32.s32 s0, s0
    vcvt.f32.s32 s1, s1, #8
    vcvt.f32.s32 s2, s2
    vcvt.f32.s32 s3, s3, #8
.Lstore:
    vldm r0!, {s4-s7}                   /* the block's scales */
    ldrd r6, r7, [sp, #OUT]
    STORE_FOUR
    str r6, [sp, #OUT]
    cmp r6, r7
    bne .Lblock

    ldr r1, [sp, #BLOCKS]
    str r0, [r1]
    str r6, [r1, #12]
    ldr r2, [sp, #SAVED_FPSCR]
    vmsr fpscr, r2
    add sp, sp, #FRAME_BYTES
    pop {r4-r11, pc}
END colibri_q8_blocks_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
