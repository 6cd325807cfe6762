/* SPDX-License-Identifier: Apache-2.0 */
/* void colibri_q4_blocks_armv7em(colibri_blocks_t *blocks): rows of int4 with a multiplier for each group and a scale for each row.
 *
 * Four rows share a halfword, one hexadecimal digit each: h = 4096 * w3 + 256 * (w2 + 8) + 16 * (w1 + 8) + (w0 + 8). Four SMLAD, of h
 * and of the digits that two extractions and an AND leave, give 4096 * S3 + ... + S0, 256 * S2 + S0, 16 * S1 + S0 and S0: seven
 * instructions for eight products. The eights are taken off beforehand: the sums begin with what quantise_vector wrote before each
 * group of x. BOUND: 512 columns * 127 * 32767 < 2**31; sums that leave it on the way come back.
 */
#include "model_config.h"

#include "colibri/names.h"

#if COLIBRI_USE_Q4

#include "asm.h"
#include "store.h"

/* Eight columns: 31 instructions for 32 products. r0 weights, r5 x, r1-r4 the four sums, lowest first. */
#define Q4_UNIT_BYTES 124

.macro Q4_COLUMNS2 w, x
    smlad r4, \w, \x, r4
    and r12, \w, #0x0f0f0f0f
    uxtb16 \w, \w
    smlad r3, r12, \x, r3
    smlad r2, \w, \x, r2
    uxtb16 r12, r12
    smlad r1, r12, \x, r1
.endm

.macro Q4_UNIT
    ldm r0!, {r6-r9}
    ldrd r10, r11, [r5], #8
    Q4_COLUMNS2 r6, r10
    Q4_COLUMNS2 r7, r11
    ldrd r10, r11, [r5], #8
    Q4_COLUMNS2 r8, r10
    Q4_COLUMNS2 r9, r11
.endm

#define SUMS 0          /* of the groups before, 16 bytes; zeros between blocks */
#define X 16
#define GROUP_BYTES 20  /* of x, without what the sums begin with */
#define X_END 24
#define OUT 28
#define OUT_END 32
#define ENTRY 36        /* into the loop, for a last group that is short */
#define BLOCKS 40
#define SAVED_FPSCR 44
#define FRAME_BYTES 52

FUNCTION colibri_q4_blocks_armv7em
    push {r4-r11, lr}
    sub sp, sp, #FRAME_BYTES
    str r0, [sp, #BLOCKS]
    FLUSH_ON r1, r2
    str r1, [sp, #SAVED_FPSCR]
    ldmia r0, {r0, r5, r6, r7, r8, r9, r10} /* weights, x, x_scale, out, out_end, n_units, group_units */
    vldr X_SCALE, [r6]
    movs r1, #0
    movs r2, #0
    movs r3, #0
    movs r4, #0
    stm sp, {r1-r5}
    strd r7, r8, [sp, #OUT]
    lsl r1, r10, #4
    str r1, [sp, #GROUP_BYTES]
    subs r9, r9, #1
    udiv r2, r9, r10
    adds r2, r2, #1                     /* groups */
    add r1, r5, r9, lsl #4
    adds r1, r1, #16
    add r1, r1, r2, lsl #4
    str r1, [sp, #X_END]
    and r9, r9, #3                      /* a group is a multiple of four units */
    adds r9, r9, #1
    movs r10, #Q4_UNIT_BYTES
    mul r9, r9, r10
    adr.w r10, .Lunits_end
    subs r10, r10, r9
    adds r10, r10, #1                   /* Thumb */
    str r10, [sp, #ENTRY]

.Lblock:
    ldr r5, [sp, #X]
.Lgroup:
    ldm r5!, {r1-r4}
    ldrd r6, r7, [sp, #GROUP_BYTES]
    add lr, r5, r6
    cmp lr, r7
    bhi .Lshort_group
.Lunits:
    .rept 4
    Q4_UNIT
    .endr
.Lunits_end:
    cmp r5, lr
    bne .Lunits
    sub r4, r4, r3
    sub r4, r4, r2
    add r4, r4, r1
    sub r3, r3, r1
    sub r2, r2, r1
    ldr r10, [r0], #4                   /* the group's multipliers */
    ldm sp, {r6-r9}
    asr r2, r2, #4
    asr r3, r3, #8
    asr r4, r4, #12
    uxtb r11, r10
    mla r6, r1, r11, r6
    ubfx r11, r10, #8, #8
    mla r7, r2, r11, r7
    ubfx r11, r10, #16, #8
    mla r8, r3, r11, r8
    lsr r11, r10, #24
    mla r9, r4, r11, r9
    stm sp, {r6-r9}
    ldr r10, [sp, #X_END]
    cmp r5, r10
    bne .Lgroup

    vmov s0, s1, r6, r7
    vmov s2, s3, r8, r9
    vcvt.f32.s32 s0, s0
    vcvt.f32.s32 s1, s1
    vcvt.f32.s32 s2, s2
    vcvt.f32.s32 s3, s3
    vldm r0!, {s4-s7}                   /* the block's scales */
    movs r1, #0
    movs r2, #0
    movs r3, #0
    movs r4, #0
    stm sp, {r1-r4}
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

.Lshort_group:
    mov lr, r7
    ldr pc, [sp, #ENTRY]
END colibri_q4_blocks_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
