/* SPDX-License-Identifier: Apache-2.0 */
/* verify: replay a prompt stage by stage and send what each stage left: its CRC-32, and its elements where asked.
 *
 * There is no hook in the engine: colibri_step with max_macs = 0 ends at each stage, and the state is read then.
 */
#include "common/app.h"

#include <colibri/tables.h>

const colibri_app_kind_t colibri_app_kind = {'V', 0};

#define FLAG_DUMP 1u
#define NO_LAYER 0xffffffffu
#define SOURCE 0xffffffffu /* in the place of a position */

/* Tensors of a position, as DESIGN.md 4 lists them; the packer counted them. */
#define TRACE_TENSORS COLIBRI_TRACE_TENSORS

static int32_t ids[COLIBRI_MAX_SEQ];
#if COLIBRI_HAS_ENCODER
static int32_t source_ids[COLIBRI_MAX_SOURCE];
#endif

static struct {
    uint32_t crcs[COLIBRI_MAX(TRACE_TENSORS, COLIBRI_SOURCE_TRACE_TENSORS)];
    uint32_t n_tensors;
    uint32_t max_tensors;
    uint32_t position;
    uint32_t pass;
    uint32_t dump;
} trace;

static void note(uint32_t layer, const void *elements, uint32_t n_elems)
{
    uint32_t n_bytes = n_elems * 4u; /* all of them are float or int32 */
    if (trace.n_tensors >= trace.max_tensors) {
        trace.n_tensors++; /* shown by answer() as the engine's or this file's mistake */
        return;
    }
    /* Of the source, a tensor's CRC goes on from token to token. */
    const uint32_t before = trace.pass == COLIBRI_PASS_STEP ? COLIBRI_CRC32_INIT : ~trace.crcs[trace.n_tensors];
    trace.crcs[trace.n_tensors] = ~colibri_crc32_update(before, elements, n_bytes);
    if (trace.dump) {
        uint32_t crc = colibri_frame_begin('D', 12u + n_bytes);
        crc = colibri_frame_write_u32(crc, trace.position);
        crc = colibri_frame_write_u32(crc, layer);
        crc = colibri_frame_write_u32(crc, trace.n_tensors);
        colibri_frame_end(colibri_frame_write(crc, elements, n_bytes));
    }
    trace.n_tensors++;
}

#if COLIBRI_MAX_EXPERTS > 0
static void note_router(uint32_t layer, uint32_t n_experts, uint32_t top_k)
{
    const colibri_state_t *s = &colibri_app_state;
    note(layer, s->router, n_experts);
    note(layer, s->expert_ids, top_k);
    note(layer, s->expert_weights, top_k);
}
#endif

#if COLIBRI_HAS_TOP_P
/* The slots behind the last expert chosen: each of their tensors has no elements. */
static void note_empty_slots(uint32_t layer, uint32_t kind, uint32_t slot)
{
    const colibri_state_t *s = &colibri_app_state;
    (void)kind;
    while (++slot < COLIBRI_KIND_TOP_K(kind) && s->expert_ids[slot] == COLIBRI_NO_EXPERT) {
        for (uint32_t i = 0; i < 3u + COLIBRI_KIND_IS_GATED(kind); i++) {
            note(layer, NULL, 0);
        }
    }
}
#endif

