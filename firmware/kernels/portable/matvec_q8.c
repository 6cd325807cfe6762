/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_USE_Q8

/* Four rows at a time share the loads of x, eight columns the steps of the pointers: 2.5 instructions a MAC on a Cortex-M4. More
 * rows spill on Thumb (13 registers).
 *
 * BOUND: 65536 * 127 * 127 < 2**31.
 */
#define COLUMN(i)                 \
    do {                          \
        int32_t xi = xq[i];       \
        acc0 += w0[i] * xi;       \
        acc1 += w1[i] * xi;       \
        acc2 += w2[i] * xi;       \
        acc3 += w3[i] * xi;       \
    } while (0)

void colibri_matvec_q8_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                                uint32_t row_begin, uint32_t row_end)
{
    const float *scales = (const float *)(const void *)(weights + matrix->scales_offset);
    const float x_scale = x->quant_scales[0];
    const uint32_t n = matrix->row_bytes;
    const int8_t *x_begin = x->quant;
    const int8_t *x_end = x_begin + n;
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
        for (const int8_t *xq = x_begin; xq < x_end; xq += 8) {
            COLUMN(0);
            COLUMN(1);
            COLUMN(2);
            COLUMN(3);
            COLUMN(4);
            COLUMN(5);
            COLUMN(6);
            COLUMN(7);
            w0 += 8;
            w1 += 8;
            w2 += 8;
            w3 += 8;
        }
        w0 = w3;
        out[row] = colibri_snap((float)acc0 * (scales[row] * x_scale));
        out[row + 1] = colibri_snap((float)acc1 * (scales[row + 1] * x_scale));
        out[row + 2] = colibri_snap((float)acc2 * (scales[row + 2] * x_scale));
        out[row + 3] = colibri_snap((float)acc3 * (scales[row + 3] * x_scale));
    }
    for (; row < row_end; row++) {
        int32_t acc = 0;
        for (const int8_t *xq = x_begin; xq < x_end; xq += 4) {
            acc += w0[0] * xq[0] + w0[1] * xq[1] + w0[2] * xq[2] + w0[3] * xq[3];
            w0 += 4;
        }
        out[row] = colibri_snap((float)acc * (scales[row] * x_scale));
    }
}

#endif
