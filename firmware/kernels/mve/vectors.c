/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that take or return floats, in front of routines that take bits: how floats are passed is the compiler's affair. */
#include "mve.h"

float colibri_dot_mve(const float *a, const float *b, uint32_t n)
{
    return colibri_from_bits(colibri_dot_bits_mve(a, b, n));
}

void colibri_axpy_mve(float *y, float a, const float *x, uint32_t n)
{
    colibri_axpy_bits_mve(y, x, n, colibri_bits(a));
}

void colibri_scale_mve(float *x, float a, uint32_t n)
{
    colibri_scale_bits_mve(x, n, colibri_bits(a));
}

void colibri_normalise_mve(float *out, const float *x, float inv, const float *weights, uint32_t n)
{
    colibri_normalise_bits_mve(out, x, weights, n, colibri_bits(inv));
}