/* A stage of the mixer in a layer of some kind. Where only some mixers have the stage, or its last slot, the layer decides. */
static void note_mixer(uint32_t stage, uint32_t layer, uint32_t kind, uint32_t slot)
{
    const colibri_state_t *s = &colibri_app_state;
    const float *k = s->scratch + COLIBRI_SCRATCH_K;
    const float *q = s->q;
    uint32_t n_q = COLIBRI_KIND_N_HEADS(kind) * COLIBRI_KIND_HEAD_DIM(kind);
    uint32_t n_k = COLIBRI_KIND_N_KV_HEADS(kind) * COLIBRI_KIND_HEAD_DIM(kind);
    uint32_t is_last = slot + 1 >= COLIBRI_KIND_ATTN_TOP_K(kind);
    (void)kind;
    (void)k;
    (void)n_k;
    (void)n_q;
#if COLIBRI_HAS_LATENT
    uint32_t is_latent = COLIBRI_KIND_MIXER(kind) == COLIBRI_MIXER_LATENT;
    if (is_latent) {
        k = s->scratch + COLIBRI_SCRATCH_LATENT;
    }
#endif
    switch (stage) {
#if COLIBRI_HAS_MIXTURE
    case COLIBRI_STAGE_ATTN_ROUTER: note_router(layer, COLIBRI_KIND_ATTN_N_EXPERTS(kind), COLIBRI_KIND_ATTN_TOP_K(kind)); break;
#endif
#if COLIBRI_HAS_Q_RANK
    case COLIBRI_STAGE_Q_A: note(layer, s->scratch + COLIBRI_SCRATCH_Q_A, COLIBRI_KIND_Q_RANK(kind)); break;
#endif
#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
    case COLIBRI_STAGE_Q:
#if COLIBRI_HAS_LATENT
        if (is_latent) {
            q = s->scratch + COLIBRI_SCRATCH_LATENT_Q;
            n_q = COLIBRI_KIND_N_HEADS(kind) * (COLIBRI_KIND_NOPE_DIM(kind) + COLIBRI_KIND_ROPE_DIM(kind));
        }
#endif
        if (is_last) {
            note(layer, q, n_q);
        }
        break;
    case COLIBRI_STAGE_K: note(layer, k, n_k); break;
    case COLIBRI_STAGE_ATTENTION: note(layer, q, COLIBRI_KIND_N_HEADS(kind) * COLIBRI_KIND_VALUE_DIM(kind)); break;
    case COLIBRI_STAGE_ROPE:
#if COLIBRI_HAS_ENCODER
        if (COLIBRI_KIND_OVER(kind) != COLIBRI_OVER_PAST) { /* queries and keys in passes of their own */
            const uint32_t is_query = trace.pass == COLIBRI_PASS_STEP || trace.pass == COLIBRI_PASS_REST;
            note(layer, is_query ? q : k, is_query ? n_q : n_k);
            break;
        }
#endif
#if COLIBRI_HAS_LATENT
        if (is_latent) { /* shown once K_UP has completed the queries */
            break;
        }
#endif
        note(layer, q, n_q);
        note(layer, k, n_k);
        break;
#endif
#if COLIBRI_HAS_ATTENTION
    case COLIBRI_STAGE_V: note(layer, s->scratch + COLIBRI_SCRATCH_V, n_k); break;
#endif
#if COLIBRI_HAS_LATENT
    case COLIBRI_STAGE_K_UP:
        note(layer, q, n_q);
        note(layer, k, n_k);
        break;
    case COLIBRI_STAGE_V_UP: note(layer, q, COLIBRI_KIND_N_HEADS(kind) * COLIBRI_KIND_UP_DIM(kind)); break;
#endif
#if COLIBRI_HAS_ATTN_GATE
    case COLIBRI_STAGE_ATTN_GATE: note(layer, q, n_q); break;
#endif
#if COLIBRI_HAS_CONVOLUTION
    case COLIBRI_STAGE_CONV_IN: note(layer, s->scratch + COLIBRI_SCRATCH_CONV, 3 * COLIBRI_HIDDEN_SIZE); break;
    case COLIBRI_STAGE_CONV: note(layer, q, COLIBRI_HIDDEN_SIZE); break;
#endif
    case COLIBRI_STAGE_O:
        if (is_last) {
            note(layer, s->scratch + COLIBRI_SCRATCH_OUT, COLIBRI_HIDDEN_SIZE);
        }
        break;
    default: break;
    }
}

