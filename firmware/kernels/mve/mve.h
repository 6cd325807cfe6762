/* SPDX-License-Identifier: Apache-2.0 */
/* Layout 3 and the assembly routines of this folder; each .S file says what its routines do.
 *
 * Rows are in blocks of 8; the last block has what is left. A block is in steps of 16 bytes of each of its rows, in order: 16
 * columns of int8, 32 of int4 (column i in the low nibble of byte i, column 16 + i in the high one). Rows are zero-padded to
 * whole steps. Scales of groups and multipliers: for each block, for each group, one for each of its rows. Float formats, and
 * scales of rows, are as in layout 1.
 */
#ifndef COLIBRI_MVE_H
#define COLIBRI_MVE_H

#include "../kernels.h"
#include "constants.h"

#define COLIBRI_MVE_BLOCK_ROWS 8u
#define COLIBRI_MVE_STEP_BYTES 16u


/* Rows of one block, by row range: how many, and where the first of them is. */
typedef struct colibri_mve_span {
    uint32_t n_rows;     /* block_rows == 8: perhaps several blocks, whole ones */
    uint32_t in_block;   /* the first row's place in its block */
    uint32_t block_rows; /* rows of the block */
} colibri_mve_span_t;

/* The first rows of row to row_end - 1 that one call takes: whole blocks as many as there are, or rows of one block. */
static inline colibri_mve_span_t colibri_mve_span(uint32_t rows, uint32_t row, uint32_t row_end)
{
    colibri_mve_span_t span = {row_end - row, row % COLIBRI_MVE_BLOCK_ROWS, COLIBRI_MVE_BLOCK_ROWS};
    if (span.in_block == 0 && span.n_rows >= COLIBRI_MVE_BLOCK_ROWS) {
        span.n_rows -= span.n_rows % COLIBRI_MVE_BLOCK_ROWS;
    } else {
        uint32_t in_matrix = rows - (row - span.in_block);
        span.block_rows = in_matrix < COLIBRI_MVE_BLOCK_ROWS ? in_matrix : COLIBRI_MVE_BLOCK_ROWS;
        uint32_t to_block_end = span.block_rows - span.in_block;
        span.n_rows = span.n_rows < to_block_end ? span.n_rows : to_block_end;
    }
    return span;
}

/* The group of a column: group is 0 (the whole row), 32, 64 or 128. */
static inline uint32_t colibri_mve_group_of(const colibri_matrix_t *matrix, uint32_t col)
{
    return matrix->group ? col >> (5 + (matrix->group >> 6)) : 0;
}

static inline uint32_t colibri_mve_n_groups(const colibri_matrix_t *matrix)
{
    return colibri_mve_group_of(matrix, matrix->cols - 1) + 1;
}

/* What the routines for groups work on. They count out, w, scales and n on. */
typedef struct colibri_mve_groups {
    float *out;
    const uint8_t *w;
    const void *scales; /* q8:G float, q4 uint8_t */
    uint32_t n;         /* blocks or rows */
    const int8_t *x;
    const int8_t *x_end; /* whole steps */
    const float *x_scales;
    uint32_t group;
    uint32_t block_rows;
} colibri_mve_groups_t;

COLIBRI_STATIC_ASSERT(SNAP_BITS == COLIBRI_SNAP_BITS && sizeof(void *) == 4 && offsetof(colibri_mve_groups_t, out) == GROUPS_OUT &&
                          offsetof(colibri_mve_groups_t, w) == GROUPS_W && offsetof(colibri_mve_groups_t, scales) == GROUPS_SCALES &&
                          offsetof(colibri_mve_groups_t, n) == GROUPS_N && offsetof(colibri_mve_groups_t, x) == GROUPS_X &&
                          offsetof(colibri_mve_groups_t, x_end) == GROUPS_X_END &&
                          offsetof(colibri_mve_groups_t, x_scales) == GROUPS_X_SCALES &&
                          offsetof(colibri_mve_groups_t, group) == GROUPS_GROUP &&
                          offsetof(colibri_mve_groups_t, block_rows) == GROUPS_BLOCK_ROWS,
                      "constants.h");

