/* SPDX-License-Identifier: Apache-2.0 */
#include "constants.h"

#include "table.h"

/* For exp.h, in the order of its registers. */
const float colibri_exp_armv7em[18] = {
    -COLIBRI_LOG2E, COLIBRI_RINT_MAGIC, COLIBRI_LN2_HI, COLIBRI_LN2_LO, COLIBRI_E6, COLIBRI_EXP_LIMIT,
    COLIBRI_E5,     COLIBRI_E5,         COLIBRI_E4,     COLIBRI_E4,     COLIBRI_E3, COLIBRI_E3,
    COLIBRI_E2,     COLIBRI_E2,         1.0f,           1.0f,           1.0f,       1.0f,
};

/* SNAP: 2**-40 * DOWN is the smallest normal number, and DOWN * UP is 1. */
COLIBRI_STATIC_ASSERT(SNAP_BITS == COLIBRI_SNAP_BITS, "2**-40 in constants.h");
COLIBRI_STATIC_ASSERT((SNAP_BITS >> 23) + (DOWN_BITS >> 23) == 127 + 1, "2**-86 in constants.h");
COLIBRI_STATIC_ASSERT((DOWN_BITS >> 23) + (UP_BITS >> 23) == 127 + 127, "2**86 in constants.h");

COLIBRI_STATIC_ASSERT(offsetof(colibri_kv_rows_t, values) == KV_VALUES, "colibri_kv_rows_t in constants.h");
COLIBRI_STATIC_ASSERT(offsetof(colibri_kv_rows_t, scales) == KV_SCALES, "colibri_kv_rows_t in constants.h");
COLIBRI_STATIC_ASSERT(offsetof(colibri_kv_rows_t, n_rows) == KV_N_ROWS, "colibri_kv_rows_t in constants.h");
COLIBRI_STATIC_ASSERT(offsetof(colibri_kv_rows_t, n_cols) == KV_N_COLS, "colibri_kv_rows_t in constants.h");
COLIBRI_STATIC_ASSERT(offsetof(colibri_kv_rows_t, stride) == KV_STRIDE, "colibri_kv_rows_t in constants.h");
COLIBRI_STATIC_ASSERT(offsetof(colibri_kv_rows_t, scale_stride) == KV_SCALE_STRIDE, "colibri_kv_rows_t in constants.h");