static void note_stage(uint32_t stage, uint32_t layer, uint32_t slot, uint32_t width)
{
    const colibri_state_t *s = &colibri_app_state;
    const uint32_t kind = COLIBRI_LAYER_KIND(layer);
    (void)kind;
    switch (stage) {
    case COLIBRI_STAGE_EMBED: note(NO_LAYER, s->x, COLIBRI_HIDDEN_SIZE); break;
    case COLIBRI_STAGE_ATTN_NORM:
        if (COLIBRI_KIND_ATTN_NORM(kind) != 0) {
            note(layer, s->norm, COLIBRI_HIDDEN_SIZE);
        }
        break;
    case COLIBRI_STAGE_FFN_NORM:
        if (COLIBRI_KIND_FFN_NORM(kind) != 0) {
            note(layer, s->norm, COLIBRI_HIDDEN_SIZE);
        }
        break;
    case COLIBRI_STAGE_DOWN:
        note(layer, s->scratch + COLIBRI_SCRATCH_OUT, COLIBRI_HIDDEN_SIZE);
#if COLIBRI_HAS_TOP_P
        note_empty_slots(layer, kind, slot);
#endif
        break;
    case COLIBRI_STAGE_ATTN_RESIDUAL:
    case COLIBRI_STAGE_FFN_RESIDUAL: note(layer, s->x, COLIBRI_HIDDEN_SIZE); break;
#if COLIBRI_HAS_ATTN_POST_NORM
    case COLIBRI_STAGE_ATTN_POST_NORM: note(layer, s->scratch + COLIBRI_SCRATCH_OUT, COLIBRI_HIDDEN_SIZE); break;
#endif
#if COLIBRI_HAS_FFN_POST_NORM
    case COLIBRI_STAGE_FFN_POST_NORM:
        note(layer, COLIBRI_KIND_N_EXPERTS(kind) > 0 ? s->q : s->scratch + COLIBRI_SCRATCH_OUT, COLIBRI_HIDDEN_SIZE);
        break;
#endif
#if COLIBRI_HAS_EXPERTS
    case COLIBRI_STAGE_ROUTER: note_router(layer, COLIBRI_KIND_N_EXPERTS(kind), COLIBRI_KIND_TOP_K(kind)); break;
#endif
#if COLIBRI_HAS_GATE
    case COLIBRI_STAGE_GATE:
#endif
    case COLIBRI_STAGE_ACT: note(layer, s->scratch + COLIBRI_SCRATCH_GATE, width); break;
    case COLIBRI_STAGE_UP: note(layer, s->scratch + COLIBRI_SCRATCH_UP, width); break;
    case COLIBRI_STAGE_FINAL_NORM: note(NO_LAYER, s->norm, COLIBRI_HIDDEN_SIZE); break;
    case COLIBRI_STAGE_HEAD: note(NO_LAYER, colibri_app_logits.values, COLIBRI_VOCAB_SIZE); break;
    default: note_mixer(stage, layer, kind, slot); break;
    }
}

/* Of the present block's h. */
static uint32_t width_of_block(void)
{
    const colibri_state_t *s = &colibri_app_state;
    uint32_t stage = s->header.stage;
    if (stage < COLIBRI_STAGE_GATE || stage > COLIBRI_STAGE_DOWN) {
        return 0;
    }
    return COLIBRI_SHAPE_WIDTH(colibri_shape_of(s, colibri_block_of(s)));
}

static void write_crcs(uint32_t position)
{
    const uint32_t n_tensors = trace.max_tensors;
    uint32_t crc = colibri_frame_begin('T', 8u + 4u * n_tensors);
    crc = colibri_frame_write_u32(crc, position);
    crc = colibri_frame_write_u32(crc, n_tensors);
    colibri_frame_end(colibri_frame_write(crc, trace.crcs, 4u * n_tensors));
}

