/* SPDX-License-Identifier: Apache-2.0 */
#include "dot8.h"

#if COLIBRI_USE_F16

/* binary16 through the integer of its significand: exact, and no operand is subnormal (flushing one would lose it). The
 * smallest value is 2**-24, so the only work left for the contract's snap is -0.0, and the integer 0 has no sign.
 */
static float widen(uint16_t half)
{
    uint32_t exponent = (uint32_t)half >> 10 & 31u;
    uint32_t normal = (exponent + 31u) >> 5; /* 1 where the exponent is not 0 */
    uint32_t significand = ((uint32_t)half & 0x3ffu) | normal << 10;
    uint32_t sign = 0u - ((uint32_t)half >> 15);
    uint32_t scale = (exponent + (normal ^ 1u) - 25u + 127u) << 23;
    return (float)(int32_t)((significand ^ sign) - sign) * colibri_from_bits(scale);
}

#define W(i) widen(w[i])
#define X(i) values[i]

static const uint16_t *row_of(const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    return (const uint16_t *)(const void *)(weights + (size_t)row * matrix->row_bytes);
}

void colibri_matvec_f16_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                                 uint32_t row_begin, uint32_t row_end)
{
    const float *values = x->values;
    uint32_t n = matrix->row_bytes / 2;
    for (uint32_t row = row_begin; row < row_end; row++) {
        const uint16_t *w = row_of(matrix, weights, row);
        COLIBRI_DOT8_BEGIN;
        for (uint32_t i = 0; i < n; i += 8) {
            COLIBRI_DOT8_STEP(W, X, i);
        }
        out[row] = colibri_snap(COLIBRI_DOT8_END);
    }
}

void colibri_widen_f16_portable(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row)
{
    const uint16_t *w = row_of(matrix, weights, row);
    for (uint32_t i = 0; i < matrix->cols; i++) {
        out[i] = widen(w[i]);
    }
}

#endif
