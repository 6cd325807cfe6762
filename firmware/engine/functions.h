/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of docs/NUMERICS.md, section 6, that no kernel needs. None branches. */
#ifndef COLIBRI_FUNCTIONS_H
#define COLIBRI_FUNCTIONS_H

#include "../kernels/arith.h"

typedef struct colibri_sincos {
    float sin;
    float cos;
} colibri_sincos_t;

/* 0 <= t < 2**20. */
colibri_sincos_t colibri_sincos(float t);

#endif
