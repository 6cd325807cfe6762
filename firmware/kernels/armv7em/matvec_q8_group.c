/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"
#include "table.h"

#if COLIBRI_USE_Q8_GROUP

void colibri_matvec_q8_group_armv7em(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                              uint32_t row_begin, uint32_t row_end)
{
    colibri_blocks_matvec_armv7em(colibri_q8_group_blocks_armv7em, out, matrix, weights, x, row_begin, row_end);
}

#endif
