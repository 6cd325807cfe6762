/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a tokenizer (docs/FORMAT.md, section 6), and what the files of this folder share. */
#ifndef COLIBRI_TOKENIZER_TABLES_H
#define COLIBRI_TOKENIZER_TABLES_H

#include "colibri/tokenizer.h"

#define COLIBRI_TEXT_MAGIC 0x4b544243u /* "CBTK" */
#define COLIBRI_TEXT_NONE 0xffffffffu
#define COLIBRI_TEXT_MAX_SPLITS 4u
#define COLIBRI_TEXT_MAX_ITEMS 8u /* of an alternative */

enum {
    COLIBRI_TEXT_BY_BYTES = 1,
    COLIBRI_TEXT_UNIGRAM = 2,
    COLIBRI_TEXT_FUSE_UNKNOWN = 4,
    COLIBRI_TEXT_WHOLE_WORDS = 8,
    COLIBRI_TEXT_STRIP_ONE = 16,
    COLIBRI_TEXT_BYTE_FALLBACK = 32,
    COLIBRI_TEXT_WIDE = 64,
    COLIBRI_TEXT_SPACES = 128,
    COLIBRI_TEXT_STRIP_FIRST = 1024,
    COLIBRI_TEXT_BYTE_TOKENS = 2048, /* decoded as bytes */
    COLIBRI_TEXT_NFC = 4096
};

enum { COLIBRI_TEXT_PREFIX_NONE, COLIBRI_TEXT_PREFIX_ALWAYS, COLIBRI_TEXT_PREFIX_UNLESS_SPACE, COLIBRI_TEXT_PREFIX_FIRST };

enum { COLIBRI_TEXT_SPECIAL_NORMALIZED = 1, COLIBRI_TEXT_SPECIAL_LEFT = 2, COLIBRI_TEXT_SPECIAL_RIGHT = 4 };

/* Offsets are in bytes from the start of the header. */
typedef struct colibri_text_tables {
    uint32_t magic;
    uint32_t version;
    uint32_t n_bytes;
    uint32_t flags; /* the flags above; bits 8 and 9: what is put before a text */
    uint32_t n_tokens;
    uint32_t unknown;
    uint32_t n_specials;
    uint32_t n_before;
    uint32_t n_after;
    uint32_t n_merges;
    uint32_t n_sorted;
    uint32_t n_splits;
    uint32_t longest_token;
    uint32_t unknown_score_low;
    uint32_t unknown_score_high;
    uint32_t n_runs;
    uint32_t ends;     /* n_tokens + 1 words: where each token begins and ends in the text */
    uint32_t text;
    uint32_t sorted;   /* ids by their bytes */
    uint32_t merges;   /* left, right, merged, rank, by left and right */
    uint32_t scores;   /* float32 */
    uint32_t byte_ids; /* 256 */
    uint32_t specials; /* 32 bytes: a bit for each first byte; then id and flags, longer ones first */
    uint32_t around;   /* ids before, then after */
    uint32_t hidden;   /* a bit for each id */
    uint32_t classes;  /* 128 bytes, then first code point << 8 | class of each run */
    uint32_t splits;
    uint32_t n_decompositions; /* all of these only with COLIBRI_TEXT_NFC */
    uint32_t decompositions;   /* code point, and up to three that it becomes */
    uint32_t n_pairs;
    uint32_t pairs; /* first, second, composed */
    uint32_t n_marks;
    uint32_t marks; /* code point << 8 | combining class */
    uint32_t n_seconds;
    uint32_t seconds; /* code points that may join what is before them */
} colibri_text_tables_t;

/* A string of the text, or of the tables. */
typedef struct colibri_text_span {
    const uint8_t *bytes;
    uint32_t n;
} colibri_text_span_t;

/* Ids on their way to the caller. */
typedef struct colibri_text_ids {
    int32_t *ids;
    uint32_t n;
    uint32_t max;
} colibri_text_ids_t;

/* Memory for one piece. */
typedef struct colibri_text_workspace {
    uint8_t *bytes; /* 8-byte aligned */
    uint32_t n;
} colibri_text_workspace_t;

static inline const colibri_text_tables_t *colibri_text_header(const colibri_tokenizer_t *tokenizer)
{
    return (const colibri_text_tables_t *)(const void *)tokenizer->tables;
}

static inline uint32_t colibri_text_flag(const colibri_tokenizer_t *tokenizer, uint32_t flag)
{
    return colibri_text_header(tokenizer)->flags & flag;
}

static inline const uint32_t *colibri_text_words(const colibri_tokenizer_t *tokenizer, uint32_t offset)
{
    return (const uint32_t *)(const void *)(tokenizer->tables + offset);
}

static inline uint32_t colibri_text_word(const colibri_tokenizer_t *tokenizer, uint32_t offset, uint32_t index)
{
    return colibri_text_words(tokenizer, offset)[index];
}

/* An id, or another index: two or four bytes; COLIBRI_TEXT_NONE where there is none. */
static inline uint32_t colibri_text_index(const colibri_tokenizer_t *tokenizer, uint32_t offset, uint32_t index)
{
    if (colibri_text_flag(tokenizer, COLIBRI_TEXT_WIDE)) {
        return colibri_text_word(tokenizer, offset, index);
    }
    uint32_t value = ((const uint16_t *)(const void *)(tokenizer->tables + offset))[index];
    return value == 0xffffu ? COLIBRI_TEXT_NONE : value;
}

