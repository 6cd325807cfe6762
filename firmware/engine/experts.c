/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

/* h over g; its pad may hold what the scratch held before. */
void colibri_swiglu(colibri_state_t *state)
{
    float *g = state->scratch + COLIBRI_SCRATCH_GATE;
    const float *u = state->scratch + COLIBRI_SCRATCH_UP;
    colibri_kernels.swiglu(g, u, COLIBRI_FFN_WIDTH);
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
        colibri_kernels.scale(state->q, 1.0f, COLIBRI_HIDDEN_SIZE); /* snap */
    }
#else
    (void)state;
#endif
}
