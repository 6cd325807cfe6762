/* SPDX-License-Identifier: Apache-2.0 */
/* Unicode normalisation form C (UAX 15): each run of characters that may change each other is decomposed, its marks are sorted, and
 * what composes is composed. ASCII is passed through. */
#include "tables.h"

#define HANGUL_S 0xac00u
#define HANGUL_L 0x1100u
#define HANGUL_V 0x1161u
#define HANGUL_T 0x11a7u
#define HANGUL_N 11172u
#define HANGUL_NV 21u
#define HANGUL_NT 28u

/* A decomposition, or for a pair its last step; unused places are zero. */
typedef struct decomposition {
    uint32_t code;
    uint32_t first;
    uint32_t second;
    uint32_t third;
} decomposition_t;

/* The code points of a run, each with its combining class above bit 24. */
typedef struct run {
    uint32_t *points;
    uint32_t n;
    uint32_t max;
} run_t;

static const decomposition_t *decomposition_of(const colibri_tokenizer_t *tokenizer, uint32_t code)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    const uint32_t *words = colibri_text_words(tokenizer, tables->decompositions);
    const decomposition_t *all = (const decomposition_t *)(const void *)words;
    uint32_t i = colibri_text_lower_bound(words, sizeof *all / sizeof *words, tables->n_decompositions, code);
    return i < tables->n_decompositions && all[i].code == code ? &all[i] : NULL;
}

static uint32_t combining_class(const colibri_tokenizer_t *tokenizer, uint32_t code)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    const uint32_t *marks = colibri_text_words(tokenizer, tables->marks);
    uint32_t i = colibri_text_lower_bound(marks, 1, tables->n_marks, code << 8);
    return i < tables->n_marks && marks[i] >> 8 == code ? marks[i] & 0xffu : 0;
}

/* The composition of two characters, or 0. */
static uint32_t composed(const colibri_tokenizer_t *tokenizer, uint32_t first, uint32_t second)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    if (first - HANGUL_L < 19u && second - HANGUL_V < HANGUL_NV) {
        return HANGUL_S + ((first - HANGUL_L) * HANGUL_NV + second - HANGUL_V) * HANGUL_NT;
    }
    if (first - HANGUL_S < HANGUL_N && (first - HANGUL_S) % HANGUL_NT == 0 && second > HANGUL_T && second < HANGUL_T + HANGUL_NT) {
        return first + second - HANGUL_T;
    }
    uint32_t low = 0;
    uint32_t high = tables->n_pairs;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const uint32_t *pair = colibri_text_words(tokenizer, tables->pairs) + 3u * middle;
        if (pair[0] == first && pair[1] == second) {
            return pair[2];
        }
        if (pair[0] < first || (pair[0] == first && pair[1] < second)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return 0;
}

/* Whether a character stays as it is and what it is whatever comes before it: a run may begin here. */
static uint32_t begins_run(const colibri_tokenizer_t *tokenizer, uint32_t code)
{
    if (code < 0x300u) {
        return 1;
    }
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    const uint32_t *seconds = colibri_text_words(tokenizer, tables->seconds);
    uint32_t i = colibri_text_lower_bound(seconds, 1, tables->n_seconds, code);
    return !(i < tables->n_seconds && seconds[i] == code) && combining_class(tokenizer, code) == 0;
}

static colibri_status add(const colibri_tokenizer_t *tokenizer, run_t *run, uint32_t code)
{
    uint32_t class = combining_class(tokenizer, code);
    uint32_t at = run->n;
    if (run->n == run->max) {
        return COLIBRI_ERR_BUFFER;
    }
    for (; class != 0 && at > 0 && run->points[at - 1] >> 24 > class; at--) {
        run->points[at] = run->points[at - 1];
    }
    run->points[at] = class << 24 | code;
    run->n++;
    return COLIBRI_OK;
}

