/* SPDX-License-Identifier: Apache-2.0 */
#include "mve.h"

/* r2 to r12, q5 and q6 of EXP in functions.S. */
const float colibri_exp_constants_mve[13] = {
    COLIBRI_LOG2E,
    COLIBRI_RINT_MAGIC + 86.0f,
    -COLIBRI_LN2_HI,
    -COLIBRI_LN2_LO,
    -COLIBRI_E5,
    COLIBRI_E4,
    -COLIBRI_E3,
    COLIBRI_E2,
    -1.0f,
    1.0f,
    0x1p86f,
    COLIBRI_EXP_LIMIT,
    COLIBRI_E6,
};
