/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#if COLIBRI_HAS_LAYER_NORM
/* dot8(x, ones): the same lanes, added in the same order. */
static float sum8(const float *x, uint32_t n)
{
    float lane[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    for (uint32_t i = 0; i < n; i++) {
        lane[i & 7u] += x[i];
    }
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static void centre(float *out, const float *x, uint32_t n, float rn)
{
    float mean = colibri_snap(colibri_snap(sum8(x, n)) * rn);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = colibri_snap(x[i] - mean);
    }
}
#endif

#if COLIBRI_HAS_PLAIN_NORM
static void multiply(float *out, const float *x, float inv, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = colibri_snap(x[i] * inv);
    }
}
#endif

void colibri_norm(float *out, const float *x, uint32_t n, uint32_t norm, const float *parameters)
{
    (void)norm;
    const float rn = 1.0f / (float)(int32_t)n;
#if COLIBRI_HAS_LAYER_NORM
    if (COLIBRI_NORM_IS_LAYER(norm)) {
        centre(out, x, n, rn);
        x = out;
    }
#endif
    float v = colibri_kernels.dot(x, x, n) * rn + COLIBRI_NORM_EPS(norm);
    float inv = 1.0f / colibri_sqrt(v);
#if COLIBRI_HAS_PLAIN_NORM
    if (!COLIBRI_NORM_HAS_WEIGHT(norm)) {
        multiply(out, x, inv, n);
        return;
    }
#endif
#if COLIBRI_HAS_NORM_BIAS
    if (COLIBRI_NORM_HAS_BIAS(norm)) {
        const float *bias = parameters + COLIBRI_PAD8(n);
        for (uint32_t i = 0; i < n; i++) {
            out[i] = colibri_snap(colibri_fma(colibri_snap(x[i] * inv), parameters[i], bias[i]));
        }
        return;
    }
#endif
    colibri_kernels.normalise(out, x, inv, parameters, n);
}
