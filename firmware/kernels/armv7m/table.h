/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M3. */
#ifndef COLIBRI_ARMV7M_TABLE_H
#define COLIBRI_ARMV7M_TABLE_H

#include "../kernels.h"

colibri_matvec_fn colibri_matvec_q8_armv7m, colibri_matvec_q8_group_armv7m, colibri_matvec_q4_armv7m;
colibri_widen_fn colibri_widen_q8_armv7m, colibri_widen_q4_armv7m;
colibri_quantise_vector_fn colibri_quantise_vector_armv7m;

#define COLIBRI_KERNEL_MATVEC_Q8 colibri_matvec_q8_armv7m
#define COLIBRI_KERNEL_MATVEC_Q8_GROUP colibri_matvec_q8_group_armv7m
#define COLIBRI_KERNEL_MATVEC_Q4 colibri_matvec_q4_armv7m
#define COLIBRI_KERNEL_WIDEN_Q8 colibri_widen_q8_armv7m
#define COLIBRI_KERNEL_WIDEN_Q4 colibri_widen_q4_armv7m
#define COLIBRI_KERNEL_QUANTISE_VECTOR colibri_quantise_vector_armv7m

#endif
