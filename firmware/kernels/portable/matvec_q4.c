/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

#if COLIBRI_USE_Q4

/* Element 2i is the low nibble of byte i, in two's complement. */
static int32_t low(uint8_t byte)
{
    return (int32_t)((byte & 15u) ^ 8u) - 8;
}

static int32_t high(uint8_t byte)
{
    return (int32_t)((uint32_t)(byte >> 4) ^ 8u) - 8;
}

/* Columns that share a multiplier; the padded row where there is one a row. */
static uint32_t group_of(const colibri_matrix_t *matrix)
{
    return matrix->group != 0 ? matrix->group : matrix->row_bytes * 2;
}

static uint32_t groups_of(const colibri_matrix_t *matrix)
{
    const uint32_t log2 = 5 + (matrix->group >> 6); /* 32, 64, 128 -> 5, 6, 7 */
    return matrix->group != 0 ? (matrix->cols + matrix->group - 1) >> log2 : 1;
}

static const float *scales_of(const colibri_matrix_t *matrix, const uint8_t *weights)
{
    return (const float *)(const void *)(weights + matrix->scales_offset);
}

static const uint8_t *multipliers_of(const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    return weights + matrix->scales_offset + (size_t)matrix->rows * 4 + (size_t)row * groups_of(matrix);
}

/* BOUND: 8192 * 7 * 127 * 255 < 2**31. */
void colibri_matvec_q4_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                                uint32_t row_begin, uint32_t row_end)
{
    const uint32_t n = matrix->row_bytes * 2;
    const uint32_t group = group_of(matrix);
    const uint32_t n_groups = groups_of(matrix);
    const float *scales = scales_of(matrix, weights);
    const uint8_t *multiplier = multipliers_of(matrix, weights, row_begin);
    const uint8_t *w = weights + (size_t)row_begin * matrix->row_bytes;
    for (uint32_t row = row_begin; row < row_end; row++) {
        const int8_t *xq = x->quant;
        const int8_t *x_end = xq + n;
        int32_t sum = 0;
        for (uint32_t g = 0; g < n_groups; g++) {
            const int8_t *group_end = (uint32_t)(x_end - xq) < group ? x_end : xq + group;
            int32_t acc = 0;
            for (; xq < group_end; xq += 8) {
                acc += low(w[0]) * xq[0];
                acc += high(w[0]) * xq[1];
                acc += low(w[1]) * xq[2];
                acc += high(w[1]) * xq[3];
                acc += low(w[2]) * xq[4];
                acc += high(w[2]) * xq[5];
                acc += low(w[3]) * xq[6];
                acc += high(w[3]) * xq[7];
                w += 4;
            }
            sum += *multiplier++ * acc;
        }
        out[row] = colibri_snap((float)sum * (scales[row] * x->quant_scales[0]));
    }
}

void colibri_widen_q4_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const uint8_t *w = weights + (size_t)row * matrix->row_bytes;
    const uint8_t *multiplier = multipliers_of(matrix, weights, row);
    const float row_scale = scales_of(matrix, weights)[row];
    const uint32_t group = group_of(matrix);
    for (uint32_t begin = 0; begin < matrix->cols; begin += group) {
        float scale = (float)*multiplier++ * row_scale;
        for (uint32_t i = begin; i < begin + group && i < matrix->cols; i++) {
            int32_t q = i & 1u ? high(w[i / 2]) : low(w[i / 2]);
            out[i] = colibri_snap((float)q * scale);
        }
    }
}

#endif
