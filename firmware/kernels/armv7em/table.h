/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M4, M7, and M33 with the DSP extension. */
#ifndef COLIBRI_ARMV7EM_TABLE_H
#define COLIBRI_ARMV7EM_TABLE_H

#include "../kernels.h"

colibri_matvec_fn colibri_matvec_q8_armv7em, colibri_matvec_q8_group_armv7em, colibri_matvec_q4_armv7em;
colibri_widen_fn colibri_widen_q8_armv7em, colibri_widen_q4_armv7em;
colibri_quantise_vector_fn colibri_quantise_vector_armv7em;

#define COLIBRI_KERNEL_MATVEC_Q8 colibri_matvec_q8_armv7em
#define COLIBRI_KERNEL_MATVEC_Q8_GROUP colibri_matvec_q8_group_armv7em
#define COLIBRI_KERNEL_MATVEC_Q4 colibri_matvec_q4_armv7em
#define COLIBRI_KERNEL_WIDEN_Q8 colibri_widen_q8_armv7em
#define COLIBRI_KERNEL_WIDEN_Q4 colibri_widen_q4_armv7em
#define COLIBRI_KERNEL_QUANTISE_VECTOR colibri_quantise_vector_armv7em

#endif
