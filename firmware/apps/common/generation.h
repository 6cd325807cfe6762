/* SPDX-License-Identifier: Apache-2.0 */
/* What the applications that continue a prompt share: how they go on, token by token. */
#ifndef COLIBRI_APP_GENERATION_H
#define COLIBRI_APP_GENERATION_H

#include "app.h"

/* How to go on, as a request begins: u32 n_new, float temperature, u32 top_k, float top_p, u64 seed, i32 eos[4] (-1: none). */
typedef struct colibri_generation {
    uint32_t n_new;
    colibri_sampling_t sampling;
    colibri_rng_t rng;
    int32_t eos[4];
} colibri_generation_t;

colibri_status colibri_app_read_generation(colibri_request_t *request, colibri_generation_t *generation);

/* Compute the token `id` and choose the next: its id, or a negative status. */
int32_t colibri_app_next(const colibri_model_t *model, colibri_generation_t *generation, int32_t id);

/* Tell the host a token, in a 'K' frame. */
void colibri_app_write_id(int32_t id);

/* Whether a token ends the text. */
int colibri_app_is_end(const colibri_generation_t *generation, int32_t id);

#endif
