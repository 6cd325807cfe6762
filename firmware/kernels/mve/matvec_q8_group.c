/* SPDX-License-Identifier: Apache-2.0 */
#include "groups.h"

#if COLIBRI_USE_Q8_GROUP

void colibri_matvec_q8_group_mve(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                                 uint32_t row_begin, uint32_t row_end)
{
    colibri_mve_by_groups(out, matrix, weights, x, row_begin, row_end, weights + matrix->scales_offset, sizeof(float),
                          matrix->row_bytes, colibri_q8_group_blocks_mve, colibri_q8_group_rows_mve);
}

#endif
