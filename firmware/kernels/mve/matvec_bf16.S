/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__ARM_FEATURE_MVE)

#define FLOAT_ROWS colibri_bf16_rows_mve

.macro WEIGHTS q, from
    vldrh.u32 q\q, [\from], #8
    vshl.i32 q\q, q\q, #16
.endm

#include "float_rows.h"

#endif
