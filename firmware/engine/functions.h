/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of docs/NUMERICS.md, section 6, that no kernel needs. None branches. */
#ifndef COLIBRI_FUNCTIONS_H
#define COLIBRI_FUNCTIONS_H

#include "../kernels/arith.h"
#include "../kernels/functions.h"

/* The operators that take a sigmoid. */
#define COLIBRI_NEEDS_SIGMOID                                                                                       \
    (COLIBRI_HAS_ROUTER_SCORES || COLIBRI_HAS_ROUTER_WEIGHTS || COLIBRI_HAS_ATTN_GATE || COLIBRI_HAS_SHARED_GATE || \
     COLIBRI_HAS_CLAMP || COLIBRI_HAS_ACT_GELU_TANH)

typedef struct colibri_sincos {
    float sin;
    float cos;
} colibri_sincos_t;

/* Any finite snapped x. */
float colibri_sigmoid(float x);
float colibri_tanh(float x);
float colibri_gelu_tanh(float x);
float colibri_gelu_erf(float x);

/* 0 <= t < 2**20. */
colibri_sincos_t colibri_sincos(float t);

#endif
