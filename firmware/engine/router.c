/* SPDX-License-Identifier: Apache-2.0 */
/* Which experts run, and with what weight (docs/NUMERICS.md, section 7.8): logits, scores, choice, weights. */
#include "functions.h"
#include "internal.h"

#if COLIBRI_MAX_EXPERTS > 0

/* out[e] = snap(dot8(row e, x)) for rows begin to end - 1 of n_cols elements. */
static void multiply(float *out, const float *rows, const float *x, uint32_t n_cols, uint32_t begin, uint32_t end)
{
    rows += (size_t)begin * COLIBRI_PAD8(n_cols);
    for (uint32_t e = begin; e < end; e++) {
        out[e] = colibri_kernels.dot(rows, x, n_cols);
        rows += COLIBRI_PAD8(n_cols);
    }
}

#if COLIBRI_NEEDS_FIRST_GATE
void colibri_router_hidden(colibri_state_t *state, const colibri_gate_t *gate, uint32_t begin, uint32_t end)
{
    float *t = state->scratch + COLIBRI_SCRATCH_ROUTER_HIDDEN;
    multiply(t, gate->hidden, state->norm, COLIBRI_HIDDEN_SIZE, begin, end);
#if COLIBRI_HAS_ROUTER_HIDDEN
    for (uint32_t e = begin; e < end && !COLIBRI_ROUTER_IS_HIERARCHICAL(gate->router); e++) {
        t[e] = colibri_tanh(t[e]);
    }
#endif
}
#endif

void colibri_router_logits(colibri_state_t *state, const colibri_gate_t *gate, uint32_t begin, uint32_t end)
{
    const float *x = state->norm;
    uint32_t n = COLIBRI_HIDDEN_SIZE;
#if COLIBRI_HAS_ROUTER_HIDDEN
    if (gate->hidden != NULL && !COLIBRI_ROUTER_IS_HIERARCHICAL(gate->router)) {
        x = state->scratch + COLIBRI_SCRATCH_ROUTER_HIDDEN;
        n = COLIBRI_ROUTER_N_EXPERTS(gate->router);
    }
#endif
    multiply(state->router, gate->weights, x, n, begin, end);
#if COLIBRI_HAS_BIAS
    colibri_add_bias(state->router, gate->bias, begin, end);
#endif
}

#if COLIBRI_HAS_ROUTER_SCORES
/* The scores of the logits. */
static void score(float *scores, const float *logits, uint32_t router)
{
    const uint32_t n = COLIBRI_ROUTER_N_EXPERTS(router);
    memcpy(scores, logits, n * sizeof(float));
    if (COLIBRI_ROUTER_SCORE(router) == COLIBRI_SCORE_SOFTMAX) {
        colibri_kernels.softmax(scores, n);
    } else if (COLIBRI_ROUTER_SCORE(router) == COLIBRI_SCORE_SIGMOID) {
        for (uint32_t e = 0; e < n; e++) {
            scores[e] = colibri_sigmoid(scores[e]);
        }
    }
}

/* values[id], without an access whose address depends on the choice. */
static float pick(const float *values, uint32_t n, uint32_t id)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < n; i++) {
        bits |= colibri_bits(values[i]) & colibri_mask_equal(i, id);
    }
    return colibri_from_bits(bits);
}

/* What the choice is made by. */
static void selection_values(float *choice, const float *scores, const colibri_gate_t *gate, float *of_groups)
{
    const uint32_t n = COLIBRI_ROUTER_N_EXPERTS(gate->router);
    memcpy(choice, scores, n * sizeof(float));
    if (gate->correction != NULL) {
        colibri_kernels.add(choice, gate->correction, n);
    }
#if COLIBRI_HAS_GROUPS
    if (COLIBRI_ROUTER_N_GROUPS(gate->router) != 0) {
        colibri_limit_groups(choice, gate->router, of_groups);
    }
#else
    (void)of_groups;
#endif
}
#endif

void colibri_route(int32_t *ids, float *weights, const float *logits, const colibri_gate_t *gate, float *scratch)
{
    const uint32_t router = gate->router;
    (void)router;
#if COLIBRI_HAS_SPARSEMIXER
    if (COLIBRI_ROUTER_IS_SPARSEMIXER(router)) {
        colibri_sparsemixer(ids, weights, logits, router);
        return;
    }
#endif
#if COLIBRI_HAS_HIERARCHY
    if (COLIBRI_ROUTER_IS_HIERARCHICAL(router)) {
        colibri_route_by_hierarchy(ids, weights, logits, router, scratch);
        return;
    }
#endif
#if COLIBRI_HAS_ROUTER_SCORES
    float *scores = scratch + COLIBRI_SCRATCH_ROUTER_SCORES;
    float *choice = scratch + COLIBRI_SCRATCH_ROUTER_CHOICE;
    score(scores, logits, router);
    selection_values(choice, scores, gate, scratch + COLIBRI_SCRATCH_ROUTER_HIDDEN);
    colibri_top_k(ids, weights, choice, COLIBRI_ROUTER_N_EXPERTS(router), COLIBRI_ROUTER_TOP_K(router));
    for (uint32_t j = 0; j < COLIBRI_ROUTER_TOP_K(router); j++) {
        weights[j] = pick(scores, COLIBRI_ROUTER_N_EXPERTS(router), (uint32_t)ids[j]);
    }
#if COLIBRI_HAS_TOP_P
    if (COLIBRI_ROUTER_TOP_P(router) > 0.0f) {
        colibri_shortest_prefix(ids, weights, router);
    }
#endif
#else
    (void)scratch;
    colibri_top_k(ids, weights, logits, COLIBRI_ROUTER_N_EXPERTS(router), COLIBRI_ROUTER_TOP_K(router));
#endif
#if COLIBRI_HAS_ROUTER_WEIGHTS
    colibri_weigh(weights, router);
#else
    colibri_kernels.softmax(weights, COLIBRI_ROUTER_TOP_K(router));
#endif
}

#endif
