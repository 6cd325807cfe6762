/* SPDX-License-Identifier: Apache-2.0 */
/* What each stage consists of: its units, and whether the present layer has it. */
#include "internal.h"

static const colibri_stage_size_t nothing = {0, 0};

static colibri_stage_size_t of_matrix(uint32_t index)
{
    colibri_stage_size_t size = {colibri_matrices[index].rows, colibri_matrices[index].cols};
    return size;
}

/* n units over the hidden size. */
static colibri_stage_size_t of_hidden(uint32_t n_units)
{
    colibri_stage_size_t size = {n_units, COLIBRI_HIDDEN_SIZE};
    return size;
}

/* One vector operator. */
static colibri_stage_size_t of_vector(uint32_t n_macs)
{
    colibri_stage_size_t size = {1, n_macs};
    return size;
}

#if COLIBRI_NEEDS_FIRST_GATE
static uint32_t first_gate_rows(uint32_t router)
{
    (void)router;
    return COLIBRI_ROUTER_IS_HIERARCHICAL(router) ? COLIBRI_ROUTER_N_GROUPS(router) : COLIBRI_ROUTER_N_EXPERTS(router);
}
#endif

#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
static colibri_stage_size_t of_heads(const colibri_state_t *state, uint32_t kind)
{
    const uint32_t n_positions = colibri_seen_end(state, kind) - colibri_attention_begin(kind, state->header.position);
    colibri_stage_size_t size = {COLIBRI_KIND_N_HEADS(kind),
                                 (COLIBRI_KIND_HEAD_DIM(kind) + COLIBRI_KIND_VALUE_DIM(kind)) * n_positions};
    return size;
}
#endif

#if COLIBRI_HAS_ENCODER
/* Whether a stage of the mixer belongs to the present pass: keys and values of a source have passes of their own. */
static uint32_t in_pass(const colibri_state_t *state, uint32_t kind)
{
    (void)kind;
    switch (state->header.stage) {
    case COLIBRI_STAGE_Q:
        return !colibri_only_keys(state);
    case COLIBRI_STAGE_K:
    case COLIBRI_STAGE_V:
        return colibri_only_keys(state) || COLIBRI_KIND_OVER(kind) == COLIBRI_OVER_PAST;
    default:
        return 1;
    }
}
#endif

/* What only some mixers have. Where the model has one mixer, the conditions are constants. */
static colibri_stage_size_t of_mixer(const colibri_state_t *state, uint32_t kind)
{
    const uint32_t mixer = COLIBRI_KIND_MIXER(kind);
    (void)mixer;
#if COLIBRI_HAS_ENCODER
    if (!in_pass(state, kind)) {
        return nothing;
    }
#endif
    switch (state->header.stage) {
#if COLIBRI_HAS_MIXTURE
#if COLIBRI_NEEDS_FIRST_GATE
    case COLIBRI_STAGE_ATTN_ROUTER_HIDDEN:
        return COLIBRI_KIND_ATTN_ROUTER_HIDDEN_AT(kind) != 0 ? of_hidden(first_gate_rows(COLIBRI_KIND_ATTN_ROUTER(kind))) : nothing;
#endif
    case COLIBRI_STAGE_ATTN_ROUTER:
        return of_hidden(COLIBRI_KIND_ATTN_N_EXPERTS(kind));
#endif
#if COLIBRI_HAS_Q_RANK
    case COLIBRI_STAGE_Q_A:
        return COLIBRI_KIND_Q_RANK(kind) != 0 ? of_matrix(COLIBRI_KIND_ATTN_Q_A_MATRIX(kind)) : nothing;
#endif
#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
    case COLIBRI_STAGE_Q:
        return mixer != COLIBRI_MIXER_CONVOLUTION ? of_matrix(COLIBRI_KIND_ATTN_Q_MATRIX(kind)) : nothing;
    case COLIBRI_STAGE_K:
        return mixer != COLIBRI_MIXER_CONVOLUTION ? of_matrix(COLIBRI_KIND_ATTN_K_MATRIX(kind)) : nothing;
    case COLIBRI_STAGE_ROPE:
        return mixer != COLIBRI_MIXER_CONVOLUTION
                   ? of_vector((COLIBRI_KIND_N_HEADS(kind) + COLIBRI_KIND_N_KV_HEADS(kind)) * COLIBRI_KIND_HEAD_DIM(kind))
                   : nothing;
    case COLIBRI_STAGE_ATTENTION:
        return of_heads(state, kind);
#endif
#if COLIBRI_HAS_ATTENTION
    case COLIBRI_STAGE_V:
        return mixer == COLIBRI_MIXER_ATTENTION ? of_matrix(COLIBRI_KIND_ATTN_V_MATRIX(kind)) : nothing;
#endif
#if COLIBRI_HAS_LATENT
    case COLIBRI_STAGE_K_UP:
        return mixer == COLIBRI_MIXER_LATENT ? of_matrix(COLIBRI_KIND_ATTN_K_UP_MATRIX(kind)) : nothing;
    case COLIBRI_STAGE_V_UP:
        return mixer == COLIBRI_MIXER_LATENT ? of_matrix(COLIBRI_KIND_ATTN_V_UP_MATRIX(kind)) : nothing;
#endif
#if COLIBRI_HAS_ATTN_GATE
    case COLIBRI_STAGE_ATTN_GATE:
        return COLIBRI_KIND_ATTN_GATE_AT(kind) != 0 ? of_matrix(COLIBRI_KIND_ATTN_GATE_MATRIX(kind)) : nothing;
#endif
#if COLIBRI_HAS_CONVOLUTION
    case COLIBRI_STAGE_CONV_IN:
        return mixer == COLIBRI_MIXER_CONVOLUTION ? of_matrix(COLIBRI_KIND_CONV_IN_MATRIX(kind)) : nothing;
    case COLIBRI_STAGE_CONV:
        return mixer == COLIBRI_MIXER_CONVOLUTION ? of_vector(COLIBRI_KIND_TAPS(kind) * COLIBRI_HIDDEN_SIZE) : nothing;
#endif
    default:
        return nothing;
    }
}

