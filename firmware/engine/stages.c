/* SPDX-License-Identifier: Apache-2.0 */
/* What each stage consists of, and its units. Range checks stand where docs/NUMERICS.md, section 3, has them. */
#include "internal.h"

static colibri_stage_size_t of_matrix(const colibri_matrix_t *matrix)
{
    colibri_stage_size_t size = {matrix->rows, matrix->cols};
    return size;
}

colibri_stage_size_t colibri_stage_size(const colibri_state_t *state)
{
    colibri_stage_size_t size = {1, COLIBRI_HIDDEN_SIZE};
    switch (state->header.stage) {
    case COLIBRI_STAGE_Q:
        return of_matrix(&colibri_matrix_q);
    case COLIBRI_STAGE_K:
        return of_matrix(&colibri_matrix_k);
    case COLIBRI_STAGE_V:
        return of_matrix(&colibri_matrix_v);
    case COLIBRI_STAGE_ROPE:
        size.macs_per_unit = COLIBRI_Q_ELEMS + COLIBRI_KV_ELEMS;
        return size;
    case COLIBRI_STAGE_ATTENTION:
        size.n_units = COLIBRI_N_HEADS;
        size.macs_per_unit = 2u * COLIBRI_HEAD_DIM * (state->header.position + 1 - colibri_attention_begin(state->header.position));
        return size;
    case COLIBRI_STAGE_O:
        return of_matrix(&colibri_matrix_o);
#if COLIBRI_N_EXPERTS > 0
    case COLIBRI_STAGE_ROUTER:
        size.n_units = COLIBRI_N_EXPERTS;
        return size;
#endif
    case COLIBRI_STAGE_GATE:
        return of_matrix(&colibri_matrix_gate);
    case COLIBRI_STAGE_UP:
        return of_matrix(&colibri_matrix_up);
    case COLIBRI_STAGE_ACT:
        size.macs_per_unit = COLIBRI_FFN_WIDTH;
        return size;
    case COLIBRI_STAGE_DOWN:
        return of_matrix(&colibri_matrix_down);
    case COLIBRI_STAGE_HEAD:
        return of_matrix(&colibri_matrix_head);
    default: /* one vector operator over the hidden size */
        return size;
    }
}

/* One norm: the stages differ in the weights. */
static colibri_status norm(const colibri_call_t *call, size_t offset)
{
    colibri_state_t *state = call->state;
    colibri_rmsnorm(state->norm, state->x, colibri_floats_at(call->model->image + offset));
    return colibri_check_range(state->norm, COLIBRI_HIDDEN_SIZE);
}

static colibri_status residual(colibri_state_t *state, const float *y)
{
    colibri_kernels.add(state->x, y, COLIBRI_HIDDEN_SIZE);
    return colibri_check_range(state->x, COLIBRI_HIDDEN_SIZE);
}

static colibri_expert_t expert_of(const colibri_call_t *call)
{
    const colibri_state_t *state = call->state;
#if COLIBRI_N_EXPERTS > 0
    return colibri_expert(call->model, state->header.layer, (uint32_t)state->expert_ids[state->header.slot]);
#else
    return colibri_expert(call->model, state->header.layer, 0);
#endif
}

