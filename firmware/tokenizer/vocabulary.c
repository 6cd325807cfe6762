/* SPDX-License-Identifier: Apache-2.0 */
/* From bytes to ids. Tokens are found in their sorted order, a byte at a time: no trie, two or four bytes a token. */
#include "tables.h"

/* The byte of sorted token `index` at `depth`; one less than any where the token has ended. */
static int32_t byte_at(const colibri_tokenizer_t *tokenizer, uint32_t index, uint32_t depth)
{
    uint32_t id = colibri_text_index(tokenizer, colibri_text_header(tokenizer)->sorted, index);
    colibri_text_span_t token = colibri_text_token(tokenizer, id);
    return depth < token.n ? token.bytes[depth] : -1;
}

/* The first of low to high - 1 whose byte is at least `byte`. */
static uint32_t lower_bound(const colibri_tokenizer_t *tokenizer, uint32_t low, uint32_t high, uint32_t depth, int32_t byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (byte_at(tokenizer, middle, depth) < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void colibri_text_narrow(const colibri_tokenizer_t *tokenizer, uint32_t *low, uint32_t *high, uint32_t depth, uint8_t byte)
{
    *low = lower_bound(tokenizer, *low, *high, depth, byte);
    *high = lower_bound(tokenizer, *low, *high, depth, (int32_t)byte + 1);
}

uint32_t colibri_text_find(const colibri_tokenizer_t *tokenizer, colibri_text_span_t token)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    uint32_t low = 0;
    uint32_t high = tables->n_sorted;
    for (uint32_t i = 0; i < token.n && low < high; i++) {
        colibri_text_narrow(tokenizer, &low, &high, i, token.bytes[i]);
    }
    /* A token that is a prefix of others comes first. */
    if (low < high && byte_at(tokenizer, low, token.n) < 0) {
        return colibri_text_index(tokenizer, tables->sorted, low);
    }
    return COLIBRI_TEXT_NONE;
}

colibri_status colibri_text_unknown(const colibri_tokenizer_t *tokenizer, colibri_text_span_t characters, colibri_text_ids_t *out)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    uint32_t n = colibri_text_flag(tokenizer, COLIBRI_TEXT_BYTE_FALLBACK) ? characters.n : 0;
    for (uint32_t i = 0; i < n; i++) {
        if (colibri_text_index(tokenizer, tables->byte_ids, characters.bytes[i]) == COLIBRI_TEXT_NONE) {
            n = 0;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        colibri_status status =
            colibri_text_emit(out, colibri_text_index(tokenizer, tables->byte_ids, characters.bytes[i]));
        if (status != COLIBRI_OK) {
            return status;
        }
    }
    return n > 0 || tables->unknown == COLIBRI_TEXT_NONE ? COLIBRI_OK : colibri_text_emit(out, tables->unknown);
}