#if COLIBRI_HAS_ENCODER
/* The encoder, stage by stage: of each tensor one CRC of all tokens. A pass repeats its tensors for every token. */
static colibri_status trace_source(const colibri_model_t *model, int32_t n_source)
{
    const colibri_state_header_t *header = &colibri_app_state.header;
    colibri_status status = COLIBRI_MORE;
    uint32_t first = 0; /* tensor of the present pass */
    trace.n_tensors = 0;
    trace.max_tensors = COLIBRI_SOURCE_TRACE_TENSORS;
    trace.pass = COLIBRI_PASS_KEYS;
    trace.position = 0;
    for (uint32_t i = 0; i < COLIBRI_SOURCE_TRACE_TENSORS; i++) {
        trace.crcs[i] = 0;
    }
    while (status == COLIBRI_MORE) {
        uint32_t stage = header->pass == COLIBRI_PASS_STEP ? (uint32_t)COLIBRI_STAGE_EMBED : header->stage;
        uint32_t layer = header->layer;
        uint32_t slot = header->slot;
        uint32_t width = width_of_block();
        if (header->pass != COLIBRI_PASS_STEP && header->pass != trace.pass) {
            trace.pass = header->pass;
            first = trace.n_tensors;
        } else if (header->done != trace.position) {
            trace.n_tensors = first;
        }
        trace.position = header->done;
        status = colibri_encode_step(model, &colibri_app_state, source_ids, n_source, 0);
        /* The norm before queries is that before keys. */
        if (status >= 0 && !(trace.pass == COLIBRI_PASS_REST && stage == COLIBRI_STAGE_ATTN_NORM)) {
            note_stage(stage, layer, slot, width);
        }
    }
    if (status == COLIBRI_OK && trace.n_tensors != COLIBRI_SOURCE_TRACE_TENSORS) {
        return COLIBRI_APP_ERR_TRACE;
    }
    if (status == COLIBRI_OK) {
        write_crcs(SOURCE);
    }
    return status;
}
#endif

/* One token, stage by stage. */
static colibri_status trace_token(const colibri_model_t *model, const int32_t *id)
{
    const colibri_state_header_t *header = &colibri_app_state.header;
    colibri_status status = COLIBRI_MORE;
    trace.n_tensors = 0;
    trace.max_tensors = TRACE_TENSORS;
    trace.pass = COLIBRI_PASS_STEP;
    trace.position = header->position;
    while (status == COLIBRI_MORE) {
        uint32_t stage = header->seq_len == 0 ? (uint32_t)COLIBRI_STAGE_EMBED : header->stage;
        uint32_t layer = header->layer;
        uint32_t slot = header->slot;
        uint32_t width = width_of_block();
        status = colibri_step(model, &colibri_app_state, id, 1, colibri_app_logits.values, 0);
        if (status >= 0) {
            note_stage(stage, layer, slot, width);
        }
    }
    return status;
}

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
    trace.dump = colibri_request_read_u32(request) & FLAG_DUMP;
#if COLIBRI_HAS_ENCODER
    int32_t n_source = colibri_app_read_source(request, source_ids);
    if (n_source < 0) {
        return n_source;
    }
#endif
    int32_t n_ids = colibri_app_read_ids(request, ids, COLIBRI_MAX_SEQ);
    if (n_ids < 0) {
        return n_ids;
    }
#if COLIBRI_HAS_ENCODER
    colibri_status encoded = trace_source(model, n_source);
    if (encoded != COLIBRI_OK) {
        return encoded;
    }
#endif
    for (int32_t i = 0; i < n_ids; i++) {
        colibri_status status = trace_token(model, ids + i);
        if (status != COLIBRI_OK) {
            return status;
        }
        if (trace.n_tensors != TRACE_TENSORS) {
            return COLIBRI_APP_ERR_TRACE;
        }
        write_crcs(trace.position);
        colibri_app_write_logits('L', &trace.position);
    }
    colibri_status status = colibri_state_init(&colibri_app_state, model);
#if COLIBRI_HAS_ENCODER
    if (status == COLIBRI_OK) {
        status = colibri_encode(model, &colibri_app_state, source_ids, n_source, NULL);
    }
#endif
    if (status == COLIBRI_OK) {
        status = colibri_forward(model, &colibri_app_state, ids, n_ids, colibri_app_logits.values, NULL);
    }
    if (status == COLIBRI_OK) {
        colibri_app_write_logits('F', NULL);
    }
    return status;
}
