/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M4, M7, and M33 with the DSP extension. */
#ifndef COLIBRI_ARMV7EM_TABLE_H
#define COLIBRI_ARMV7EM_TABLE_H

#include "../kernels.h"

/* Products and what they read. */
colibri_matvec_fn colibri_matvec_f32_armv7em, colibri_matvec_bf16_armv7em, colibri_matvec_f16_armv7em;
colibri_matvec_fn colibri_matvec_q8_armv7em, colibri_matvec_q8_group_armv7em, colibri_matvec_q4_armv7em;
colibri_widen_fn colibri_widen_q8_armv7em, colibri_widen_q4_armv7em;
colibri_quantise_vector_fn colibri_quantise_vector_armv7em;

#define COLIBRI_KERNEL_MATVEC_F32 colibri_matvec_f32_armv7em
#define COLIBRI_KERNEL_MATVEC_BF16 colibri_matvec_bf16_armv7em
#define COLIBRI_KERNEL_MATVEC_F16 colibri_matvec_f16_armv7em
#define COLIBRI_KERNEL_MATVEC_Q8 colibri_matvec_q8_armv7em
#define COLIBRI_KERNEL_MATVEC_Q8_GROUP colibri_matvec_q8_group_armv7em
#define COLIBRI_KERNEL_MATVEC_Q4 colibri_matvec_q4_armv7em
#define COLIBRI_KERNEL_WIDEN_Q8 colibri_widen_q8_armv7em
#define COLIBRI_KERNEL_WIDEN_Q4 colibri_widen_q4_armv7em
#define COLIBRI_KERNEL_QUANTISE_VECTOR colibri_quantise_vector_armv7em

/* Vectors. */
float colibri_dot_armv7em(const float *a, const float *b, uint32_t n);
void colibri_axpy_armv7em(float *y, float a, const float *x, uint32_t n);
void colibri_scale_armv7em(float *x, float a, uint32_t n);
void colibri_add_armv7em(float *x, const float *y, uint32_t n);
void colibri_normalise_armv7em(float *out, const float *x, float inv, const float *weights, uint32_t n);
uint32_t colibri_absmax_armv7em(const float *x, uint32_t n);
void colibri_softmax_armv7em(float *z, uint32_t n);
void colibri_swiglu_armv7em(float *g, const float *u, uint32_t n);
void colibri_rotate_armv7em(float *x, const float *cos, const float *sin, uint32_t n_pairs, uint32_t step, uint32_t distance);
void colibri_scores_f32_armv7em(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_scores_bf16_armv7em(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_scores_f16_armv7em(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_scores_q8_armv7em(float *z, const float *q, const colibri_kv_rows_t *keys);
void colibri_mix_f32_armv7em(float *o, const float *p, const colibri_kv_rows_t *values);
void colibri_mix_f16_armv7em(float *o, const float *p, const colibri_kv_rows_t *values);
void colibri_mix_q8_armv7em(float *o, const float *p, const colibri_kv_rows_t *values);
void colibri_narrow_f16_armv7em(uint16_t *out, const float *x, uint32_t n);

/* exp.h's constants. */
extern const float colibri_exp_armv7em[18];

#define COLIBRI_KERNEL_DOT colibri_dot_armv7em
#define COLIBRI_KERNEL_AXPY colibri_axpy_armv7em
#define COLIBRI_KERNEL_SCALE colibri_scale_armv7em
#define COLIBRI_KERNEL_ADD colibri_add_armv7em
#define COLIBRI_KERNEL_NORMALISE colibri_normalise_armv7em
#define COLIBRI_KERNEL_ABSMAX colibri_absmax_armv7em
#define COLIBRI_KERNEL_SOFTMAX colibri_softmax_armv7em
#define COLIBRI_KERNEL_SWIGLU colibri_swiglu_armv7em
#define COLIBRI_KERNEL_ROTATE colibri_rotate_armv7em
#define COLIBRI_KERNEL_SCORES_F32 colibri_scores_f32_armv7em
#define COLIBRI_KERNEL_SCORES_F16 colibri_scores_f16_armv7em
#define COLIBRI_KERNEL_SCORES_Q8 colibri_scores_q8_armv7em
#define COLIBRI_KERNEL_MIX_F32 colibri_mix_f32_armv7em
#define COLIBRI_KERNEL_MIX_F16 colibri_mix_f16_armv7em
#define COLIBRI_KERNEL_MIX_Q8 colibri_mix_q8_armv7em
#define COLIBRI_KERNEL_NARROW_F16 colibri_narrow_f16_armv7em

#endif
