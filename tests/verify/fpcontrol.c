/* SPDX-License-Identifier: Apache-2.0 */
/* An application for tests, in the place of verify.c: the caller has set the floating-point control register to the request's
 * value whenever it calls the engine, and looks afterwards whether the register still holds it.
 *
 * Request    'V': u64 control (AArch64: FPSR in the upper half), u32 n_ids, i32 ids[n_ids]
 * Answer     'C' (position 0, what the register took), for each id 'L' by colibri_step, then 'F' by colibri_forward,
 *            'K' by colibri_sample, 'F' what it left in the logits, 'S'
 */
#include "common/app.h"

const colibri_app_kind_t colibri_app_kind = {'V', 0};

#define LOST_BY_STEP (-140)
#define LOST_BY_FORWARD (-141)
#define LOST_BY_SAMPLE (-142)

static int32_t ids[COLIBRI_MAX_SEQ];

static void control_set(uint64_t value)
{
#if defined(__aarch64__)
    uint64_t fpcr = value & 0xffffffffu;
    uint64_t fpsr = value >> 32;
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(fpcr), "r"(fpsr) : "memory");
#elif defined(__arm__)
    uint32_t fpscr = (uint32_t)value;
    __asm__ volatile("vmsr fpscr, %0" : : "r"(fpscr) : "memory", "cc");
#elif defined(__riscv)
    uintptr_t fcsr = (uintptr_t)value;
    __asm__ volatile("fscsr zero, %0" : : "r"(fcsr) : "memory");
#elif defined(__x86_64__)
    uint32_t mxcsr = (uint32_t)value;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr) : "memory");
#else
#error "no floating-point control register is known for this core"
#endif
}

static uint64_t control_get(void)
{
#if defined(__aarch64__)
    uint64_t fpcr;
    uint64_t fpsr;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(fpcr), "=r"(fpsr) : : "memory");
    return fpcr | fpsr << 32;
#elif defined(__arm__)
    uint32_t fpscr;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(fpscr) : : "memory");
    return fpscr;
#elif defined(__riscv)
    uintptr_t fcsr;
    __asm__ volatile("frcsr %0" : "=r"(fcsr) : : "memory");
    return fcsr;
#else
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr) : : "memory");
    return mxcsr;
#endif
}

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
    const colibri_sampling_t sampling = {0.75f, 0, 0.875f};
    colibri_rng_t rng;
    uint64_t control = colibri_request_read_u64(request);
    int32_t n_ids = colibri_app_read_ids(request, ids, COLIBRI_MAX_SEQ);
    if (n_ids < 0) {
        return n_ids;
    }
    uint64_t normal = control_get();
    control_set(control);
    control = control_get(); /* what this core has of it */
    control_set(normal);
    uint32_t crc = colibri_frame_write_u32(colibri_frame_begin('C', 12), 0);
    colibri_frame_end(colibri_frame_write_u64(crc, control));

    for (int32_t i = 0; i < n_ids; i++) {
        colibri_status status = COLIBRI_MORE;
        uint32_t position = (uint32_t)i;
        uint64_t left = control;
        while (status == COLIBRI_MORE && left == control) {
            control_set(control);
            status = colibri_step(model, &colibri_app_state, ids + i, 1, colibri_app_logits.values, 500);
            left = control_get();
            control_set(normal);
        }
        if (left != control) {
            return LOST_BY_STEP;
        }
        if (status != COLIBRI_OK) {
            return status;
        }
        colibri_app_write_logits('L', &position);
    }

    colibri_status status = colibri_state_init(&colibri_app_state, model);
    if (status == COLIBRI_OK) {
        control_set(control);
        status = colibri_forward(model, &colibri_app_state, ids, n_ids, colibri_app_logits.values, NULL);
        uint64_t left = control_get();
        control_set(normal);
        if (left != control) {
            return LOST_BY_FORWARD;
        }
    }
    if (status == COLIBRI_OK) {
        colibri_app_write_logits('F', NULL);
        status = colibri_rng_seed(&rng, 7);
    }
    if (status == COLIBRI_OK) {
        control_set(control);
        int32_t id = colibri_sample(colibri_app_logits.values, &sampling, &rng);
        uint64_t left = control_get();
        control_set(normal);
        if (left != control) {
            return LOST_BY_SAMPLE;
        }
        if (id < 0) {
            return id;
        }
        colibri_frame_end(colibri_frame_write_u32(colibri_frame_begin('K', 4), (uint32_t)id));
        colibri_app_write_logits('F', NULL);
    }
    return status;
}
