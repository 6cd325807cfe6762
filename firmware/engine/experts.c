/* SPDX-License-Identifier: Apache-2.0 */
#include "functions.h"
#include "internal.h"

/* h over g; its pad may hold what the scratch held before. */
void colibri_swiglu(colibri_state_t *state)
{
    float *g = state->scratch + COLIBRI_SCRATCH_GATE;
    const float *u = state->scratch + COLIBRI_SCRATCH_UP;
    for (uint32_t i = 0; i < COLIBRI_FFN_WIDTH; i++) {
        g[i] = colibri_snap(colibri_silu(g[i]) * u[i]);
    }
    memset(g + COLIBRI_FFN_WIDTH, 0, (COLIBRI_FFN_PAD - COLIBRI_FFN_WIDTH) * sizeof(float));
}

/* The sum stands in q, which is free by then. A dense block's output is not copied there. */
void colibri_combine(colibri_state_t *state)
{
#if COLIBRI_N_EXPERTS > 0
    uint32_t slot = state->header.slot;
    if (slot == 0) {
        memset(state->q, 0, COLIBRI_HIDDEN_SIZE * sizeof(float));
    }
    colibri_kernels.axpy(state->q, state->expert_weights[slot], state->scratch + COLIBRI_SCRATCH_OUT, COLIBRI_HIDDEN_SIZE);
    if (slot == COLIBRI_TOP_K - 1) {
        for (uint32_t i = 0; i < COLIBRI_HIDDEN_SIZE; i++) {
            state->q[i] = colibri_snap(state->q[i]);
        }
    }
#else
    (void)state;
#endif
}
