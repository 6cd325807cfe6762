/* SPDX-License-Identifier: Apache-2.0 */
/* verify: replay a prompt stage by stage and send what each stage left: its CRC-32, and its elements where asked.
 *
 * There is no hook in the engine: colibri_step with max_macs = 0 ends at each stage, and the state is read then.
 */
#include "common/app.h"

const colibri_app_kind_t colibri_app_kind = {'V', 0};

#define FLAG_DUMP 1u
#define NO_LAYER 0xffffffffu

/* Tensors of a position, as DESIGN.md 4 lists them. */
#define ROUTER_TENSORS (COLIBRI_N_EXPERTS > 0 ? 3 : 0)
#define LAYER_TENSORS (11 + ROUTER_TENSORS + 4 * COLIBRI_N_SLOTS)
#define TRACE_TENSORS (1 + COLIBRI_N_LAYERS * LAYER_TENSORS + 2)

static int32_t ids[COLIBRI_MAX_SEQ];

static struct {
    uint32_t crcs[TRACE_TENSORS];
    uint32_t n_tensors;
    uint32_t position;
    uint32_t dump;
} trace;

static void note(uint32_t layer, const void *elements, uint32_t n_elems)
{
    uint32_t n_bytes = n_elems * 4u; /* all of them are float or int32 */
    if (trace.n_tensors >= TRACE_TENSORS) {
        trace.n_tensors++; /* shown by answer() as the engine's or this file's mistake */
        return;
    }
    trace.crcs[trace.n_tensors] = ~colibri_crc32_update(COLIBRI_CRC32_INIT, elements, n_bytes);
    if (trace.dump) {
        uint32_t crc = colibri_frame_begin('D', 12u + n_bytes);
        crc = colibri_frame_write_u32(crc, trace.position);
        crc = colibri_frame_write_u32(crc, layer);
        crc = colibri_frame_write_u32(crc, trace.n_tensors);
        colibri_frame_end(colibri_frame_write(crc, elements, n_bytes));
    }
    trace.n_tensors++;
}

static void note_stage(uint32_t stage, uint32_t layer)
{
    const colibri_state_t *s = &colibri_app_state;
    switch (stage) {
    case COLIBRI_STAGE_EMBED: note(NO_LAYER, s->x, COLIBRI_HIDDEN_SIZE); break;
    case COLIBRI_STAGE_ATTN_NORM:
    case COLIBRI_STAGE_FFN_NORM: note(layer, s->norm, COLIBRI_HIDDEN_SIZE); break;
    case COLIBRI_STAGE_Q:
    case COLIBRI_STAGE_ATTENTION: note(layer, s->q, COLIBRI_Q_ELEMS); break;
    case COLIBRI_STAGE_K: note(layer, s->scratch + COLIBRI_SCRATCH_K, COLIBRI_KV_ELEMS); break;
    case COLIBRI_STAGE_V: note(layer, s->scratch + COLIBRI_SCRATCH_V, COLIBRI_KV_ELEMS); break;
    case COLIBRI_STAGE_ROPE:
        note(layer, s->q, COLIBRI_Q_ELEMS);
        note(layer, s->scratch + COLIBRI_SCRATCH_K, COLIBRI_KV_ELEMS);
        break;
    case COLIBRI_STAGE_O:
    case COLIBRI_STAGE_DOWN: note(layer, s->scratch + COLIBRI_SCRATCH_OUT, COLIBRI_HIDDEN_SIZE); break;
    case COLIBRI_STAGE_ATTN_RESIDUAL:
    case COLIBRI_STAGE_FFN_RESIDUAL: note(layer, s->x, COLIBRI_HIDDEN_SIZE); break;
#if COLIBRI_N_EXPERTS > 0
    case COLIBRI_STAGE_ROUTER:
        note(layer, s->router, COLIBRI_N_EXPERTS);
        note(layer, s->expert_ids, COLIBRI_TOP_K);
        note(layer, s->expert_weights, COLIBRI_TOP_K);
        break;
#endif
    case COLIBRI_STAGE_GATE:
    case COLIBRI_STAGE_ACT: note(layer, s->scratch + COLIBRI_SCRATCH_GATE, COLIBRI_FFN_WIDTH); break;
    case COLIBRI_STAGE_UP: note(layer, s->scratch + COLIBRI_SCRATCH_UP, COLIBRI_FFN_WIDTH); break;
    case COLIBRI_STAGE_FINAL_NORM: note(NO_LAYER, s->norm, COLIBRI_HIDDEN_SIZE); break;
    case COLIBRI_STAGE_HEAD: note(NO_LAYER, colibri_app_logits.values, COLIBRI_VOCAB_SIZE); break;
    default: break;
    }
}

/* One token, stage by stage. */
static colibri_status trace_token(const colibri_model_t *model, const int32_t *id)
{
    const colibri_state_header_t *header = &colibri_app_state.header;
    colibri_status status = COLIBRI_MORE;
    trace.n_tensors = 0;
    trace.position = header->position;
    while (status == COLIBRI_MORE) {
        uint32_t stage = header->seq_len == 0 ? (uint32_t)COLIBRI_STAGE_EMBED : header->stage;
        uint32_t layer = header->layer;
        status = colibri_step(model, &colibri_app_state, id, 1, colibri_app_logits.values, 0);
        if (status >= 0) {
            note_stage(stage, layer);
        }
    }
    return status;
}

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
    trace.dump = colibri_request_read_u32(request) & FLAG_DUMP;
    int32_t n_ids = colibri_app_read_ids(request, ids, COLIBRI_MAX_SEQ);
    if (n_ids < 0) {
        return n_ids;
    }
    for (int32_t i = 0; i < n_ids; i++) {
        colibri_status status = trace_token(model, ids + i);
        if (status != COLIBRI_OK) {
            return status;
        }
        if (trace.n_tensors != TRACE_TENSORS) {
            return COLIBRI_APP_ERR_TRACE;
        }
        uint32_t crc = colibri_frame_begin('T', 8u + 4u * TRACE_TENSORS);
        crc = colibri_frame_write_u32(crc, trace.position);
        crc = colibri_frame_write_u32(crc, TRACE_TENSORS);
        colibri_frame_end(colibri_frame_write(crc, trace.crcs, sizeof trace.crcs));
        colibri_app_write_logits('L', &trace.position);
    }
    colibri_status status = colibri_state_init(&colibri_app_state, model);
    if (status == COLIBRI_OK) {
        status = colibri_forward(model, &colibri_app_state, ids, n_ids, colibri_app_logits.values, NULL);
    }
    if (status == COLIBRI_OK) {
        colibri_app_write_logits('F', NULL);
    }
    return status;
}
