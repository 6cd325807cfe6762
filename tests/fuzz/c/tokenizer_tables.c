/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the tokenizer, spoilt: they are refused, or any text and any ids are read with them in bounds. */
#include "tokenizer/tables.h"
#include "tokenizer.h"

#define MAX_TEXT 24 /* what a hostile split takes grows steeply */
#define MAX_IDS 128

static void decode(const colibri_tokenizer_t *tokenizer, const int32_t *ids, int32_t n)
{
    const size_t max_bytes = colibri_detokenize_bytes(tokenizer);
    colibri_detokenizer_t stream;
    char *text = exactly(1, max_bytes);
    REQUIRE(colibri_detokenizer_init(&stream) == COLIBRI_OK);
    for (int32_t i = 0; i <= n; i++) {
        int32_t n_bytes = colibri_detokenize(tokenizer, &stream, i < n ? ids[i] : -1, text, max_bytes);
        REQUIRE(n_bytes == COLIBRI_ERR_TOKEN_ID || (n_bytes >= 0 && (size_t)n_bytes <= max_bytes));
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    choices_t c = {data, n};
    const tables_t *seed = &tables[below(&c, N_TABLES)];
    uint8_t *bytes = exactly(16, seed->n);
    memcpy(bytes, seed->bytes, seed->n);
    for (uint32_t left = below(&c, 8); left > 0; left--) {
        const uint32_t header = sizeof(colibri_text_tables_t);
        if (below(&c, 2)) {
            spoil(&c, bytes, 0, header);
        } else { /* one of the tables, so that small ones are met as often as large ones */
            uint32_t first;
            memcpy(&first, seed->bytes + 64 + 4 * below(&c, 11), 4);
            spoil(&c, bytes, first < seed->n - 16 ? first : header, (uint32_t)seed->n);
        }
    }
    size_t n_bytes = seed->n - (below(&c, 16) == 1 ? 4u * below(&c, 64) : 0);
    n_bytes = n_bytes <= seed->n ? n_bytes : 0;
    colibri_tokenizer_t tokenizer = {NULL};
    colibri_status status = colibri_tokenizer_init(&tokenizer, bytes, n_bytes);
    if (status == COLIBRI_OK) {
        const uint32_t flags = below(&c, 4);
        const size_t max_ids = below(&c, 4) ? MAX_IDS : below(&c, MAX_IDS);
        const uint32_t n_tokens = colibri_text_header(&tokenizer)->n_tokens;
        int32_t ids[MAX_IDS];
        int32_t others[8];
        for (int32_t i = 0; i < 8; i++) {
            others[i] = (int32_t)(below(&c, 4) ? below(&c, n_tokens) : odd_word(&c));
        }
        const size_t n_text = c.n < MAX_TEXT ? c.n : MAX_TEXT;
        const size_t workspace = below(&c, 4) ? COLIBRI_TOKENIZE_NFC_WORKSPACE_BYTES(MAX_TEXT) : 8u * below(&c, 100);
        int32_t n_ids = encode(&tokenizer, c.bytes, c.n < n_text ? c.n : n_text, flags, ids, max_ids, workspace);
        REQUIRE(n_ids >= 0 || n_ids == COLIBRI_ERR_UTF8 || n_ids == COLIBRI_ERR_BUFFER || n_ids == COLIBRI_ERR_RANGE);
        for (int32_t i = 0; i < n_ids; i++) {
            REQUIRE((uint32_t)ids[i] < n_tokens);
        }
        decode(&tokenizer, ids, n_ids < 0 ? 0 : n_ids);
        decode(&tokenizer, others, 8);
    } else {
        REQUIRE(status < 0 && tokenizer.tables == NULL);
    }
    free(bytes);
    return 0;
}
