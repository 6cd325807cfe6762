/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a text for good tables: refused exactly where they are no UTF-8; the promised workspace is enough; the ids give
 * whole characters, and where the tokenizer promises it the same text again. */
#include "tokenizer/tables.h"
#include "tokenizer.h"

#define MAX_TEXT 400

/* By code points, where the tokenizer goes by ranges of bytes. */
static int is_utf8(const uint8_t *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        uint32_t more = text[at] < 0x80 ? 0 : text[at] >> 5 == 6 ? 1 : text[at] >> 4 == 14 ? 2 : text[at] >> 3 == 30 ? 3 : 9;
        if (more == 9 || n - at <= more) {
            return 0;
        }
        uint32_t code = more == 0 ? text[at] : text[at] & (0x3fu >> more);
        for (uint32_t i = 1; i <= more; i++) {
            if (text[at + i] >> 6 != 2) {
                return 0;
            }
            code = code << 6 | (text[at + i] & 0x3fu);
        }
        if (code < least[more] || code > 0x10ffff || code >> 11 == 0x1b) {
            return 0;
        }
        at += more + 1;
    }
    return 1;
}

/* Whether decoding gives the text again: all bytes have a token, nothing is normalised, dropped or put before it. */
static int is_exact(const colibri_text_tables_t *t)
{
    const uint32_t alters = COLIBRI_TEXT_NFC | COLIBRI_TEXT_SPACES | COLIBRI_TEXT_STRIP_ONE | COLIBRI_TEXT_STRIP_FIRST | 3u << 8;
    return (t->flags & COLIBRI_TEXT_BY_BYTES) && !(t->flags & alters);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    choices_t c = {data, n};
    const tables_t *seed = &tables[below(&c, N_TABLES)];
    const uint32_t flags = below(&c, 4);
    const size_t n_text = c.n < MAX_TEXT ? c.n : MAX_TEXT;
    const uint8_t *text = c.bytes;
    colibri_tokenizer_t tokenizer;
    REQUIRE(colibri_tokenizer_init(&tokenizer, seed->bytes, seed->n) == COLIBRI_OK);
    const colibri_text_tables_t *t = colibri_text_header(&tokenizer);
    const size_t nfc = t->flags & COLIBRI_TEXT_NFC;
    const size_t enough = nfc ? COLIBRI_TOKENIZE_NFC_WORKSPACE_BYTES(n_text) : COLIBRI_TOKENIZE_WORKSPACE_BYTES(n_text);
    const size_t max_ids = (nfc ? 3 * n_text : n_text) + 1 + t->n_before + t->n_after;
    int32_t ids[3 * MAX_TEXT + 64];
    int32_t n_ids = encode(&tokenizer, text, n_text, flags, ids, max_ids, enough);
    if (!is_utf8(text, n_text)) {
        REQUIRE(n_ids == COLIBRI_ERR_UTF8);
        return 0;
    }
    REQUIRE(n_ids >= 0);
    const size_t max_bytes = colibri_detokenize_bytes(&tokenizer);
    uint8_t *piece = exactly(1, max_bytes);
    uint8_t *whole = exactly(1, ((size_t)n_ids + 1) * max_bytes);
    size_t n_whole = 0;
    colibri_detokenizer_t stream;
    REQUIRE(colibri_detokenizer_init(&stream) == COLIBRI_OK);
    for (int32_t i = 0; i <= n_ids; i++) {
        REQUIRE(i == n_ids || (uint32_t)ids[i] < t->n_tokens);
        int32_t n_bytes = colibri_detokenize(&tokenizer, &stream, i < n_ids ? ids[i] : -1, (char *)piece, max_bytes);
        REQUIRE(n_bytes >= 0 && (size_t)n_bytes <= max_bytes && is_utf8(piece, (size_t)n_bytes));
        memcpy(whole + n_whole, piece, (size_t)n_bytes);
        n_whole += (size_t)n_bytes;
    }
    if (flags == 0 && is_exact(t)) {
        REQUIRE(n_whole == n_text && memcmp(whole, text, n_text) == 0);
    }
    free(piece);
    free(whole);
    return 0;
}
