/* SPDX-License-Identifier: Apache-2.0 */
/* A power-on test against the golden model's answer, which lies with the weights (docs/FORMAT.md, section 3). */
#include "colibri/image_format.h"
#include "internal.h"
#include "load.h"

#define UNUSED (-1)

#if COLIBRI_HAS_ENCODER
/* A source of as many tokens as the vector has ids at most: the first id and those after it in the vocabulary. */
static colibri_status encode_source(const colibri_model_t *model, colibri_state_t *state)
{
    enum { N_SOURCE = COLIBRI_MAX_SOURCE < COLIBRI_SELFTEST_POSITIONS ? COLIBRI_MAX_SOURCE : COLIBRI_SELFTEST_POSITIONS };
    int32_t source_ids[N_SOURCE];
    int32_t id = (int32_t)colibri_load_u32(model->image + (size_t)COLIBRI_SELFTEST_AT);
    for (uint32_t i = 0; i < N_SOURCE; i++) {
        source_ids[i] = id;
        id = id + 1 < COLIBRI_VOCAB_SIZE ? id + 1 : 0;
    }
    return colibri_encode(model, state, source_ids, N_SOURCE, NULL);
}
#endif

/* The first position is always replayed, also where a damaged vector says it is not: no vector is no pass. */
static colibri_status replay(const colibri_model_t *model, colibri_state_t *state, float *logits)
{
    const uint8_t *ids = model->image + (size_t)COLIBRI_SELFTEST_AT;
    const uint8_t *crcs = ids + 4u * COLIBRI_SELFTEST_POSITIONS;
#if COLIBRI_HAS_ENCODER
    if (encode_source(model, state) != COLIBRI_OK) {
        return COLIBRI_ERR_SELFTEST;
    }
#endif
    for (uint32_t i = 0; i < COLIBRI_SELFTEST_POSITIONS; i++) {
        int32_t id = (int32_t)colibri_load_u32(ids + 4u * i);
        if (i > 0 && id == UNUSED) {
            break;
        }
        if (colibri_forward(model, state, &id, 1, logits, NULL) != COLIBRI_OK) {
            return COLIBRI_ERR_SELFTEST;
        }
        uint32_t crc = colibri_crc32(0, (const uint8_t *)(const void *)logits, COLIBRI_VOCAB_SIZE * sizeof(float));
        if (crc != colibri_load_u32(crcs + 4u * i)) {
            return COLIBRI_ERR_SELFTEST;
        }
    }
    return COLIBRI_OK;
}

colibri_status colibri_selftest(const colibri_model_t *model, colibri_state_t *state, float *logits)
{
    if (logits == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if (((uintptr_t)logits & 3u) != 0) {
        return COLIBRI_ERR_BUFFER_ALIGN;
    }
    colibri_status status = colibri_state_init(state, model);
    if (status != COLIBRI_OK) {
        return status;
    }
    colibri_status found = replay(model, state, logits);
    status = colibri_state_init(state, model);
    return status == COLIBRI_OK ? found : status;
}
