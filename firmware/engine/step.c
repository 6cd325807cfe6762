/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over the stages. The header always names the next unit of work, so a slice starts where the last one ended and any
 * slicing is the same sequence of operators.
 */
#include "internal.h"

/* To the next layer, or the end of the token; 1 where that completes the call. */
static uint32_t advance_layer(colibri_state_header_t *h)
{
    h->layer++;
    h->stage = COLIBRI_STAGE_ATTN_NORM;
    if (h->layer < COLIBRI_N_LAYERS) {
        return 0;
    }
    h->layer = 0;
    if (h->logits && h->done + 1 == h->seq_len) {
        h->stage = COLIBRI_STAGE_FINAL_NORM;
        return 0;
    }
    h->stage = COLIBRI_STAGE_EMBED;
    h->position++;
    h->done++;
    return h->done == h->seq_len;
}

/* To the stage after the present one; 1 where that completes the call. */
static uint32_t advance(colibri_state_t *state)
{
    colibri_state_header_t *h = &state->header;
    h->unit = 0;
#if COLIBRI_HAS_ENCODER
    if (h->pass != COLIBRI_PASS_STEP && colibri_encode_ends(state)) {
        return colibri_encode_next(state);
    }
#endif
    switch (h->stage) {
#if COLIBRI_HAS_ENCODER
    case COLIBRI_STAGE_EMBED:
        h->layer = h->pass == COLIBRI_PASS_STEP ? COLIBRI_N_ENCODER_LAYERS : 0;
        h->stage++;
        break;
#endif
#if COLIBRI_HAS_NO_FFN
    case COLIBRI_STAGE_ATTN_RESIDUAL:
        if (COLIBRI_KIND_N_SLOTS(colibri_kind_of(state)) == 0) {
            return advance_layer(h);
        }
        h->stage++;
        break;
#endif
#if COLIBRI_HAS_MIXTURE
    case COLIBRI_STAGE_Q: /* one slot after the other */
    case COLIBRI_STAGE_O:
        h->slot++;
        if (h->slot == colibri_stage_slots(state)) {
            h->slot = 0;
            h->stage++;
        }
        break;
#endif
    case COLIBRI_STAGE_DOWN:
        h->slot = colibri_next_slot(state);
        if (h->slot == colibri_stage_slots(state)) {
            h->slot = 0;
            h->stage++;
        } else {
            h->stage = COLIBRI_STAGE_GATE;
        }
        break;
    case COLIBRI_STAGE_FFN_RESIDUAL:
        return advance_layer(h);
    case COLIBRI_STAGE_HEAD:
        h->stage = COLIBRI_STAGE_EMBED;
        h->position++;
        h->done++;
        return 1;
    default:
        h->stage++;
        break;
    }
    while (colibri_stage_size(state).n_units == 0) { /* not of this layer */
        h->stage++;
    }
    return 0;
}

/* How many of n_units fit the MACs that are left, at least one; *macs_left is lowered. No division: see attention.c. Mostly all of them
 * do, which one product shows where it cannot overflow. */
static uint32_t units_that_fit(uint32_t n_units, uint32_t macs_per_unit, uint32_t *macs_left)
{
    uint32_t n = 0;
    uint32_t left = *macs_left;
    if ((n_units | macs_per_unit) >> 16 == 0 && n_units * macs_per_unit <= left) {
        *macs_left = left - n_units * macs_per_unit;
        return n_units;
    }
    do {
        left -= macs_per_unit < left ? macs_per_unit : left;
        n++;
    } while (n < n_units && left != 0);
    *macs_left = left;
    return n;
}

/* Not inlined, so that no floating-point operation moves out from between enter and leave. */
static COLIBRI_NOINLINE colibri_status run_slice(const colibri_call_t *call, uint32_t max_macs)
{
    colibri_state_header_t *h = &call->state->header;
    uint32_t macs_left = max_macs;
    do {
        colibri_stage_size_t size = colibri_stage_size(call->state);
        uint32_t n = size.n_units - h->unit;
        if (max_macs != 0) {
            n = units_that_fit(n, size.macs_per_unit, &macs_left);
        }
        uint32_t end = h->unit + n;
        colibri_status status = colibri_stage_run(call, h->unit, end, end == size.n_units);
        if (status != COLIBRI_OK) {
            return status;
        }
        h->unit = end;
        if (end == size.n_units && advance(call->state)) {
            h->seq_len = 0;
            h->done = 0;
            h->logits = 0;
            h->ids_hash = 0;
            return COLIBRI_OK;
        }
    } while (macs_left != 0);
    return COLIBRI_MORE;
}

/* Of a call that was checked. */
static colibri_status run(const colibri_call_t *call, uint32_t max_macs)
{
    colibri_fp_control_t control = colibri_fp_enter();
    colibri_status status = run_slice(call, max_macs);
    colibri_fp_leave(control);
    if (status < 0) {
        call->state->header.status = (uint32_t)status;
        if (call->logits != NULL) {
            memset(call->logits, 0, COLIBRI_VOCAB_SIZE * sizeof(float));
        }
    }
    return status;
}

colibri_status colibri_step(const colibri_model_t *model, colibri_state_t *state, const int32_t *input_ids, int32_t seq_len,
                            float *logits, uint32_t max_macs)
{
    colibri_call_t call = {.model = model, .state = state, .input_ids = input_ids, .logits = logits};
    uint32_t ids_hash;
    colibri_status status = colibri_check_call(&call, seq_len, &ids_hash);
    if (status != COLIBRI_OK) {
        return status;
    }
    state->header.seq_len = (uint32_t)seq_len;
    state->header.logits = logits != NULL;
    state->header.ids_hash = ids_hash;
    return run(&call, max_macs);
}

#if COLIBRI_HAS_ENCODER
colibri_status colibri_encode_step(const colibri_model_t *model, colibri_state_t *state, const int32_t *source_ids,
                                   int32_t n_source, uint32_t max_macs)
{
    colibri_call_t call = {.model = model, .state = state, .input_ids = source_ids, .encodes = 1};
    uint32_t ids_hash;
    colibri_status status = colibri_check_call(&call, n_source, &ids_hash);
    if (status != COLIBRI_OK) {
        return status;
    }
    if (state->header.seq_len == 0) {
        colibri_encode_begin(state);
    }
    state->header.seq_len = (uint32_t)n_source;
    state->header.ids_hash = ids_hash;
    return run(&call, max_macs);
}
#endif
