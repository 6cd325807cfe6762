/* SPDX-License-Identifier: Apache-2.0 */
/* What MVE (Cortex-M55) does better. */
#ifndef COLIBRI_MVE_TABLE_H
#define COLIBRI_MVE_TABLE_H

#include "mve.h"

#define COLIBRI_KERNEL_MATVEC_Q8 colibri_matvec_q8_mve
#define COLIBRI_KERNEL_MATVEC_Q8_GROUP colibri_matvec_q8_group_mve
#define COLIBRI_KERNEL_MATVEC_Q4 colibri_matvec_q4_mve
#define COLIBRI_KERNEL_WIDEN_Q8 colibri_widen_q8_mve
#define COLIBRI_KERNEL_WIDEN_Q4 colibri_widen_q4_mve
#define COLIBRI_KERNEL_AXPY colibri_axpy_mve
#define COLIBRI_KERNEL_ABSMAX colibri_absmax_mve
#define COLIBRI_KERNEL_QUANTISE_VECTOR colibri_quantise_vector_mve
#define COLIBRI_KERNEL_QUANTISE colibri_quantise_mve

#endif
