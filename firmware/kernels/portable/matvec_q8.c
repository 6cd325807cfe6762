/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_USE_Q8

/* Four rows at a time share the loads of x: 2.25 instructions a MAC on a core with one-cycle loads and a multiply-accumulate.
 * More rows spill on Thumb (13 registers).
 *
 * BOUND: 65536 * 127 * 127 < 2**31.
 */
void colibri_matvec_q8_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                                uint32_t row_begin, uint32_t row_end)
{
    const float *scales = (const float *)(const void *)(weights + matrix->scales_offset);
    const float x_scale = x->quant_scales[0];
    const uint32_t n = matrix->row_bytes;
    const int8_t *x_end = x->quant + n;
    const int8_t *w0 = (const int8_t *)(weights + (size_t)row_begin * n);
    uint32_t row = row_begin;
    for (; row + 4 <= row_end; row += 4) {
        const int8_t *w1 = w0 + n;
        const int8_t *w2 = w1 + n;
        const int8_t *w3 = w2 + n;
        int32_t acc0 = 0;
        int32_t acc1 = 0;
        int32_t acc2 = 0;
        int32_t acc3 = 0;
        for (const int8_t *xq = x->quant; xq < x_end; xq += 4) {
            acc0 += w0[0] * xq[0];
            acc1 += w1[0] * xq[0];
            acc2 += w2[0] * xq[0];
            acc3 += w3[0] * xq[0];
            acc0 += w0[1] * xq[1];
            acc1 += w1[1] * xq[1];
            acc2 += w2[1] * xq[1];
            acc3 += w3[1] * xq[1];
            acc0 += w0[2] * xq[2];
            acc1 += w1[2] * xq[2];
            acc2 += w2[2] * xq[2];
            acc3 += w3[2] * xq[2];
            acc0 += w0[3] * xq[3];
            acc1 += w1[3] * xq[3];
            acc2 += w2[3] * xq[3];
            acc3 += w3[3] * xq[3];
            w0 += 4;
            w1 += 4;
            w2 += 4;
            w3 += 4;
        }
        w0 = w3;
        out[row] = colibri_snap((float)acc0 * (scales[row] * x_scale));
        out[row + 1] = colibri_snap((float)acc1 * (scales[row + 1] * x_scale));
        out[row + 2] = colibri_snap((float)acc2 * (scales[row + 2] * x_scale));
        out[row + 3] = colibri_snap((float)acc3 * (scales[row + 3] * x_scale));
    }
    for (; row < row_end; row++) {
        int32_t acc = 0;
        for (const int8_t *xq = x->quant; xq < x_end; xq += 4) {
            acc += w0[0] * xq[0] + w0[1] * xq[1] + w0[2] * xq[2] + w0[3] * xq[3];
            w0 += 4;
        }
        out[row] = colibri_snap((float)acc * (scales[row] * x_scale));
    }
}

#endif
