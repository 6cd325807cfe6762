/* SPDX-License-Identifier: Apache-2.0 */
/* From a matrix's format to its kernel. The format is a constant of the model, so the switch does not depend on data. */
#include "internal.h"

void colibri_matvec(colibri_state_t *state, float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const float *x,
                    uint32_t fresh, uint32_t begin, uint32_t end)
{
    colibri_vector_t vector = {x, NULL, NULL};
#if COLIBRI_QUANT_BYTES > 0
    if (fresh && matrix->dtype >= COLIBRI_Q8) {
        colibri_kernels.quantise_vector(state->quant, state->quant_scales, matrix, x);
    }
    vector.quant = state->quant;
    vector.quant_scales = state->quant_scales;
#else
    (void)state;
    (void)fresh;
#endif
    switch (matrix->dtype) {
#if COLIBRI_USE_F32
    case COLIBRI_F32:
        colibri_kernels.matvec_f32(out, matrix, weights, &vector, begin, end);
        break;
#endif
#if COLIBRI_USE_BF16
    case COLIBRI_BF16:
        colibri_kernels.matvec_bf16(out, matrix, weights, &vector, begin, end);
        break;
#endif
#if COLIBRI_USE_F16
    case COLIBRI_F16:
        colibri_kernels.matvec_f16(out, matrix, weights, &vector, begin, end);
        break;
#endif
#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP
    case COLIBRI_Q8:
#if COLIBRI_USE_Q8 && COLIBRI_USE_Q8_GROUP
        if (matrix->group != 0) {
            colibri_kernels.matvec_q8_group(out, matrix, weights, &vector, begin, end);
        } else {
            colibri_kernels.matvec_q8(out, matrix, weights, &vector, begin, end);
        }
#elif COLIBRI_USE_Q8_GROUP
        colibri_kernels.matvec_q8_group(out, matrix, weights, &vector, begin, end);
#else
        colibri_kernels.matvec_q8(out, matrix, weights, &vector, begin, end);
#endif
        break;
#endif
#if COLIBRI_USE_Q4
    case COLIBRI_Q4:
        colibri_kernels.matvec_q4(out, matrix, weights, &vector, begin, end);
        break;
#endif
    default:
        break;
    }
}

#if COLIBRI_HAS_BIAS
void colibri_add_bias(float *out, const float *bias, uint32_t begin, uint32_t end)
{
    if (bias != NULL) {
        colibri_kernels.add(out + begin, bias + begin, end - begin);
    }
}
#endif
