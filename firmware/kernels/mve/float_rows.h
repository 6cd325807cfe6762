/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a float format times a vector. The including file, one for each format, defines FLOAT_ROWS, the routine's name, and
 *
 *     WEIGHTS q, from          four elements at `from`, which moves on, as floats in the vector of that number
 */
#include "asm.h"

/* void FLOAT_ROWS(float *out, const uint8_t *w, const float *x, uint32_t n_steps, uint32_t n_rows, uint32_t row_bytes)
 *
 * n_steps of 8 columns, n_rows >= 1. Two rows share the loads of x. Results are snapped in a second pass.
 */
FUNCTION FLOAT_ROWS
    push {r0, r4-r7, lr}
    vpush {d8-d11}
    ldrd r4, r7, [sp, #56]
    mov r12, r4
    subs r4, #2
    blo 4f
1:  add r6, r1, r7
    mov r5, r2
    vmov.i32 q0, #0
    vmov.i32 q1, #0
    vmov.i32 q4, #0
    vmov.i32 q5, #0
    dls lr, r3
2:  vldrw.u32 q2, [r5], #16
    WEIGHTS 3, r1
    vfma.f32 q0, q2, q3
    WEIGHTS 3, r6
    vfma.f32 q4, q2, q3
    vldrw.u32 q2, [r5], #16
    WEIGHTS 3, r1
    vfma.f32 q1, q2, q3
    WEIGHTS 3, r6
    vfma.f32 q5, q2, q3
    le lr, 2b
    DOT8_END
    vstmia r0!, {s0}
    vmov q0, q4
    vmov q1, q5
    DOT8_END
    vstmia r0!, {s0}
    mov r1, r6
    subs r4, #2
    bhs 1b
4:  adds r4, #2
    beq 6f
    vmov.i32 q0, #0
    vmov.i32 q1, #0
    dls lr, r3
5:  vldrw.u32 q2, [r2], #16
    WEIGHTS 3, r1
    vfma.f32 q0, q2, q3
    vldrw.u32 q2, [r2], #16
    WEIGHTS 3, r1
    vfma.f32 q1, q2, q3
    le lr, 5b
    DOT8_END
    vstmia r0!, {s0}
6:  ldr r0, [sp, #32]
    SNAP_BEGIN q1, r2, r3
    dlstp.32 lr, r12
7:  vldrw.u32 q0, [r0]
    SNAP q0, q1, r2, r3
    vstrw.32 q0, [r0], #16
    letp lr, 7b
    vpop {d8-d11}
    pop {r0, r4-r7, pc}
END FLOAT_ROWS

    .section .note.GNU-stack, "", %progbits
