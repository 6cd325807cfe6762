/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that instruction sets may do faster, behind one table.
 *
 * EXACT: every implementation gives the bits of _portable. The layout of a matrix (docs/DESIGN.md, section 1) is known here and
 * nowhere else in the engine. A kernel knows no model and no board.
 *
 * ALIAS: outputs overlap no input. Matrices are 16-byte aligned; vectors 4-byte, and of a length padded to 8 with zeros where
 * they multiply a matrix. COST: no kernel branches on data.
 */
#ifndef COLIBRI_KERNELS_H
#define COLIBRI_KERNELS_H

#include "arith.h"

enum { COLIBRI_F32, COLIBRI_BF16, COLIBRI_F16, COLIBRI_Q8, COLIBRI_Q4 };

/* How a matrix is stored: COLIBRI_MATRIX_... of model_config.h. Its bytes are passed beside it. */
typedef struct colibri_matrix {
    uint32_t rows;
    uint32_t cols;
    uint32_t dtype;
    uint32_t group; /* columns that share a scale; 0: the whole row */
    uint32_t layout;
    uint32_t row_bytes;
    uint32_t scales_offset; /* bytes from the matrix's start to its scales */
} colibri_matrix_t;

/* What a matrix multiplies: floats for the float formats; for the integer formats what quantise_vector of the same table wrote. */
typedef struct colibri_vector {
    const float *values;
    const void *quant;
    const float *quant_scales;
} colibri_vector_t;

/* out[r] = snap((W x)[r]) for row_begin <= r < row_end <= rows; no other element of out is touched.
 * Ranges: cols <= 65536 (q4: 8192): an int8 dot product fits an int32. Stack below 256 bytes. COST: one MAC an element.
 */
typedef void colibri_matvec_fn(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const colibri_vector_t *x,
                               uint32_t row_begin, uint32_t row_end);

/* x (cols elements) quantised for `matrix`, an integer matrix, in the form that the matvecs of the same table read: one scale a
 * group for q8:G, one for all else. `quant` is 4-byte aligned; how many bytes of it are written the image's kernel layout says
 * (scripts/colibri/image/kernel_layouts: quant_bytes).
 */
typedef void colibri_quantise_vector_fn(void *quant, float *scales, const colibri_matrix_t *matrix, const float *x);

/* out[i] = the value used (docs/NUMERICS.md, section 5) of element i of one row, 0 <= i < cols. */
typedef void colibri_widen_fn(float *out, const colibri_matrix_t *matrix, const uint8_t *weights, uint32_t row);

/* The keys or values of one KV head at n_rows positions in a row, as the cache holds them. The value of an element of f16 is
 * snap(f32(element)), which only makes +0.0 of -0.0; of q8, snap(f32(element) * scale of its row). MUST: n_rows >= 1; scales are as quantise
 * writes them, at least 2**-40 or, where all elements are, 0.
 */
typedef struct colibri_kv_rows {
    const void *values;    /* float; f16: uint16_t; q8: int8_t */
    const float *scales;   /* q8: one a row; else NULL */
    uint32_t n_rows;
    uint32_t n_cols;       /* the head's dimension, any */
    uint32_t stride;       /* elements from a row to the next */
    uint32_t scale_stride; /* scales from a row's to the next row's */
} colibri_kv_rows_t;

