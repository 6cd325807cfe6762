/* SPDX-License-Identifier: Apache-2.0 */
/* Widened -0.0 stays -0.0 here: it adds nothing to a sum that starts at +0.0. */
#if defined(__ARM_FEATURE_MVE)

#define FLOAT_ROWS colibri_f16_rows_mve

.macro WEIGHTS q, from
    vldrh.u32 q\q, [\from], #8
    WIDEN_HALF \q
.endm

#include "float_rows.h"

#endif