void colibri_f32_rows_mve(float *out, const uint8_t *w, const float *x, uint32_t n_steps, uint32_t n_rows, uint32_t row_bytes);
void colibri_bf16_rows_mve(float *out, const uint8_t *w, const float *x, uint32_t n_steps, uint32_t n_rows, uint32_t row_bytes);
void colibri_f16_rows_mve(float *out, const uint8_t *w, const float *x, uint32_t n_steps, uint32_t n_rows, uint32_t row_bytes);
void colibri_q8_blocks_mve(float *out, const uint8_t *w, const int8_t *x, uint32_t n_steps, uint32_t n_blocks);
void colibri_q8_rows_mve(float *out, const uint8_t *w, const int8_t *x, uint32_t n_steps, uint32_t step_bytes, uint32_t n_rows);
void colibri_q8_group_blocks_mve(colibri_mve_groups_t *job);
void colibri_q8_group_rows_mve(colibri_mve_groups_t *job);
void colibri_q4_blocks_mve(colibri_mve_groups_t *job);
void colibri_q4_rows_mve(colibri_mve_groups_t *job);
void colibri_scale_rows_mve(float *out, const float *scales, uint32_t n, uint32_t x_scale_bits);
uint32_t colibri_dot_bits_mve(const float *a, const float *b, uint32_t n);
void colibri_axpy_bits_mve(float *y, const float *x, uint32_t n, uint32_t a);
void colibri_scale_bits_mve(float *x, uint32_t n, uint32_t a);
void colibri_normalise_bits_mve(float *out, const float *x, const float *weights, uint32_t n, uint32_t inv);
extern const float colibri_exp_constants_mve[13];
void colibri_widen_step_mve(float *out, const uint8_t *w, uint32_t n, uint32_t scale);
void colibri_widen_nibbles_mve(float *out, const uint8_t *w, uint32_t n, uint32_t scale, uint32_t shift);

/* Kernels. */
float colibri_dot_mve(const float *a, const float *b, uint32_t n);
void colibri_axpy_mve(float *y, float a, const float *x, uint32_t n);
void colibri_scale_mve(float *x, float a, uint32_t n);
void colibri_add_mve(float *x, const float *y, uint32_t n);
void colibri_normalise_mve(float *out, const float *x, float inv, const float *weights, uint32_t n);
uint32_t colibri_absmax_mve(const float *x, uint32_t n);
void colibri_quantise_mve(int8_t *out, float *scale, const float *x, uint32_t n);
void colibri_softmax_mve(float *z, uint32_t n);
void colibri_swiglu_mve(float *g, const float *u, uint32_t n);
void colibri_rotate_mve(float *x, const float *cos, const float *sin, uint32_t n_pairs, uint32_t step, uint32_t distance);
void colibri_scores_f32_mve(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_scores_f16_mve(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_scores_q8_mve(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_mix_f32_mve(float *o, const float *p, const colibri_kv_rows_t *values);
void colibri_mix_f16_mve(float *o, const float *p, const colibri_kv_rows_t *values);
void colibri_mix_q8_mve(float *o, const float *p, const colibri_kv_rows_t *values);
void colibri_narrow_f16_mve(uint16_t *out, const float *x, uint32_t n);
colibri_matvec_fn colibri_matvec_f32_mve, colibri_matvec_bf16_mve, colibri_matvec_f16_mve;
colibri_matvec_fn colibri_matvec_q8_mve, colibri_matvec_q8_group_mve, colibri_matvec_q4_mve;
colibri_widen_fn colibri_widen_q8_mve, colibri_widen_q4_mve;
colibri_quantise_vector_fn colibri_quantise_vector_mve;

#endif
