/* SPDX-License-Identifier: Apache-2.0 */
/* int32_t colibri_quantise16_armv7em(int16_t *out, const float *x, uint32_t n_units, float inv): rint(x[i] * inv) of eight floats a
 * unit, as the low half of the sum that rounds it (kernels/arith.h); returns their sum. Four instructions an element.
 */
#include "model_config.h"

#include "colibri/names.h"

#if COLIBRI_QUANT_BYTES > 0

#include "asm.h"

FUNCTION colibri_quantise16_armv7em
    push {r4-r9, lr}
    movs r3, #0
    movs r4, #0
    movt r4, #0x4b40                    /* 0x1.8p23 */
    vmov s1, r4
    mov r9, #0x00010001
.Lunit:
    vldm r1!, {s8-s15}
    .irp s, s8, s9, s10, s11, s12, s13, s14, s15
    vmul.f32 \s, \s, s0
    .endr
    .irp s, s8, s9, s10, s11, s12, s13, s14, s15
    vadd.f32 \s, \s, s1
    .endr
    vmov r4, r5, s8, s9
    vmov r6, r7, s10, s11
    pkhbt r4, r4, r5, lsl #16
    pkhbt r5, r6, r7, lsl #16
    vmov r6, r7, s12, s13
    vmov r8, lr, s14, s15
    pkhbt r6, r6, r7, lsl #16
    pkhbt r7, r8, lr, lsl #16
    smlad r3, r4, r9, r3
    smlad r3, r5, r9, r3
    smlad r3, r6, r9, r3
    smlad r3, r7, r9, r3
    stm r0!, {r4-r7}
    subs r2, r2, #1
    bne .Lunit
    mov r0, r3
    pop {r4-r9, pc}
END colibri_quantise16_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
