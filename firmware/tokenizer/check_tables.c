/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the tables, once, when they are bound: afterwards every id, length and program is believed. */
#include "tables.h"

/* Whether n ids, `stride` indices from one to the next, are tokens; `none` allows COLIBRI_TEXT_NONE too. */
static uint32_t ids_hold(const colibri_tokenizer_t *tokenizer, uint32_t offset, uint32_t n, uint32_t stride, uint32_t none)
{
    const uint32_t n_tokens = colibri_text_header(tokenizer)->n_tokens;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = colibri_text_index(tokenizer, offset, i * stride);
        if (id >= n_tokens && !(none && id == COLIBRI_TEXT_NONE)) {
            return 0;
        }
    }
    return 1;
}

/* Tokens follow one another within the text, and the longest is as long as the header says. */
static uint32_t tokens_hold(const colibri_tokenizer_t *tokenizer)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    const uint32_t *ends = colibri_text_words(tokenizer, tables->ends);
    uint32_t longest = 0;
    for (uint32_t i = 0; i < tables->n_tokens; i++) {
        if (ends[i + 1] < ends[i]) {
            return 0;
        }
        uint32_t n = ends[i + 1] - ends[i];
        longest = n > longest ? n : longest;
    }
    return ends[tables->n_tokens] <= tables->n_bytes - tables->text && longest == tables->longest_token;
}

/* Special tokens have a text of whole characters, so that what is between them is whole too. */
static uint32_t specials_hold(const colibri_tokenizer_t *tokenizer)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    for (uint32_t i = 0; i < tables->n_specials; i++) {
        uint32_t id = colibri_text_word(tokenizer, tables->specials + 32u, 2u * i);
        if (id >= tables->n_tokens) {
            return 0;
        }
        colibri_text_span_t token = colibri_text_token(tokenizer, id);
        if (token.n == 0 || !colibri_text_is_utf8(token)) {
            return 0;
        }
    }
    return 1;
}

static uint32_t around_holds(const colibri_tokenizer_t *tokenizer)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    const uint32_t *around = colibri_text_words(tokenizer, tables->around);
    for (uint32_t i = 0; i < tables->n_before + tables->n_after; i++) {
        if (around[i] >= tables->n_tokens) {
            return 0;
        }
    }
    return tables->unknown < tables->n_tokens || tables->unknown == COLIBRI_TEXT_NONE;
}

/* The program of one split, whole in n words: how many it takes, or 0. */
static uint32_t split_words(const uint32_t *program, uint32_t n)
{
    if (n < 2 || program[1] > n - 2) {
        return 0;
    }
    const uint32_t n_alternatives = program[0] & 0x7fffffffu;
    uint32_t at = 2;
    n = program[1] + 2;
    for (uint32_t i = 0; i < n_alternatives; i++) {
        uint32_t n_items = at < n ? program[at] & 0xffu : 0;
        if (n_items == 0 || n_items > COLIBRI_TEXT_MAX_ITEMS || 3u + 3u * n_items > n - at) {
            return 0;
        }
        at += 3u + 3u * n_items;
    }
    return n;
}

static uint32_t splits_hold(const colibri_tokenizer_t *tokenizer)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    const uint32_t *program = colibri_text_words(tokenizer, tables->splits);
    uint32_t left = (tables->n_bytes - tables->splits) / 4u;
    for (uint32_t i = 0; i < tables->n_splits; i++) {
        uint32_t n = split_words(program, left);
        if (n == 0) {
            return 0;
        }
        program += n;
        left -= n;
    }
    return colibri_text_word(tokenizer, tables->classes + 128u, 0) >> 8 == 0; /* the first run begins at 0 */
}

/* Each score is 0 or from 2**-40 to below 2**20, and none is larger than that of an unknown character, which bounds every sum. */
static uint32_t scores_hold(const colibri_tokenizer_t *tokenizer)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    const uint32_t *scores = colibri_text_words(tokenizer, tables->scores);
    const uint32_t high = tables->unknown_score_high;
    const uint32_t most = high >> 31 ? ~high : high;
    for (uint32_t i = 0; i < tables->n_tokens; i++) {
        uint32_t bits = scores[i] & 0x7fffffffu;
        if (bits != 0 && (bits < 0x2b800000u || bits >= 0x49800000u || (uint32_t)(colibri_text_magnitude(bits) >> 32) > most)) {
            return 0;
        }
    }
    return 1;
}

colibri_status colibri_text_check(const colibri_tokenizer_t *tokenizer)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    /* left and right are only compared, and so is the rank */
    const uint32_t merged = tables->merges + (colibri_text_flag(tokenizer, COLIBRI_TEXT_WIDE) ? 8u : 4u);
    if (!tokens_hold(tokenizer) || !ids_hold(tokenizer, tables->sorted, tables->n_sorted, 1, 0) ||
        !ids_hold(tokenizer, merged, tables->n_merges, 4, 0) ||
        !ids_hold(tokenizer, tables->byte_ids, colibri_text_has_bytes(tables) ? 256u : 0, 1, 1) || !specials_hold(tokenizer) ||
        !around_holds(tokenizer) || !splits_hold(tokenizer) ||
        (colibri_text_flag(tokenizer, COLIBRI_TEXT_UNIGRAM) && !scores_hold(tokenizer))) {
        return COLIBRI_ERR_TABLES;
    }
    return COLIBRI_OK;
}
