/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel layout 2 (docs/FORMAT.md, section 3): blocks of four rows, which the assembly takes whole. */
#ifndef COLIBRI_ARMV7EM_BLOCKS_H
#define COLIBRI_ARMV7EM_BLOCKS_H

#include "../kernels.h"

/* Columns come in units of eight. A sum of products over more than this many units could leave 32 bits: 127 * (256 * 127 + 127)
 * a column for q8, 127 * 32767 for q4; longer rows and groups are summed in segments. */
#define COLIBRI_SEGMENT_UNITS 64u

/* What the assembly reads, by offset, and how far it has come. */
typedef struct colibri_blocks {
    const uint8_t *weights; /* the first block */
    const void *x;          /* as quantise_vector wrote it */
    const float *x_scale;
    float *out;     /* where its four rows go */
    float *out_end; /* after those of the last block; not out */
    uint32_t n_units;
    uint32_t group_units; /* of a group or segment; the last may be shorter */
} colibri_blocks_t;

/* out .. out_end from whole blocks; weights and out are then those of the next block. */
typedef void colibri_blocks_fn(colibri_blocks_t *blocks);

colibri_blocks_fn colibri_q8_blocks_armv7em, colibri_q8_group_blocks_armv7em, colibri_q4_blocks_armv7em;

/* A matvec with `run`. A block of which only some rows are asked for is computed whole, beside out. */
void colibri_blocks_matvec_armv7em(colibri_blocks_fn *run, float *out, const colibri_matrix_t *matrix, const uint8_t *weights,
                                   const colibri_vector_t *x, uint32_t row_begin, uint32_t row_end);

#endif
