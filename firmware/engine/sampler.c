/* SPDX-License-Identifier: Apache-2.0 */
/* docs/NUMERICS.md, section 8. The order of the candidates is never stored: the next one is the largest of those after the last,
 * one pass over the vocabulary each. That needs no scratch; for the few candidates that top_k and top_p leave it is cheaper than
 * a sort. The walks are done anew where they are needed twice.
 */
#include "../kernels/functions.h"
#include "internal.h"

static uint32_t rng_next(colibri_rng_t *rng)
{
    uint64_t old = rng->state;
    rng->state = old * COLIBRI_PCG32_MULTIPLIER + COLIBRI_PCG32_INCREMENT;
    uint32_t x = (uint32_t)(((old >> 18) ^ old) >> 27);
    uint32_t rotation = (uint32_t)(old >> 59);
    return x >> rotation | x << ((0u - rotation) & 31u);
}

colibri_status colibri_rng_seed(colibri_rng_t *rng, uint64_t seed)
{
    if (rng == NULL) {
        return COLIBRI_ERR_NULL;
    }
    rng->state = 0;
    (void)rng_next(rng);
    rng->state += seed;
    (void)rng_next(rng);
    return COLIBRI_OK;
}

static uint32_t argmax(const float *logits)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < COLIBRI_VOCAB_SIZE; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

/* Candidate after candidate in the order (e descending, id rising), or by rising id where the sampling imposes none. */
typedef struct candidates {
    const float *e;
    uint32_t ordered;
    uint32_t id; /* the last one handed out; VOCAB_SIZE: none yet */
} candidates_t;

static uint32_t next_candidate(candidates_t *walk)
{
    const float *e = walk->e;
    uint32_t last = walk->id;
    uint32_t first = last == COLIBRI_VOCAB_SIZE;
    if (!walk->ordered) {
        walk->id = first ? 0 : last + 1;
        return walk->id;
    }
    float limit = first ? 2.0f : e[last]; /* every e is at most 1 */
    uint32_t best = COLIBRI_VOCAB_SIZE;
    float largest = -1.0f;
    for (uint32_t i = 0; i < COLIBRI_VOCAB_SIZE; i++) {
        if (e[i] > largest && (e[i] < limit || (e[i] == limit && i > last))) {
            largest = e[i];
            best = i;
        }
    }
    walk->id = best;
    return best;
}

static COLIBRI_NOINLINE uint32_t draw(float *e, const colibri_sampling_t *sampling, colibri_rng_t *rng)
{
    const uint32_t top_k_active = sampling->top_k > 0 && sampling->top_k < COLIBRI_VOCAB_SIZE;
    const uint32_t top_p_active = sampling->top_p < 1.0f;
    const candidates_t by_id = {e, 0, COLIBRI_VOCAB_SIZE};
    const candidates_t by_e = {e, 1, COLIBRI_VOCAB_SIZE};
    float inv_t = 1.0f / sampling->temperature;
    float m = e[argmax(e)];
    for (uint32_t i = 0; i < COLIBRI_VOCAB_SIZE; i++) {
        e[i] = colibri_exp(colibri_snap(colibri_snap(e[i] - m) * inv_t));
    }

    uint32_t n = top_k_active ? (uint32_t)sampling->top_k : COLIBRI_VOCAB_SIZE;
    float total = 0.0f;
    candidates_t walk = top_k_active ? by_e : by_id;
    for (uint32_t i = 0; i < n; i++) {
        total += e[next_candidate(&walk)];
    }
    if (top_p_active) {
        float wanted = sampling->top_p * total;
        uint32_t i = 0;
        walk = by_e;
        total = 0.0f;
        do {
            total += e[next_candidate(&walk)];
            i++;
        } while (i < n && total < wanted);
        n = i;
    }

    float u = (float)(int32_t)(rng_next(rng) >> 8) * 0x1p-24f;
    float threshold = u * total;
    float sum = 0.0f;
    uint32_t chosen = 0;
    walk = top_k_active || top_p_active ? by_e : by_id;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = next_candidate(&walk);
        chosen = e[id] > 0.0f ? id : chosen;
        sum += e[id];
        if (sum > threshold) {
            break;
        }
    }
    return chosen;
}

int32_t colibri_sample(float *logits, const colibri_sampling_t *sampling, colibri_rng_t *rng)
{
    if (logits == NULL || sampling == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if (((uintptr_t)logits & 3u) != 0) {
        return COLIBRI_ERR_BUFFER_ALIGN;
    }
    /* Comparisons as integers of non-negative floats: a NaN fails them, and the caller's control register does not matter. */
    uint32_t temperature = colibri_bits(sampling->temperature);
    uint32_t greedy = (temperature & 0x7fffffffu) == 0;
    if (!greedy && (temperature < colibri_bits(0x1p-7f) || temperature > colibri_bits(0x1p7f))) {
        return COLIBRI_ERR_SAMPLING;
    }
    uint32_t top_p = colibri_bits(sampling->top_p);
    if (sampling->top_k < 0 || top_p == 0 || top_p > colibri_bits(1.0f)) {
        return COLIBRI_ERR_SAMPLING;
    }
    if (!greedy && rng == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if (colibri_check_range(logits, COLIBRI_VOCAB_SIZE) != COLIBRI_OK) {
        return COLIBRI_ERR_RANGE;
    }
    colibri_fp_control_t control = colibri_fp_enter();
    uint32_t id = greedy ? argmax(logits) : draw(logits, sampling, rng);
    colibri_fp_leave(control);
    return (int32_t)id;
}
