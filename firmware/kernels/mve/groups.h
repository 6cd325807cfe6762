/* SPDX-License-Identifier: Apache-2.0 */
/* A product with scales of groups, as calls of the routines for whole blocks and for rows. */
#ifndef COLIBRI_MVE_GROUPS_H
#define COLIBRI_MVE_GROUPS_H

#include "mve.h"

typedef void colibri_mve_groups_fn(colibri_mve_groups_t *job);

/* scales: the matrix's first, each of scale_bytes; x_bytes: the columns in whole steps. */
static inline void colibri_mve_by_groups(float *out, const colibri_matrix_t *matrix, const uint8_t *weights,
                                         const colibri_vector_t *x, uint32_t row_begin, uint32_t row_end, const uint8_t *scales,
                                         uint32_t scale_bytes, uint32_t x_bytes, colibri_mve_groups_fn *blocks,
                                         colibri_mve_groups_fn *rows)
{
    const int8_t *xq = x->quant;
    const uint32_t n_groups = colibri_mve_n_groups(matrix);
    for (uint32_t row = row_begin; row < row_end;) {
        colibri_mve_span_t span = colibri_mve_span(matrix->rows, row, row_end);
        size_t block = row - span.in_block;
        colibri_mve_groups_t job = {
            .out = out + row,
            .w = weights + block * matrix->row_bytes + span.in_block * COLIBRI_MVE_STEP_BYTES,
            .scales = scales + (block * n_groups + span.in_block) * scale_bytes,
            .n = span.n_rows,
            .x = xq,
            .x_end = xq + x_bytes,
            .x_scales = x->quant_scales,
            .group = matrix->group ? matrix->group : x_bytes,
            .block_rows = span.block_rows,
        };
        if (span.n_rows >= COLIBRI_MVE_BLOCK_ROWS) {
            job.n = span.n_rows / COLIBRI_MVE_BLOCK_ROWS;
            blocks(&job);
        } else {
            rows(&job);
        }
        row += span.n_rows;
    }
}

#endif