colibri_status colibri_stage_run(const colibri_call_t *call, uint32_t begin, uint32_t end, uint32_t last)
{
    colibri_state_t *state = call->state;
    const uint8_t *image = call->model->image;
    const colibri_layer_offsets_t *offsets = &colibri_layer_offsets[state->header.layer];
    float *scratch = state->scratch;

    switch (state->header.stage) {
    case COLIBRI_STAGE_EMBED:
        colibri_rope_prepare(call->model, state);
        colibri_embed(call->model, state, call->input_ids[state->header.done]);
        return colibri_check_range(state->x, COLIBRI_HIDDEN_SIZE);
    case COLIBRI_STAGE_ATTN_NORM:
        return norm(call, offsets->attn_norm);
    case COLIBRI_STAGE_Q:
        colibri_matvec(state, state->q, &colibri_matrix_q, image + offsets->q, state->norm, 0, begin, end);
        return COLIBRI_OK;
    case COLIBRI_STAGE_K:
        colibri_matvec(state, scratch + COLIBRI_SCRATCH_K, &colibri_matrix_k, image + offsets->k, state->norm, 1, begin, end);
        return COLIBRI_OK;
    case COLIBRI_STAGE_V:
        colibri_matvec(state, scratch + COLIBRI_SCRATCH_V, &colibri_matrix_v, image + offsets->v, state->norm, 1, begin, end);
        return COLIBRI_OK;
    case COLIBRI_STAGE_ROPE:
        return colibri_rope(state);
    case COLIBRI_STAGE_ATTENTION:
        colibri_attention(state, begin, end);
        if (last) {
            memset(state->q + COLIBRI_Q_ELEMS, 0, (COLIBRI_Q_PAD - COLIBRI_Q_ELEMS) * sizeof(float)); /* held the experts' sum */
            return colibri_check_range(state->q, COLIBRI_Q_ELEMS);
        }
        return COLIBRI_OK;
    case COLIBRI_STAGE_O:
        colibri_matvec(state, scratch + COLIBRI_SCRATCH_OUT, &colibri_matrix_o, image + offsets->o, state->q, 0, begin, end);
        return COLIBRI_OK;
    case COLIBRI_STAGE_ATTN_RESIDUAL:
        return residual(state, scratch + COLIBRI_SCRATCH_OUT);
    case COLIBRI_STAGE_FFN_NORM:
        return norm(call, offsets->ffn_norm);
#if COLIBRI_N_EXPERTS > 0
    case COLIBRI_STAGE_ROUTER:
        colibri_router_logits(call->model, state, begin, end);
        if (last) {
            colibri_route(state->expert_ids, state->expert_weights, state->router);
        }
        return COLIBRI_OK;
#endif
    case COLIBRI_STAGE_GATE: /* quantises the norm for each expert: h took its place */
        colibri_matvec(state, scratch + COLIBRI_SCRATCH_GATE, &colibri_matrix_gate, expert_of(call).gate, state->norm, 0, begin, end);
        return COLIBRI_OK;
    case COLIBRI_STAGE_UP:
        colibri_matvec(state, scratch + COLIBRI_SCRATCH_UP, &colibri_matrix_up, expert_of(call).up, state->norm, 1, begin, end);
        return COLIBRI_OK;
    case COLIBRI_STAGE_ACT:
        colibri_swiglu(state);
        return colibri_check_range(scratch + COLIBRI_SCRATCH_GATE, COLIBRI_FFN_WIDTH);
    case COLIBRI_STAGE_DOWN:
        colibri_matvec(state, scratch + COLIBRI_SCRATCH_OUT, &colibri_matrix_down, expert_of(call).down,
                       scratch + COLIBRI_SCRATCH_GATE, 0, begin, end);
        if (last) {
            colibri_combine(state);
        }
        return COLIBRI_OK;
    case COLIBRI_STAGE_FFN_RESIDUAL:
        return residual(state, COLIBRI_N_EXPERTS > 0 ? state->q : scratch + COLIBRI_SCRATCH_OUT);
    case COLIBRI_STAGE_FINAL_NORM:
        return norm(call, COLIBRI_OFFSET_FINAL_NORM);
    case COLIBRI_STAGE_HEAD:
        colibri_matvec(state, call->logits, &colibri_matrix_head, image + (size_t)COLIBRI_OFFSET_HEAD, state->norm, 0, begin, end);
        return last ? colibri_check_range(call->logits, COLIBRI_VOCAB_SIZE) : COLIBRI_OK;
    default:
        return COLIBRI_ERR_STATE_CORRUPT;
    }
}
