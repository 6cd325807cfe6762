/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-pair encoding (Sennrich et al. 2016): of all neighbouring pairs that have a merge, the preferred one, leftmost first, until
 * none has. */
#include "tables.h"

/* The index of the merge of two tokens, or COLIBRI_TEXT_NONE. */
static uint32_t find_merge(const colibri_tokenizer_t *tokenizer, uint32_t left, uint32_t right)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    uint32_t low = 0;
    uint32_t high = tables->n_merges;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t l = colibri_text_index(tokenizer, tables->merges, 4u * middle);
        uint32_t r = colibri_text_index(tokenizer, tables->merges, 4u * middle + 1u);
        if (l == left && r == right) {
            return middle;
        }
        if (l < left || (l == left && r < right)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return COLIBRI_TEXT_NONE;
}

/* The preference of merging symbol i with the next: a lower number first. */
static uint32_t rank_of(const colibri_tokenizer_t *tokenizer, const uint32_t *symbols, uint32_t i, uint32_t n)
{
    uint32_t merge = i + 1 < n ? find_merge(tokenizer, symbols[i], symbols[i + 1]) : COLIBRI_TEXT_NONE;
    if (merge == COLIBRI_TEXT_NONE) {
        return COLIBRI_TEXT_NONE;
    }
    return colibri_text_index(tokenizer, colibri_text_header(tokenizer)->merges, 4u * merge + 3u);
}

/* The symbols of a piece before any merge. `out` has room for its bytes. */
static void symbols_of(const colibri_tokenizer_t *tokenizer, colibri_text_span_t piece, colibri_text_ids_t *out)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    const uint32_t by_bytes = colibri_text_flag(tokenizer, COLIBRI_TEXT_BY_BYTES);
    uint32_t fuse = 0; /* the symbol before is an unknown character */
    for (uint32_t at = 0; at < piece.n;) {
        colibri_text_span_t symbol = {piece.bytes + at, by_bytes ? 1u : colibri_text_char_bytes(piece.bytes[at])};
        uint32_t id = by_bytes ? colibri_text_index(tokenizer, tables->byte_ids, symbol.bytes[0]) : colibri_text_find(tokenizer, symbol);
        at += symbol.n;
        if (id != COLIBRI_TEXT_NONE) {
            out->ids[out->n++] = (int32_t)id;
            fuse = 0;
            continue;
        }
        uint32_t before = out->n;
        colibri_status status = colibri_text_unknown(tokenizer, symbol, out);
        (void)status; /* there is room */
        uint32_t is_unknown = out->n == before + 1 && (uint32_t)out->ids[before] == tables->unknown;
        out->n -= fuse && is_unknown;
        fuse = is_unknown && colibri_text_flag(tokenizer, COLIBRI_TEXT_FUSE_UNKNOWN);
    }
}

colibri_status colibri_text_bpe(const colibri_tokenizer_t *tokenizer, colibri_text_span_t piece, colibri_text_ids_t *out,
                                colibri_text_workspace_t workspace)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    if (colibri_text_flag(tokenizer, COLIBRI_TEXT_WHOLE_WORDS)) {
        uint32_t id = colibri_text_find(tokenizer, piece);
        if (id != COLIBRI_TEXT_NONE) {
            return colibri_text_emit(out, id);
        }
    }
    if (workspace.n / 8u < piece.n) {
        return COLIBRI_ERR_BUFFER;
    }
    uint32_t *symbols = (uint32_t *)(void *)workspace.bytes;
    uint32_t *ranks = symbols + piece.n;
    colibri_text_ids_t initial = {(int32_t *)symbols, 0, piece.n};
    symbols_of(tokenizer, piece, &initial);
    uint32_t n = initial.n;
    for (uint32_t i = 0; i < n; i++) {
        ranks[i] = rank_of(tokenizer, symbols, i, n);
    }
    for (;;) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < n; i++) {
            best = ranks[i] < ranks[best] ? i : best;
        }
        if (n == 0 || ranks[best] == COLIBRI_TEXT_NONE) {
            break;
        }
        uint32_t merge = find_merge(tokenizer, symbols[best], symbols[best + 1]);
        symbols[best] = colibri_text_index(tokenizer, tables->merges, 4u * merge + 2u);
        n--;
        for (uint32_t i = best + 1; i < n; i++) {
            symbols[i] = symbols[i + 1];
            ranks[i] = ranks[i + 1];
        }
        ranks[best] = rank_of(tokenizer, symbols, best, n);
        if (best > 0) {
            ranks[best - 1] = rank_of(tokenizer, symbols, best - 1, n);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        colibri_status status = colibri_text_emit(out, symbols[i]);
        if (status != COLIBRI_OK) {
            return status;
        }
    }
    return COLIBRI_OK;
}