static colibri_status add_decomposed(const colibri_tokenizer_t *tokenizer, run_t *run, uint32_t code)
{
    uint32_t later[6]; /* what comes after the first character; a decomposition's first may decompose again */
    uint32_t n = 0;
    if (code - HANGUL_S < HANGUL_N) {
        uint32_t index = code - HANGUL_S;
        if (index % HANGUL_NT != 0) {
            later[n++] = HANGUL_T + index % HANGUL_NT;
        }
        later[n++] = HANGUL_V + index / HANGUL_NT % HANGUL_NV;
        code = HANGUL_L + index / (HANGUL_NT * HANGUL_NV);
    }
    const decomposition_t *found;
    while (n < 4u && (found = decomposition_of(tokenizer, code)) != NULL) {
        if (found->third != 0) {
            later[n++] = found->third;
        }
        if (found->second != 0) {
            later[n++] = found->second;
        }
        code = found->first;
    }
    colibri_status status = add(tokenizer, run, code);
    while (n > 0 && status == COLIBRI_OK) {
        status = add(tokenizer, run, later[--n]);
    }
    return status;
}

static void compose(const colibri_tokenizer_t *tokenizer, run_t *run)
{
    uint32_t n = 0;
    uint32_t starter = COLIBRI_TEXT_NONE;
    for (uint32_t i = 0; i < run->n; i++) {
        uint32_t point = run->points[i];
        uint32_t class = point >> 24;
        uint32_t last = n > 0 ? run->points[n - 1] >> 24 : 0;
        /* blocked: a character of the same or a higher class, or another starter, lies between */
        if (starter != COLIBRI_TEXT_NONE && (starter + 1 == n || (last != 0 && last < class))) {
            uint32_t both = composed(tokenizer, run->points[starter], point & 0xffffffu);
            if (both != 0) {
                run->points[starter] = both;
                continue;
            }
        }
        starter = class == 0 ? n : starter;
        run->points[n++] = point;
    }
    run->n = n;
}

static uint32_t put(uint8_t *out, uint32_t code)
{
    if (code < 0x80u) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800u) {
        out[0] = (uint8_t)(0xc0u | code >> 6);
        out[1] = (uint8_t)(0x80u | (code & 0x3fu));
        return 2;
    }
    if (code < 0x10000u) {
        out[0] = (uint8_t)(0xe0u | code >> 12);
        out[1] = (uint8_t)(0x80u | (code >> 6 & 0x3fu));
        out[2] = (uint8_t)(0x80u | (code & 0x3fu));
        return 3;
    }
    out[0] = (uint8_t)(0xf0u | code >> 18);
    out[1] = (uint8_t)(0x80u | (code >> 12 & 0x3fu));
    out[2] = (uint8_t)(0x80u | (code >> 6 & 0x3fu));
    out[3] = (uint8_t)(0x80u | (code & 0x3fu));
    return 4;
}

colibri_status colibri_text_nfc(const colibri_tokenizer_t *tokenizer, colibri_text_span_t *text, colibri_text_workspace_t *workspace)
{
    uint8_t *out = workspace->bytes;
    uint32_t n = 0;
    for (uint32_t at = 0; at < text->n;) {
        /* The run's code points stand behind what is written so far: 12 bytes of text for each are more than it can become. */
        uint32_t scratch = (n + 7u) / 8u * 8u + 8u;
        if (scratch > workspace->n) {
            return COLIBRI_ERR_BUFFER;
        }
        run_t run = {(uint32_t *)(void *)(out + scratch), 0, (workspace->n - scratch) / 4u};
        uint32_t first = at;
        while (at < text->n && (at == first || !begins_run(tokenizer, colibri_text_code_point(text->bytes + at)))) {
            colibri_status status = add_decomposed(tokenizer, &run, colibri_text_code_point(text->bytes + at));
            if (status != COLIBRI_OK) {
                return status;
            }
            at += colibri_text_char_bytes(text->bytes[at]);
        }
        compose(tokenizer, &run);
        for (uint32_t i = 0; i < run.n; i++) {
            uint32_t code = run.points[i] & 0xffffffu; /* read before its place, 4 bytes or more ahead, is written */
            n += put(out + n, code);
        }
    }
    text->bytes = out;
    text->n = n;
    n = (n + 7u) / 8u * 8u;
    workspace->bytes += n;
    workspace->n -= n;
    return COLIBRI_OK;
}
