/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element, four at a time: kernels.h says what, scalars are passed as bits. The loops predicate their tail. */
#include "asm.h"

#if defined(__ARM_FEATURE_MVE)

/* void colibri_axpy_bits_mve(float *y, const float *x, uint32_t n, uint32_t a) */
FUNCTION colibri_axpy_bits_mve
    push {r4, lr}
    wlstp.32 lr, r2, 2f
1:  vldrw.u32 q0, [r0]
    vldrw.u32 q1, [r1], #16
    vfma.f32 q0, q1, r3
    vstrw.32 q0, [r0], #16
    letp lr, 1b
2:  pop {r4, pc}
END colibri_axpy_bits_mve

/* void colibri_scale_bits_mve(float *x, uint32_t n, uint32_t a) */
FUNCTION colibri_scale_bits_mve
    push {r4, lr}
    SNAP_BEGIN q3, r12, r4
    wlstp.32 lr, r1, 2f
1:  vldrw.u32 q0, [r0]
    vmul.f32 q0, q0, r2
    SNAP q0, q3, r12, r4
    vstrw.32 q0, [r0], #16
    letp lr, 1b
2:  pop {r4, pc}
END colibri_scale_bits_mve

/* void colibri_add_mve(float *x, const float *y, uint32_t n) */
FUNCTION colibri_add_mve
    push {r4, lr}
    SNAP_BEGIN q3, r12, r4
    wlstp.32 lr, r2, 2f
1:  vldrw.u32 q0, [r0]
    vldrw.u32 q1, [r1], #16
    vadd.f32 q0, q0, q1
    SNAP q0, q3, r12, r4
    vstrw.32 q0, [r0], #16
    letp lr, 1b
2:  pop {r4, pc}
END colibri_add_mve

/* void colibri_normalise_bits_mve(float *out, const float *x, const float *weights, uint32_t n, uint32_t inv) */
FUNCTION colibri_normalise_bits_mve
    push {r4-r6, lr}
    ldr r5, [sp, #16]
    SNAP_BEGIN q3, r12, r4
    wlstp.32 lr, r3, 2f
1:  vldrw.u32 q0, [r1], #16
    vmul.f32 q0, q0, r5
    SNAP q0, q3, r12, r4
    vldrw.u32 q1, [r2], #16
    vmul.f32 q0, q0, q1
    SNAP q0, q3, r12, r4
    vstrw.32 q0, [r0], #16
    letp lr, 1b
2:  pop {r4-r6, pc}
END colibri_normalise_bits_mve

/* uint32_t colibri_absmax_mve(const float *x, uint32_t n): of integers, so that no NaN is lost. */
FUNCTION colibri_absmax_mve
    push {r4, lr}
    movs r2, #0
    wlstp.32 lr, r1, 2f
1:  vldrw.u32 q0, [r0], #16
    vbic.i32 q0, #0x80000000
    vmaxv.u32 r2, q0
    letp lr, 1b
2:  mov r0, r2
    pop {r4, pc}
END colibri_absmax_mve

/* void colibri_rotate_mve(float *x, const float *cos, const float *sin, uint32_t n_pairs, uint32_t step, uint32_t distance)
 *
 * Gathers serve both kinds of pairs.
 */
FUNCTION colibri_rotate_mve
    push {r4-r6, lr}
    vpush {d8-d13}
    ldrd r4, r5, [sp, #64]
    add r5, r0, r5, lsl #2          /* the second elements */
    movs r6, #0
    vidup.u32 q4, r6, #1
    vmul.i32 q4, q4, r4
    lsls r4, r4, #4                 /* bytes of four pairs' step */
    SNAP_BEGIN q3, r12, r6
    wlstp.32 lr, r3, 2f
1:  vldrw.u32 q5, [r1], #16
    vldrw.u32 q6, [r2], #16
    vldrw.u32 q0, [r0, q4, uxtw #2]
    vldrw.u32 q1, [r5, q4, uxtw #2]
    vmul.f32 q2, q0, q5
    SNAP q2, q3, r12, r6
    vfms.f32 q2, q1, q6
    SNAP q2, q3, r12, r6
    vstrw.32 q2, [r0, q4, uxtw #2]
    vmul.f32 q2, q1, q5
    SNAP q2, q3, r12, r6
    vfma.f32 q2, q0, q6
    SNAP q2, q3, r12, r6
    vstrw.32 q2, [r5, q4, uxtw #2]
    add r0, r4
    add r5, r4
    letp lr, 1b
2:  vpop {d8-d13}
    pop {r4-r6, pc}
END colibri_rotate_mve

#endif

    .section .note.GNU-stack, "", %progbits