colibri_stage_size_t colibri_stage_size(const colibri_state_t *state)
{
    const uint32_t kind = colibri_kind_of(state);
    switch (state->header.stage) {
    case COLIBRI_STAGE_EMBED:
    case COLIBRI_STAGE_ATTN_NORM:
    case COLIBRI_STAGE_ATTN_RESIDUAL:
    case COLIBRI_STAGE_FFN_NORM:
    case COLIBRI_STAGE_FFN_RESIDUAL:
    case COLIBRI_STAGE_FINAL_NORM:
        return of_hidden(1);
    case COLIBRI_STAGE_O:
        return of_matrix(COLIBRI_KIND_ATTN_O_MATRIX(kind));
#if COLIBRI_HAS_ATTN_POST_NORM
    case COLIBRI_STAGE_ATTN_POST_NORM:
        return of_hidden(COLIBRI_KIND_ATTN_POST_NORM(kind) != 0);
#endif
#if COLIBRI_HAS_EXPERTS
#if COLIBRI_NEEDS_FIRST_GATE
    case COLIBRI_STAGE_ROUTER_HIDDEN:
        return COLIBRI_KIND_ROUTER_HIDDEN_AT(kind) != 0 ? of_hidden(first_gate_rows(COLIBRI_KIND_ROUTER(kind))) : nothing;
#endif
    case COLIBRI_STAGE_ROUTER:
        return of_hidden(COLIBRI_KIND_N_EXPERTS(kind));
#endif
#if COLIBRI_HAS_GATE
    case COLIBRI_STAGE_GATE:
        return COLIBRI_KIND_IS_GATED(kind)
                   ? of_matrix(COLIBRI_SHAPE_GATE_MATRIX(colibri_shape_of(state, colibri_block_of(state))))
                   : nothing;
#endif
    case COLIBRI_STAGE_UP:
        return of_matrix(COLIBRI_SHAPE_UP_MATRIX(colibri_shape_of(state, colibri_block_of(state))));
    case COLIBRI_STAGE_ACT:
        return of_vector(COLIBRI_SHAPE_WIDTH(colibri_shape_of(state, colibri_block_of(state))));
    case COLIBRI_STAGE_DOWN:
        return of_matrix(COLIBRI_SHAPE_DOWN_MATRIX(colibri_shape_of(state, colibri_block_of(state))));
#if COLIBRI_HAS_FFN_POST_NORM
    case COLIBRI_STAGE_FFN_POST_NORM:
        return of_hidden(COLIBRI_KIND_FFN_POST_NORM(kind) != 0);
#endif
    case COLIBRI_STAGE_HEAD:
        return of_matrix(COLIBRI_HEAD_MATRIX);
    default:
        return of_mixer(state, kind);
    }
}

uint32_t colibri_stage_slots(const colibri_state_t *state)
{
    const uint32_t kind = colibri_kind_of(state);
    const uint32_t stage = state->header.stage;
    (void)kind;
#if COLIBRI_HAS_MIXTURE
    if ((stage == COLIBRI_STAGE_Q || stage == COLIBRI_STAGE_O) && COLIBRI_KIND_ATTN_TOP_K(kind) != 0) {
        return COLIBRI_KIND_ATTN_TOP_K(kind);
    }
#endif
    return stage >= COLIBRI_STAGE_GATE && stage <= COLIBRI_STAGE_DOWN ? COLIBRI_KIND_N_SLOTS(kind) : 1u;
}