static inline colibri_text_span_t colibri_text_token(const colibri_tokenizer_t *tokenizer, uint32_t id)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    uint32_t begin = colibri_text_word(tokenizer, tables->ends, id);
    colibri_text_span_t token = {tokenizer->tables + tables->text + begin, colibri_text_word(tokenizer, tables->ends, id + 1) - begin};
    return token;
}

static inline uint32_t colibri_text_bit(const colibri_tokenizer_t *tokenizer, uint32_t offset, uint32_t index)
{
    uint32_t byte = tokenizer->tables[offset + index / 8u];
    return byte >> (index & 7u) & 1u;
}

static inline colibri_status colibri_text_emit(colibri_text_ids_t *out, uint32_t id)
{
    if (out->n == out->max) {
        return COLIBRI_ERR_BUFFER;
    }
    out->ids[out->n++] = (int32_t)id;
    return COLIBRI_OK;
}

/* Bytes of the UTF-8 character that begins with a byte; the text is valid. */
static inline uint32_t colibri_text_char_bytes(uint8_t first)
{
    return first < 0x80u ? 1u : first < 0xe0u ? 2u : first < 0xf0u ? 3u : 4u;
}

/* Bytes that the character in bytes needs, as far as n of them tell; 0: it can be none. */
uint32_t colibri_text_char_needs(const uint8_t *bytes, uint32_t n);

/* The magnitude of a score, a float32 that is 0 or from 2**-40 to below 2**20, in units of 2**-40. */
static inline uint64_t colibri_text_magnitude(uint32_t bits)
{
    const uint32_t exponent = bits >> 23 & 0xffu;
    const uint64_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    if (exponent == 0) {
        return 0;
    }
    return exponent >= 110u ? mantissa << (exponent - 110u) : mantissa >> (110u - exponent);
}

/* Whether a text is UTF-8 to its end. */
uint32_t colibri_text_is_utf8(colibri_text_span_t text);

/* Whether tables that lie within their bytes name only what is there. */
colibri_status colibri_text_check(const colibri_tokenizer_t *tokenizer);

/* Bytes that byte tokens are made of, or characters may be taken apart into. */
static inline uint32_t colibri_text_has_bytes(const colibri_text_tables_t *tables)
{
    return tables->flags & (COLIBRI_TEXT_BY_BYTES | COLIBRI_TEXT_BYTE_FALLBACK | COLIBRI_TEXT_BYTE_TOKENS);
}

/* The first of n records of `stride` words each, in rising order of their first word, whose first word is at least `key`; n where
 * none is. */
static inline uint32_t colibri_text_lower_bound(const uint32_t *records, uint32_t stride, uint32_t n, uint32_t key)
{
    uint32_t low = 0;
    while (low < n) {
        uint32_t middle = low + (n - low) / 2;
        if (records[(size_t)stride * middle] < key) {
            low = middle + 1;
        } else {
            n = middle;
        }
    }
    return low;
}

/* The code point of a character; the text is valid. */
static inline uint32_t colibri_text_code_point(const uint8_t *bytes)
{
    uint32_t first = bytes[0];
    if (first < 0x80u) {
        return first;
    }
    if (first < 0xe0u) {
        return (first & 0x1fu) << 6 | (bytes[1] & 0x3fu);
    }
    uint32_t rest = (uint32_t)(bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
    if (first < 0xf0u) {
        return (first & 0x0fu) << 12 | rest;
    }
    return (first & 0x07u) << 18 | rest << 6 | (bytes[3] & 0x3fu);
}

/* ---- Normalisation ---- */

/* Replace a text by its normalisation form C in the workspace, and take what that needs off the workspace. */
colibri_status colibri_text_nfc(const colibri_tokenizer_t *tokenizer, colibri_text_span_t *text, colibri_text_workspace_t *workspace);

/* ---- Vocabulary ---- */

/* Of the sorted tokens *low to *high - 1, which agree in their first `depth` bytes, keep those whose next byte is `byte`. */
void colibri_text_narrow(const colibri_tokenizer_t *tokenizer, uint32_t *low, uint32_t *high, uint32_t depth, uint8_t byte);

/* The id of a token, or COLIBRI_TEXT_NONE. */
uint32_t colibri_text_find(const colibri_tokenizer_t *tokenizer, colibri_text_span_t token);

/* Ids of characters that are no tokens: of their bytes, where all have one, or the unknown token, or nothing. */
colibri_status colibri_text_unknown(const colibri_tokenizer_t *tokenizer, colibri_text_span_t characters, colibri_text_ids_t *out);

/* ---- Pieces ---- */

/* Bytes of the next piece of a text that split number `split` makes; *removed: it is to be dropped. */
uint32_t colibri_text_next_piece(const colibri_tokenizer_t *tokenizer, uint32_t split, colibri_text_span_t text, uint32_t *removed);

/* ---- Models: a piece to ids ---- */

colibri_status colibri_text_bpe(const colibri_tokenizer_t *tokenizer, colibri_text_span_t piece, colibri_text_ids_t *out,
                                colibri_text_workspace_t workspace);
colibri_status colibri_text_unigram(const colibri_tokenizer_t *tokenizer, colibri_text_span_t piece, colibri_text_ids_t *out,
                                    colibri_text_workspace_t workspace);

#endif
