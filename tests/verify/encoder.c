/* SPDX-License-Identifier: Apache-2.0 */
/* Answers a request with 0, or with the line of the first check of colibri_encode and its neighbours that does not hold. */
#include "common/app.h"

const colibri_app_kind_t colibri_app_kind = {'V', 0};

#define S (&colibri_app_state)
#define EXPECT(expected, call)            \
    do {                                  \
        if ((call) != (expected)) {       \
            return __LINE__;              \
        }                                 \
    } while (0)

enum { N = 9 };
static const int32_t source[N] = {5, 3, 3, 3, 3, 3, 3, 7, 1};
static const int32_t ids[2] = {0, 4};
static colibri_state_t before;

static uint32_t crc_of_state(void)
{
    return ~colibri_crc32_update(COLIBRI_CRC32_INIT, S, sizeof colibri_app_state);
}

static uint32_t crc_of_logits(void)
{
    return ~colibri_crc32_update(COLIBRI_CRC32_INIT, colibri_app_logits.values, sizeof colibri_app_logits.values);
}

static colibri_status arguments(const colibri_model_t *m)
{
    static int32_t too_many[COLIBRI_MAX_SOURCE + 1];
    const int32_t outside[2] = {1, COLIBRI_VOCAB_SIZE};
    const uint32_t crc = crc_of_state();
    EXPECT(COLIBRI_ERR_NO_SOURCE, colibri_forward(m, S, ids, 1, NULL, NULL));
    EXPECT(COLIBRI_ERR_NULL, colibri_encode(m, S, NULL, 1, NULL));
    EXPECT(COLIBRI_ERR_SEQ_LEN, colibri_encode(m, S, source, 0, NULL));
    EXPECT(COLIBRI_ERR_CONTEXT_FULL, colibri_encode(m, S, too_many, COLIBRI_MAX_SOURCE + 1, NULL));
    EXPECT(COLIBRI_ERR_TOKEN_ID, colibri_encode(m, S, outside, 2, NULL));
    EXPECT(crc, crc_of_state());
    return 0;
}

static colibri_status pending(const colibri_model_t *m)
{
    EXPECT(COLIBRI_MORE, colibri_encode_step(m, S, source, N, 1));
    EXPECT(COLIBRI_ERR_PENDING, colibri_forward(m, S, source, N, NULL, NULL));
    EXPECT(COLIBRI_ERR_PENDING, colibri_encode(m, S, source, N - 1, NULL));
    EXPECT(COLIBRI_ERR_PENDING, colibri_encode(m, S, source + 1, N - 1, NULL));
    EXPECT(0, colibri_position(S));
    EXPECT(COLIBRI_OK, colibri_rewind(S, 0));
    EXPECT(COLIBRI_ERR_NO_SOURCE, colibri_forward(m, S, ids, 1, NULL, NULL));
    EXPECT(COLIBRI_OK, colibri_encode(m, S, source, N, NULL));
    EXPECT(COLIBRI_MORE, colibri_step(m, S, ids, 2, NULL, 1));
    EXPECT(COLIBRI_ERR_PENDING, colibri_encode(m, S, ids, 2, NULL));
    return colibri_rewind(S, 0);
}

/* Any slices are one call, and a source outlives the sequence behind it but not the next source. */
static colibri_status slices(const colibri_model_t *m)
{
    EXPECT(COLIBRI_OK, colibri_state_init(S, m));
    EXPECT(COLIBRI_OK, colibri_encode(m, S, source, N, NULL));
    const uint32_t whole = crc_of_state();
    EXPECT(COLIBRI_OK, colibri_forward(m, S, ids, 2, colibri_app_logits.values, NULL));
    const uint32_t logits = crc_of_logits();
    EXPECT(2, colibri_position(S));
    EXPECT(COLIBRI_OK, colibri_rewind(S, 0));
    EXPECT(COLIBRI_OK, colibri_forward(m, S, ids, 2, colibri_app_logits.values, NULL));
    EXPECT(logits, crc_of_logits());
    EXPECT(COLIBRI_OK, colibri_encode(m, S, source + 7, 2, NULL));
    EXPECT(0, colibri_position(S));
    EXPECT(COLIBRI_OK, colibri_forward(m, S, ids, 2, colibri_app_logits.values, NULL));
    EXPECT(0, logits == crc_of_logits());
    for (uint32_t macs = 0; macs < 2000; macs = macs * 3 + 1) {
        colibri_status status = COLIBRI_MORE;
        uint32_t n_slices = 0;
        EXPECT(COLIBRI_OK, colibri_state_init(S, m));
        while (status == COLIBRI_MORE) {
            status = colibri_encode_step(m, S, source, N, macs);
            n_slices++;
        }
        EXPECT(COLIBRI_OK, status);
        EXPECT(whole, crc_of_state());
        EXPECT(1, n_slices > 20);
    }
    return 0;
}

/* A stray write into the header, at every stage: an error, never an index that does not hold. */
static colibri_status corruption(const colibri_model_t *m)
{
    static const uint32_t values[] = {1, 2, 3, 5, 9, 11, 25, 27, 0xffffffffu};
    colibri_status status = COLIBRI_MORE;
    EXPECT(COLIBRI_OK, colibri_state_init(S, m));
    while (status == COLIBRI_MORE) {
        status = colibri_encode_step(m, S, source, N, 0);
        before = colibri_app_state;
        for (uint32_t word = 1; word < 13 && status == COLIBRI_MORE; word++) {
            for (uint32_t i = 0; i < sizeof values / sizeof values[0]; i++) {
                ((uint32_t *)(void *)S)[word] = values[i];
                colibri_status got = colibri_encode_step(m, S, source, N, 0);
                if (got < COLIBRI_ERR_NO_SOURCE || got > COLIBRI_MORE) {
                    return __LINE__;
                }
                if (values[i] == 0xffffffffu && got != COLIBRI_ERR_STATE_CORRUPT && got != COLIBRI_ERR_STATE_FAILED &&
                    got != COLIBRI_ERR_PENDING) {
                    return __LINE__;
                }
                colibri_app_state = before;
            }
        }
    }
    return status;
}

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
    if (colibri_request_end(request) != 0) {
        return COLIBRI_APP_ERR_REQUEST;
    }
    colibri_status status = arguments(model);
    status = status != 0 ? status : pending(model);
    status = status != 0 ? status : slices(model);
    status = status != 0 ? status : corruption(model);
    if (status != 0) {
        return status;
    }
    EXPECT(COLIBRI_OK, colibri_selftest(model, S, colibri_app_logits.values));
    EXPECT(COLIBRI_ERR_NO_SOURCE, colibri_forward(model, S, ids, 1, NULL, NULL));
    return 0;
}
