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
#ifndef COLIBRI_KERNEL_ABSMAX
#define COLIBRI_KERNEL_ABSMAX colibri_absmax_portable
#endif
#ifndef COLIBRI_KERNEL_QUANTISE_VECTOR
#define COLIBRI_KERNEL_QUANTISE_VECTOR colibri_quantise_vector_portable
#endif
#ifndef COLIBRI_KERNEL_QUANTISE
#define COLIBRI_KERNEL_QUANTISE colibri_quantise_portable
#endif
#ifndef COLIBRI_KERNEL_DOT_Q8
#define COLIBRI_KERNEL_DOT_Q8 colibri_dot_q8_portable
#endif
#ifndef COLIBRI_KERNEL_AXPY_Q8
#define COLIBRI_KERNEL_AXPY_Q8 colibri_axpy_q8_portable
#endif

#endif
