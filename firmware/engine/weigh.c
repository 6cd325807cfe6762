/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of the chosen experts from their scores (docs/NUMERICS.md, section 7.8, steps 6 to 8). */
#include "functions.h"
#include "internal.h"

#if COLIBRI_HAS_ROUTER_WEIGHTS

static float norm_of(const float *weights, uint32_t n, uint32_t l2)
{
    float d = 0.0f;
    for (uint32_t j = 0; j < n; j++) {
        d = l2 ? colibri_fma(weights[j], weights[j], d) : d + weights[j];
    }
    return l2 ? colibri_sqrt(d) : d;
}

void colibri_weigh(float *weights, uint32_t router)
{
    (void)router;
    const uint32_t n = COLIBRI_ROUTER_TOP_K(router);
    const uint32_t rule = COLIBRI_ROUTER_WEIGHTS(router);
    if (rule == COLIBRI_WEIGHT_SOFTMAX) {
        colibri_kernels.softmax(weights, n);
    } else if (rule == COLIBRI_WEIGHT_SIGMOID) {
        for (uint32_t j = 0; j < n; j++) {
            weights[j] = colibri_sigmoid(weights[j]);
        }
    } else if (rule == COLIBRI_WEIGHT_ONE) {
        for (uint32_t j = 0; j < n; j++) {
            weights[j] = 1.0f;
        }
    }
    if (COLIBRI_ROUTER_RENORMALISE(router) != COLIBRI_RENORMALISE_NONE) {
        float d = norm_of(weights, n, COLIBRI_ROUTER_RENORMALISE(router) == COLIBRI_RENORMALISE_L2);
        d = colibri_max(d + COLIBRI_ROUTER_EPS(router), COLIBRI_ROUTER_FLOOR(router));
        for (uint32_t j = 0; j < n; j++) {
            weights[j] = colibri_snap(weights[j] / d);
        }
    }
    colibri_kernels.scale(weights, COLIBRI_ROUTER_SCALE(router), n);
}

#endif
