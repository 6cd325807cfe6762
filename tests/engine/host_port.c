/* SPDX-License-Identifier: Apache-2.0 */
/* The port of the engine's tests, calls under another floating-point control, and the functions that are inline. */
#include <xmmintrin.h>

#include "kernels/functions.h"

#include "colibri/colibri.h"
#include "colibri/port.h"

uint64_t colibri_port_cycles(void);
int32_t test_forward_under(uint32_t *mxcsr, const colibri_model_t *model, colibri_state_t *state, const int32_t *ids, int32_t n,
                           float *logits);
int32_t test_sample_under(uint32_t *mxcsr, float *logits, const colibri_sampling_t *sampling, colibri_rng_t *rng);
uint32_t test_state_bytes(void);
float test_exp(float x);
float test_silu(float x);

static const uint64_t step = 1000;
static uint64_t cycles;

uint64_t colibri_port_cycles(void)
{
    cycles += step;
    return cycles;
}

int32_t test_forward_under(uint32_t *mxcsr, const colibri_model_t *model, colibri_state_t *state, const int32_t *ids, int32_t n,
                           float *logits)
{
    uint32_t saved = _mm_getcsr();
    _mm_setcsr(*mxcsr);
    int32_t status = colibri_forward(model, state, ids, n, logits, NULL);
    *mxcsr = _mm_getcsr();
    _mm_setcsr(saved);
    return status;
}

int32_t test_sample_under(uint32_t *mxcsr, float *logits, const colibri_sampling_t *sampling, colibri_rng_t *rng)
{
    uint32_t saved = _mm_getcsr();
    _mm_setcsr(*mxcsr);
    int32_t id = colibri_sample(logits, sampling, rng);
    *mxcsr = _mm_getcsr();
    _mm_setcsr(saved);
    return id;
}

uint32_t test_state_bytes(void)
{
    return (uint32_t)sizeof(colibri_state_t);
}

float test_exp(float x)
{
    return colibri_exp(x);
}

float test_silu(float x)
{
    return colibri_silu(x);
}
