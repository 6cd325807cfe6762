/* SPDX-License-Identifier: Apache-2.0 */
/* bench: which stages a token goes through, one 'W' frame each, from one token taken stage by stage, or from each where the number
 * of experts differs; then what each token costs, with the head: one 'C' frame a token, of the port's counter.
 *
 * Under QEMU a plugin counts instructions between colibri_bench_begin and colibri_bench_end, exactly; a debugger on hardware can
 * put breakpoints or trace triggers there. What is measured is colibri_forward as every application calls it: no hook, no stop.
 */
#include "common/app.h"

void colibri_bench_begin(void);
void colibri_bench_end(void);

const colibri_app_kind_t colibri_app_kind = {'B', 0};

static int32_t ids[COLIBRI_MAX_SEQ];
#if COLIBRI_HAS_ENCODER
static int32_t source_ids[COLIBRI_MAX_SOURCE];
#endif

static const char *const stage_names[COLIBRI_N_STAGES] = {
    [COLIBRI_STAGE_EMBED] = "embed",
    [COLIBRI_STAGE_ATTN_NORM] = "attn_norm",
#if COLIBRI_HAS_MIXTURE
#if COLIBRI_NEEDS_FIRST_GATE
    [COLIBRI_STAGE_ATTN_ROUTER_HIDDEN] = "attn_router_hidden",
#endif
    [COLIBRI_STAGE_ATTN_ROUTER] = "attn_router",
#endif
#if COLIBRI_HAS_Q_RANK
    [COLIBRI_STAGE_Q_A] = "q_a",
#endif
#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
    [COLIBRI_STAGE_Q] = "q",
    [COLIBRI_STAGE_K] = "k",
#endif
#if COLIBRI_HAS_ATTENTION
    [COLIBRI_STAGE_V] = "v",
#endif
#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
    [COLIBRI_STAGE_ROPE] = "rope",
#endif
#if COLIBRI_HAS_LATENT
    [COLIBRI_STAGE_K_UP] = "k_up",
#endif
#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
    [COLIBRI_STAGE_ATTENTION] = "attention",
#endif
#if COLIBRI_HAS_LATENT
    [COLIBRI_STAGE_V_UP] = "v_up",
#endif
#if COLIBRI_HAS_ATTN_GATE
    [COLIBRI_STAGE_ATTN_GATE] = "attn_gate",
#endif
#if COLIBRI_HAS_CONVOLUTION
    [COLIBRI_STAGE_CONV_IN] = "conv_in",
    [COLIBRI_STAGE_CONV] = "conv",
#endif
    [COLIBRI_STAGE_O] = "o",
#if COLIBRI_HAS_ATTN_POST_NORM
    [COLIBRI_STAGE_ATTN_POST_NORM] = "attn_post_norm",
#endif
    [COLIBRI_STAGE_ATTN_RESIDUAL] = "attn_residual",
    [COLIBRI_STAGE_FFN_NORM] = "ffn_norm",
#if COLIBRI_HAS_EXPERTS
#if COLIBRI_NEEDS_FIRST_GATE
    [COLIBRI_STAGE_ROUTER_HIDDEN] = "router_hidden",
#endif
    [COLIBRI_STAGE_ROUTER] = "router",
#endif
#if COLIBRI_HAS_GATE
    [COLIBRI_STAGE_GATE] = "gate",
#endif
    [COLIBRI_STAGE_UP] = "up",
    [COLIBRI_STAGE_ACT] = "act",
    [COLIBRI_STAGE_DOWN] = "down",
#if COLIBRI_HAS_FFN_POST_NORM
    [COLIBRI_STAGE_FFN_POST_NORM] = "ffn_post_norm",
#endif
    [COLIBRI_STAGE_FFN_RESIDUAL] = "ffn_residual",
    [COLIBRI_STAGE_FINAL_NORM] = "final_norm",
    [COLIBRI_STAGE_HEAD] = "head",
};

/* Empty, but not to the compiler: each call stays, and nothing moves across it. */
__attribute__((noinline)) void colibri_bench_begin(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void colibri_bench_end(void)
{
    __asm__ volatile("" ::: "memory");
}

/* 'W': the layer and the stage's name. */
static void write_stage(uint32_t stage, uint32_t layer)
{
    const char *name = stage_names[stage];
    uint32_t n_chars = 0;
    while (name[n_chars] != '\0') {
        n_chars++;
    }
    uint32_t crc = colibri_frame_write_u32(colibri_frame_begin('W', 4 + n_chars), layer);
    colibri_frame_end(colibri_frame_write(crc, name, n_chars));
}

static colibri_status write_walk(const colibri_model_t *model, const int32_t *id)
{
    const colibri_state_header_t *header = &colibri_app_state.header;
    colibri_status status = COLIBRI_MORE;
    while (status == COLIBRI_MORE) {
        uint32_t stage = header->seq_len == 0 ? (uint32_t)COLIBRI_STAGE_EMBED : header->stage;
        uint32_t layer = header->layer;
        status = colibri_step(model, &colibri_app_state, id, 1, colibri_app_logits.values, 0);
        write_stage(stage, layer);
    }
    return status == COLIBRI_OK ? colibri_rewind(&colibri_app_state, 0) : status;
}

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
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
    const int32_t n_walks = COLIBRI_HAS_TOP_P ? n_ids : 1;
    colibri_status status = COLIBRI_OK;
#if COLIBRI_HAS_ENCODER
    status = colibri_encode(model, &colibri_app_state, source_ids, n_source, NULL);
#endif
    for (int32_t i = 0; i < n_walks && status == COLIBRI_OK; i++) {
        status = write_walk(model, ids + i);
    }
    if (status == COLIBRI_OK) {
        status = colibri_rewind(&colibri_app_state, 0);
    }
    for (int32_t i = 0; i < n_ids && status == COLIBRI_OK; i++) {
        uint64_t count = 0;
        colibri_bench_begin();
        status = colibri_forward(model, &colibri_app_state, ids + i, 1, colibri_app_logits.values, &count);
        colibri_bench_end();
        if (status == COLIBRI_OK) {
            uint32_t crc = colibri_frame_write_u32(colibri_frame_begin('C', 12), (uint32_t)i);
            colibri_frame_end(colibri_frame_write_u64(crc, count));
        }
    }
    return status;
}
