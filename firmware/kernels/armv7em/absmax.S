/* SPDX-License-Identifier: Apache-2.0 */
#include "model_config.h"

#include "colibri/names.h"

#include "asm.h"

#if defined(__ARM_FEATURE_DSP)

/* r2 = max(r2, bits << 1): the shift drops the sign. */
.macro LARGER bits
    cmp r2, \bits, lsl #1
    it lo
    lsllo r2, \bits, #1
.endm

/* uint32_t colibri_absmax_armv7em(const float *x, uint32_t n) */
FUNCTION colibri_absmax_armv7em
    push {r4-r10, lr}
    mov r2, #0
    subs r1, #8
    blo 2f
1:  ldm r0!, {r3-r10}
    LARGER r3
    LARGER r4
    LARGER r5
    LARGER r6
    LARGER r7
    LARGER r8
    LARGER r9
    LARGER r10
    subs r1, #8
    bhs 1b
2:  adds r1, #8
    beq 4f
3:  ldr r3, [r0], #4
    LARGER r3
    subs r1, #1
    bne 3b
4:  lsr r0, r2, #1
    pop {r4-r10, pc}
END colibri_absmax_armv7em

#endif

    .section .note.GNU-stack, "", %progbits