typedef struct colibri_kernels {
    uint32_t layout;
#if COLIBRI_USE_F32
    colibri_matvec_fn *matvec_f32;
    colibri_widen_fn *widen_f32;
#endif
#if COLIBRI_USE_BF16
    colibri_matvec_fn *matvec_bf16;
    colibri_widen_fn *widen_bf16;
#endif
#if COLIBRI_USE_F16
    colibri_matvec_fn *matvec_f16;
    colibri_widen_fn *widen_f16;
#endif
#if COLIBRI_USE_Q8
    colibri_matvec_fn *matvec_q8;
#endif
#if COLIBRI_USE_Q8_GROUP
    colibri_matvec_fn *matvec_q8_group;
#endif
#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP
    colibri_widen_fn *widen_q8;
#endif
#if COLIBRI_USE_Q4
    colibri_matvec_fn *matvec_q4;
    colibri_widen_fn *widen_q4;
#endif
    /* Vectors, of any length n. "In place" means that the first operand is also the result. */

    /* snap(dot8(a, b)); 0 for n = 0. */
    float (*dot)(const float *a, const float *b, uint32_t n);
    /* y[i] = fma(a, x[i], y[i]), in place; not snapped. */
    void (*axpy)(float *y, float a, const float *x, uint32_t n);
    /* x[i] = snap(x[i] * a), in place. */
    void (*scale)(float *x, float a, uint32_t n);
    /* x[i] = snap(x[i] + y[i]), in place. */
    void (*add)(float *x, const float *y, uint32_t n);
    /* out[i] = snap(snap(x[i] * inv) * weights[i]): RMSNorm once its scalar is known. out may be x. */
    void (*normalise)(float *out, const float *x, float inv, const float *weights, uint32_t n);
    /* The largest colibri_magnitude(x[i]), for NaN and infinities too; 0 for n = 0. */
    uint32_t (*absmax)(const float *x, uint32_t n);
    /* Scores to probabilities, in place: m = max z; e[i] = exp(max(snap(z[i] - m), -28)); S = their sum, i rising;
     * z[i] = snap(e[i] / S). MUST: n >= 1; z finite, without -0.0. */
    void (*softmax)(float *z, uint32_t n);
    /* g[i] = snap(silu(g[i]) * u[i]), in place. MUST: g and u snapped and below 2**100. */
    void (*swiglu)(float *g, const float *u, uint32_t n);
    /* RoPE of one head, in place: for pair i, x0 = x[step * i] and x1 = x[step * i + distance] become
     * snap(fma(-x1, sin[i], snap(x0 * cos[i]))) and snap(fma(x0, sin[i], snap(x1 * cos[i]))).
     * step 1, distance n_pairs: half; step 2, distance 1: adjacent. */
    void (*rotate)(float *x, const float *cos, const float *sin, uint32_t n_pairs, uint32_t step, uint32_t distance);
#if COLIBRI_QUANT_BYTES > 0
    colibri_quantise_vector_fn *quantise_vector;
#endif

    /* The KV cache, in the model's one format. */

    /* z[t] = snap(dot8(q, k_t)), 0 <= t < n_rows. */
    void (*scores)(float *z, const float *q, const colibri_kv_rows_t *keys);
    /* o[d] = +0.0; o[d] = fma(p[t], v_t[d], o[d]), t rising; o[d] = snap(o[d]). */
    void (*mix)(float *o, const float *p, const colibri_kv_rows_t *values);
#if COLIBRI_KV_F16
    /* n elements to binary16, rounded to nearest even. MUST: |x[i]| < 65520. */
    void (*narrow_f16)(uint16_t *out, const float *x, uint32_t n);
#endif
#if COLIBRI_KV_Q8
    /* n elements to int8 with one scale. */
    void (*quantise)(int8_t *out, float *scale, const float *x, uint32_t n);
#endif
} colibri_kernels_t;

/* The table of this build: select.c. */
extern const colibri_kernels_t colibri_kernels;

/* 1 where the core that runs has what the table needs. */
uint32_t colibri_kernels_supported(void);

/* Portable implementations, for the tables: a kernel set takes them for what it does not do better (portable/table.h). */
colibri_matvec_fn colibri_matvec_f32_portable, colibri_matvec_bf16_portable, colibri_matvec_f16_portable;
colibri_matvec_fn colibri_matvec_q8_portable, colibri_matvec_q8_group_portable, colibri_matvec_q4_portable;
colibri_widen_fn colibri_widen_f32_portable, colibri_widen_bf16_portable, colibri_widen_f16_portable;
colibri_widen_fn colibri_widen_q8_portable, colibri_widen_q4_portable;
float colibri_dot_portable(const float *a, const float *b, uint32_t n);
void colibri_axpy_portable(float *y, float a, const float *x, uint32_t n);
void colibri_scale_portable(float *x, float a, uint32_t n);
void colibri_add_portable(float *x, const float *y, uint32_t n);
void colibri_normalise_portable(float *out, const float *x, float inv, const float *weights, uint32_t n);
uint32_t colibri_absmax_portable(const float *x, uint32_t n);
colibri_quantise_vector_fn colibri_quantise_vector_portable;
void colibri_quantise_portable(int8_t *out, float *scale, const float *x, uint32_t n);
void colibri_softmax_portable(float *z, uint32_t n);
void colibri_swiglu_portable(float *g, const float *u, uint32_t n);
void colibri_rotate_portable(float *x, const float *cos, const float *sin, uint32_t n_pairs, uint32_t step, uint32_t distance);
void colibri_scores_f32_portable(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_scores_q8_portable(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_mix_f32_portable(float *o, const float *p, const colibri_kv_rows_t *values);
void colibri_mix_q8_portable(float *o, const float *p, const colibri_kv_rows_t *values);
void colibri_scores_f16_portable(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_mix_f16_portable(float *o, const float *p, const colibri_kv_rows_t *values);
void colibri_narrow_f16_portable(uint16_t *out, const float *x, uint32_t n);

#endif
