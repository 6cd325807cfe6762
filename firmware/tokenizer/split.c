/* SPDX-License-Identifier: Apache-2.0 */
/* Pre-tokenization: ordered alternatives of repeated classes of characters, matched as a backtracking regular expression would. */
#include "tables.h"

#define MANY 255u

/* One item of an alternative as the tables have it. */
typedef struct item {
    uint32_t mask_low;
    uint32_t mask_high;
    uint32_t counts; /* least, most << 8, possessive << 16 */
} item_t;

static uint32_t class_of(const colibri_tokenizer_t *tokenizer, uint32_t code)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    if (code < 128u) {
        return tokenizer->tables[tables->classes + code];
    }
    const uint32_t *runs = colibri_text_words(tokenizer, tables->classes + 128u);
    /* the last run that begins at or before the code point; the first begins at 0 */
    return runs[colibri_text_lower_bound(runs, 1, tables->n_runs, (code + 1u) << 8) - 1u] & 0xffu;
}

/* Bytes of the character at `at` where it is of the classes; otherwise, and at the end, 0. */
static uint32_t one(const colibri_tokenizer_t *tokenizer, const item_t *item, colibri_text_span_t text, uint32_t at)
{
    if (at >= text.n) {
        return 0;
    }
    uint32_t class = class_of(tokenizer, colibri_text_code_point(text.bytes + at));
    uint32_t mask = class < 32u ? item->mask_low : item->mask_high;
    return mask >> (class & 31u) & 1u ? colibri_text_char_bytes(text.bytes[at]) : 0;
}

static uint32_t step_back(colibri_text_span_t text, uint32_t at)
{
    do {
        at--;
    } while ((text.bytes[at] & 0xc0u) == 0x80u);
    return at;
}

/* Where an alternative that begins at `begin` ends; `begin` where it does not match. Items take as much as they can; where a later
 * one fails, the last that can gives one character back. */
static uint32_t match(const colibri_tokenizer_t *tokenizer, const uint32_t *alternative, colibri_text_span_t text, uint32_t begin)
{
    const uint32_t n_items = alternative[0] & 0xffu;
    const uint32_t ahead_kind = alternative[0] >> 8;
    const item_t ahead = {alternative[1], alternative[2], 0};
    const item_t *items = (const item_t *)(const void *)(alternative + 3);
    uint32_t ends[COLIBRI_TEXT_MAX_ITEMS + 1];
    uint32_t counts[COLIBRI_TEXT_MAX_ITEMS];
    uint32_t i = 0;
    ends[0] = begin;
    for (;;) {
        uint32_t failed = 0;
        if (i < n_items) {
            const uint32_t most = items[i].counts >> 8 & 0xffu;
            uint32_t at = ends[i];
            uint32_t n = 0;
            uint32_t bytes;
            while ((n < most || most == MANY) && (bytes = one(tokenizer, &items[i], text, at)) != 0) {
                at += bytes;
                n++;
            }
            counts[i] = n;
            ends[i + 1] = at;
            failed = n < (items[i].counts & 0xffu);
            i++;
        } else if (ahead_kind == 0 || (one(tokenizer, &ahead, text, ends[i]) != 0) == (ahead_kind == 1)) {
            return ends[i];
        } else {
            failed = 1;
        }
        while (failed) {
            if (i == 0) {
                return begin;
            }
            i--;
            if (counts[i] > (items[i].counts & 0xffu) && !(items[i].counts >> 16)) {
                counts[i]--;
                ends[i + 1] = step_back(text, ends[i + 1]);
                i++;
                failed = 0;
            }
        }
    }
}

uint32_t colibri_text_next_piece(const colibri_tokenizer_t *tokenizer, uint32_t split, colibri_text_span_t text, uint32_t *removed)
{
    const uint32_t *program = colibri_text_words(tokenizer, colibri_text_header(tokenizer)->splits);
    for (uint32_t i = 0; i < split; i++) {
        program += 2u + program[1];
    }
    *removed = 0;
    for (uint32_t begin = 0; begin < text.n; begin += colibri_text_char_bytes(text.bytes[begin])) {
        const uint32_t *alternative = program + 2;
        for (uint32_t i = 0; i < (program[0] & 0x7fffffffu); i++) {
            uint32_t end = match(tokenizer, alternative, text, begin);
            if (end > begin) {
                *removed = begin == 0 && program[0] >> 31;
                return begin == 0 ? end : begin;
            }
            alternative += 3u + 3u * (alternative[0] & 0xffu);
        }
    }
    return text.n;
}
