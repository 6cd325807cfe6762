/* SPDX-License-Identifier: Apache-2.0 */
#include "generation.h"

static float as_float(uint32_t bits)
{
    union {
        uint32_t bits;
        float value;
    } word;
    word.bits = bits;
    return word.value;
}

colibri_status colibri_app_read_generation(colibri_request_t *request, colibri_generation_t *generation)
{
    generation->n_new = colibri_request_read_u32(request);
    generation->sampling.temperature = as_float(colibri_request_read_u32(request));
    generation->sampling.top_k = (int32_t)colibri_request_read_u32(request);
    generation->sampling.top_p = as_float(colibri_request_read_u32(request));
    colibri_status status = colibri_rng_seed(&generation->rng, colibri_request_read_u64(request));
    for (uint32_t i = 0; i < 4; i++) {
        generation->eos[i] = (int32_t)colibri_request_read_u32(request);
    }
    return status;
}

int32_t colibri_app_next(const colibri_model_t *model, colibri_generation_t *generation, int32_t id)
{
    colibri_status status = colibri_forward(model, &colibri_app_state, &id, 1, colibri_app_logits.values, NULL);
    if (status != COLIBRI_OK) {
        return status;
    }
    return colibri_sample(colibri_app_logits.values, &generation->sampling, &generation->rng);
}

void colibri_app_write_id(int32_t id)
{
    colibri_frame_end(colibri_frame_write_u32(colibri_frame_begin('K', 4), (uint32_t)id));
}

int colibri_app_is_end(const colibri_generation_t *generation, int32_t id)
{
    const int32_t *eos = generation->eos;
    return id == eos[0] || id == eos[1] || id == eos[2] || id == eos[3];
}
