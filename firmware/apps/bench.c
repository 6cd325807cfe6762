/* SPDX-License-Identifier: Apache-2.0 */
/* bench: which stages a token goes through, one 'W' frame each, from one token taken stage by stage; then what each token costs,
 * with the head: one 'C' frame a token, of the port's counter.
 *
 * Under QEMU a plugin counts instructions between colibri_bench_begin and colibri_bench_end, exactly; a debugger on hardware can
 * put breakpoints or trace triggers there. What is measured is colibri_forward as every application calls it: no hook, no stop.
 */
#include "common/app.h"

void colibri_bench_begin(void);
void colibri_bench_end(void);

const colibri_app_kind_t colibri_app_kind = {'B', 0};

static int32_t ids[COLIBRI_MAX_SEQ];

/* Empty, but not to the compiler: each call stays, and nothing moves across it. */
__attribute__((noinline)) void colibri_bench_begin(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void colibri_bench_end(void)
{
    __asm__ volatile("" ::: "memory");
}

static colibri_status write_walk(const colibri_model_t *model)
{
    const colibri_state_header_t *header = &colibri_app_state.header;
    colibri_status status = COLIBRI_MORE;
    while (status == COLIBRI_MORE) {
        uint32_t stage = header->seq_len == 0 ? (uint32_t)COLIBRI_STAGE_EMBED : header->stage;
        uint32_t layer = header->layer;
        status = colibri_step(model, &colibri_app_state, ids, 1, colibri_app_logits.values, 0);
        uint32_t crc = colibri_frame_write_u32(colibri_frame_begin('W', 8), stage);
        colibri_frame_end(colibri_frame_write_u32(crc, layer));
    }
    return status == COLIBRI_OK ? colibri_state_init(&colibri_app_state, model) : status;
}

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
    int32_t n_ids = colibri_app_read_ids(request, ids, COLIBRI_MAX_SEQ);
    if (n_ids < 0) {
        return n_ids;
    }
    colibri_status status = write_walk(model);
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
