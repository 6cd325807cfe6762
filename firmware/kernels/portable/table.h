/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel set does not do better. Its own table.h, which names the rest, is included before. */
#ifndef COLIBRI_PORTABLE_TABLE_H
#define COLIBRI_PORTABLE_TABLE_H

#ifndef COLIBRI_KERNEL_MATVEC_F32
#define COLIBRI_KERNEL_MATVEC_F32 colibri_matvec_f32_portable
#endif
#ifndef COLIBRI_KERNEL_WIDEN_F32
#define COLIBRI_KERNEL_WIDEN_F32 colibri_widen_f32_portable
#endif
#ifndef COLIBRI_KERNEL_MATVEC_BF16
#define COLIBRI_KERNEL_MATVEC_BF16 colibri_matvec_bf16_portable
#endif
#ifndef COLIBRI_KERNEL_WIDEN_BF16
#define COLIBRI_KERNEL_WIDEN_BF16 colibri_widen_bf16_portable
#endif
#ifndef COLIBRI_KERNEL_MATVEC_F16
#define COLIBRI_KERNEL_MATVEC_F16 colibri_matvec_f16_portable
#endif
#ifndef COLIBRI_KERNEL_WIDEN_F16
#define COLIBRI_KERNEL_WIDEN_F16 colibri_widen_f16_portable
#endif
#ifndef COLIBRI_KERNEL_MATVEC_Q8
#define COLIBRI_KERNEL_MATVEC_Q8 colibri_matvec_q8_portable
#endif
#ifndef COLIBRI_KERNEL_MATVEC_Q8_GROUP
#define COLIBRI_KERNEL_MATVEC_Q8_GROUP colibri_matvec_q8_group_portable
#endif
#ifndef COLIBRI_KERNEL_WIDEN_Q8
#define COLIBRI_KERNEL_WIDEN_Q8 colibri_widen_q8_portable
#endif
#ifndef COLIBRI_KERNEL_MATVEC_Q4
#define COLIBRI_KERNEL_MATVEC_Q4 colibri_matvec_q4_portable
#endif
#ifndef COLIBRI_KERNEL_WIDEN_Q4
#define COLIBRI_KERNEL_WIDEN_Q4 colibri_widen_q4_portable
#endif
#ifndef COLIBRI_KERNEL_DOT
#define COLIBRI_KERNEL_DOT colibri_dot_portable
#endif
#ifndef COLIBRI_KERNEL_AXPY
#define COLIBRI_KERNEL_AXPY colibri_axpy_portable
#endif
#ifndef COLIBRI_KERNEL_SCALE
#define COLIBRI_KERNEL_SCALE colibri_scale_portable
#endif
#ifndef COLIBRI_KERNEL_ADD
#define COLIBRI_KERNEL_ADD colibri_add_portable
#endif
#ifndef COLIBRI_KERNEL_NORMALISE
#define COLIBRI_KERNEL_NORMALISE colibri_normalise_portable
#endif
#ifndef COLIBRI_KERNEL_ABSMAX
#define COLIBRI_KERNEL_ABSMAX colibri_absmax_portable
#endif
#ifndef COLIBRI_KERNEL_SOFTMAX
#define COLIBRI_KERNEL_SOFTMAX colibri_softmax_portable
#endif
#ifndef COLIBRI_KERNEL_SWIGLU
#define COLIBRI_KERNEL_SWIGLU colibri_swiglu_portable
#endif
#ifndef COLIBRI_KERNEL_ROTATE
#define COLIBRI_KERNEL_ROTATE colibri_rotate_portable
#endif
#ifndef COLIBRI_KERNEL_QUANTISE_VECTOR
#define COLIBRI_KERNEL_QUANTISE_VECTOR colibri_quantise_vector_portable
#endif
#ifndef COLIBRI_KERNEL_SCORES_F32
#define COLIBRI_KERNEL_SCORES_F32 colibri_scores_f32_portable
#endif
#ifndef COLIBRI_KERNEL_MIX_F32
#define COLIBRI_KERNEL_MIX_F32 colibri_mix_f32_portable
#endif
#ifndef COLIBRI_KERNEL_SCORES_F16
#define COLIBRI_KERNEL_SCORES_F16 colibri_scores_f16_portable
#endif
#ifndef COLIBRI_KERNEL_MIX_F16
#define COLIBRI_KERNEL_MIX_F16 colibri_mix_f16_portable
#endif
#ifndef COLIBRI_KERNEL_NARROW_F16
#define COLIBRI_KERNEL_NARROW_F16 colibri_narrow_f16_portable
#endif
#ifndef COLIBRI_KERNEL_SCORES_Q8
#define COLIBRI_KERNEL_SCORES_Q8 colibri_scores_q8_portable
#endif
#ifndef COLIBRI_KERNEL_MIX_Q8
#define COLIBRI_KERNEL_MIX_Q8 colibri_mix_q8_portable
#endif
#ifndef COLIBRI_KERNEL_QUANTISE
#define COLIBRI_KERNEL_QUANTISE colibri_quantise_portable
#endif

#endif
