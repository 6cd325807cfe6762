/* SPDX-License-Identifier: Apache-2.0 */
/* bench: what each token costs, with the head: one 'C' frame a token, of the port's counter.
 *
 * Under QEMU a plugin counts instructions between colibri_bench_begin and colibri_bench_end, exactly; a debugger on hardware can
 * put breakpoints or trace triggers there.
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

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
    int32_t n_ids = colibri_app_read_ids(request, ids, COLIBRI_MAX_SEQ);
    if (n_ids < 0) {
        return n_ids;
    }
    for (int32_t i = 0; i < n_ids; i++) {
        uint64_t count = 0;
        colibri_bench_begin();
        colibri_status status = colibri_forward(model, &colibri_app_state, ids + i, 1, colibri_app_logits.values, &count);
        colibri_bench_end();
        if (status != COLIBRI_OK) {
            return status;
        }
        uint32_t crc = colibri_frame_write_u32(colibri_frame_begin('C', 12), (uint32_t)i);
        colibri_frame_end(colibri_frame_write_u64(crc, count));
    }
    return COLIBRI_OK;
}
