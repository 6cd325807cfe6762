/* SPDX-License-Identifier: Apache-2.0 */
/* A power-on test against the golden model's answer, which lies with the weights (docs/FORMAT.md, section 3). */
#include "colibri/image_format.h"
#include "internal.h"
#include "load.h"

#define UNUSED (-1)

/* The first position is always replayed, also where a damaged vector says it is not: no vector is no pass. */
static colibri_status replay(const colibri_model_t *model, colibri_state_t *state, float *logits)
{
    const uint8_t *ids = model->image + (size_t)COLIBRI_SELFTEST_AT;
    const uint8_t *crcs = ids + 4u * COLIBRI_SELFTEST_POSITIONS;
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
