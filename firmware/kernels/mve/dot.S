/* SPDX-License-Identifier: Apache-2.0 */
#include "asm.h"

#if defined(__ARM_FEATURE_MVE)

/* uint32_t colibri_dot_bits_mve(const float *a, const float *b, uint32_t n): snap(dot8(a, b)). */
FUNCTION colibri_dot_bits_mve
    push {r4, lr}
    lsrs r3, r2, #3
    vmov.i32 q0, #0
    vmov.i32 q1, #0
    wls lr, r3, 2f
1:  vldrw.u32 q2, [r0], #16
    vldrw.u32 q3, [r1], #16
    vfma.f32 q0, q2, q3
    vldrw.u32 q2, [r0], #16
    vldrw.u32 q3, [r1], #16
    vfma.f32 q1, q2, q3
    le lr, 1b
2:  ands r2, r2, #7
    beq 3f
    DOT8_TAIL r0, r1, r2
3:  DOT8_END
    SNAP_BEGIN q1, r2, r3
    SNAP q0, q1, r2, r3
    vmov r0, s0
    pop {r4, pc}
END colibri_dot_bits_mve

#endif

    .section .note.GNU-stack, "", %progbits
