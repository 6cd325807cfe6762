/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

void colibri_embed(const colibri_model_t *model, colibri_state_t *state, int32_t id)
{
    const colibri_matrix_t *matrix = &colibri_matrices[COLIBRI_EMBEDDING_MATRIX];
    const uint8_t *weights = model->image + (size_t)COLIBRI_EMBEDDING_AT;
    uint32_t row = (uint32_t)id;
    switch (matrix->dtype) {
#if COLIBRI_USE_F32
    case COLIBRI_F32:
        colibri_kernels.widen_f32(state->x, matrix, weights, row);
        break;
#endif
#if COLIBRI_USE_BF16
    case COLIBRI_BF16:
        colibri_kernels.widen_bf16(state->x, matrix, weights, row);
        break;
#endif
#if COLIBRI_USE_F16
    case COLIBRI_F16:
        colibri_kernels.widen_f16(state->x, matrix, weights, row);
        break;
#endif
#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP
    case COLIBRI_Q8:
        colibri_kernels.widen_q8(state->x, matrix, weights, row);
        break;
#endif
#if COLIBRI_USE_Q4
    case COLIBRI_Q4:
        colibri_kernels.widen_q4(state->x, matrix, weights, row);
        break;
#endif
    default:
        break;
    }
#if COLIBRI_HAS_EMBEDDING_SCALE
    colibri_kernels.scale(state->x, COLIBRI_EMBEDDING_SCALE, COLIBRI_HIDDEN_SIZE);
#endif
}
