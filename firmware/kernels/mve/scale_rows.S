/* SPDX-License-Identifier: Apache-2.0 */
#include "asm.h"

#if defined(__ARM_FEATURE_MVE)

.macro SCALE
    vldrw.u32 q0, [r0]
    vldrw.u32 q1, [r1], #16
    vcvt.f32.s32 q0, q0
    vmul.f32 q1, q1, r3
    vmul.f32 q0, q0, q1
    SNAP q0, q2, r12, r4
    vstrw.32 q0, [r0], #16
.endm

/* void colibri_scale_rows_mve(float *out, const float *scales, uint32_t n, uint32_t x_scale_bits)
 *
 * out[i] = snap(f32(the int32 in out[i]) * (scales[i] * x_scale)).
 */
FUNCTION colibri_scale_rows_mve
    push {r4-r6, lr}
    SNAP_BEGIN q2, r12, r4
    lsrs r5, r2, #3
    and r2, r2, #7
    wls lr, r5, 2f
1:  SCALE
    SCALE
    le lr, 1b
2:  wlstp.32 lr, r2, 4f
3:  SCALE
    letp lr, 3b
4:  pop {r4-r6, pc}
END colibri_scale_rows_mve

#endif

    .section .note.GNU-stack, "", %progbits
