/* SPDX-License-Identifier: Apache-2.0 */
#include "blocks.h"

#if COLIBRI_QUANT_BYTES > 0

void colibri_blocks_matvec_armv7em(colibri_blocks_fn *run, float *out, const colibri_matrix_t *matrix, const uint8_t *weights,
                                   const colibri_vector_t *x, uint32_t row_begin, uint32_t row_end)
{
    colibri_blocks_t blocks;
    blocks.weights = weights + (size_t)(row_begin / 4) * 4 * matrix->row_bytes;
    blocks.x = x->quant;
    blocks.x_scale = x->quant_scales;
    blocks.n_units = COLIBRI_PAD8(matrix->cols) / 8;
    blocks.group_units = matrix->group != 0 ? matrix->group / 8 : COLIBRI_SEGMENT_UNITS;
    for (uint32_t row = row_begin; row < row_end;) {
        uint32_t lane = row % 4;
        if (lane == 0 && row_end - row >= 4) {
            uint32_t n = (row_end - row) / 4 * 4;
            blocks.out = out + row;
            blocks.out_end = out + row + n;
            run(&blocks);
            row += n;
        } else {
            float four[4];
            blocks.out = four;
            blocks.out_end = four + 4;
            run(&blocks);
            for (; lane < 4 && row < row_end; lane++) {
                out[row++] = four[lane];
            }
        }
    }
}

#endif
