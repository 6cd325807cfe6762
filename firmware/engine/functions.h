/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of docs/NUMERICS.md, section 6. None branches. */
#ifndef COLIBRI_FUNCTIONS_H
#define COLIBRI_FUNCTIONS_H

#include "../kernels/arith.h"

typedef struct colibri_sincos {
    float sin;
    float cos;
} colibri_sincos_t;

/* exp(max(x, -28)). MUST: x <= 0. Result 0 or 2**-40 to 1. */
float colibri_exp(float x);

/* x * sigmoid(x), any finite snapped x. */
float colibri_silu(float x);

/* 0 <= t < 2**20. */
colibri_sincos_t colibri_sincos(float t);

#endif
