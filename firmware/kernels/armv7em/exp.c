/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

/* For exp.h, in the order of its registers. */
const float colibri_exp_armv7em[18] = {
    -COLIBRI_LOG2E, COLIBRI_RINT_MAGIC, COLIBRI_LN2_HI, COLIBRI_LN2_LO, COLIBRI_E6, COLIBRI_EXP_LIMIT,
    COLIBRI_E5,     COLIBRI_E5,         COLIBRI_E4,     COLIBRI_E4,     COLIBRI_E3, COLIBRI_E3,
    COLIBRI_E2,     COLIBRI_E2,         1.0f,           1.0f,           1.0f,       1.0f,
};
