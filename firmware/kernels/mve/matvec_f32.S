/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__ARM_FEATURE_MVE)

#define FLOAT_ROWS colibri_f32_rows_mve

.macro WEIGHTS q, from
    vldrw.u32 q\q, [\from], #16
.endm

#include "float_rows.h"

#endif
