/* SPDX-License-Identifier: Apache-2.0 */
/* A text to ids: special tokens first, then what is between them is normalised, cut into pieces, and each piece encoded. */
#include "tables.h"

/* One call. */
typedef struct call {
    const colibri_tokenizer_t *tokenizer;
    uint32_t flags;
    colibri_text_ids_t out;
    colibri_text_workspace_t workspace;
} call_t;

/* A special token in a text: bytes begin to end - 1, the white space that it takes included. */
typedef struct found {
    uint32_t begin;
    uint32_t end;
    uint32_t id;
} found_t;

/* Bytes of the white space that begins at `at`, or 0: what Unicode calls White_Space. */
static uint32_t space_at(colibri_text_span_t text, uint32_t at)
{
    if (at >= text.n) {
        return 0;
    }
    const uint8_t *b = text.bytes + at;
    if (b[0] == 0x20u || (b[0] >= 0x09u && b[0] <= 0x0du)) {
        return 1;
    }
    if (b[0] == 0xc2u) {
        return b[1] == 0x85u || b[1] == 0xa0u ? 2 : 0;
    }
    uint32_t is_space = (b[0] == 0xe1u && b[1] == 0x9au && b[2] == 0x80u) ||
                        (b[0] == 0xe2u && b[1] == 0x80u &&
                         (b[2] <= 0x8au || b[2] == 0xa8u || b[2] == 0xa9u || b[2] == 0xafu)) ||
                        (b[0] == 0xe2u && b[1] == 0x81u && b[2] == 0x9fu) || (b[0] == 0xe3u && b[1] == 0x80u && b[2] == 0x80u);
    return is_space ? 3 : 0;
}

/* The longest special token that begins at `at`; its index, or COLIBRI_TEXT_NONE. */
static uint32_t special_at(const colibri_tokenizer_t *tokenizer, colibri_text_span_t text, uint32_t at, uint32_t normalized)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    if (!colibri_text_bit(tokenizer, tables->specials, text.bytes[at])) {
        return COLIBRI_TEXT_NONE;
    }
    for (uint32_t i = 0; i < tables->n_specials; i++) {
        colibri_text_span_t token = colibri_text_token(tokenizer, colibri_text_word(tokenizer, tables->specials + 32u, 2u * i));
        uint32_t flags = colibri_text_word(tokenizer, tables->specials + 32u, 2u * i + 1u);
        uint32_t same = 0;
        if ((flags & COLIBRI_TEXT_SPECIAL_NORMALIZED) == normalized && token.n <= text.n - at) {
            while (same < token.n && token.bytes[same] == text.bytes[at + same]) {
                same++;
            }
            if (same == token.n) {
                return i;
            }
        }
    }
    return COLIBRI_TEXT_NONE;
}

/* The next special token at or after `from`, with the white space it takes; id COLIBRI_TEXT_NONE: there is none. */
static found_t next_special(const colibri_tokenizer_t *tokenizer, colibri_text_span_t text, uint32_t from, uint32_t normalized)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    for (uint32_t at = from; at < text.n; at++) {
        uint32_t i = special_at(tokenizer, text, at, normalized);
        if (i == COLIBRI_TEXT_NONE) {
            continue;
        }
        found_t found = {at, at, colibri_text_word(tokenizer, tables->specials + 32u, 2u * i)};
        uint32_t flags = colibri_text_word(tokenizer, tables->specials + 32u, 2u * i + 1u);
        found.end += colibri_text_token(tokenizer, found.id).n;
        uint32_t n;
        while ((flags & COLIBRI_TEXT_SPECIAL_RIGHT) && (n = space_at(text, found.end)) != 0) {
            found.end += n;
        }
        for (uint32_t back = at; (flags & COLIBRI_TEXT_SPECIAL_LEFT) && back > from;) {
            back--; /* a byte inside a character begins no white space */
            n = space_at(text, back);
            found.begin = n != 0 && back + n == found.begin ? back : found.begin;
            if (found.begin > back + 3u) {
                break;
            }
        }
        return found;
    }
    found_t none = {text.n, text.n, COLIBRI_TEXT_NONE};
    return none;
}

/* The pieces of a normalised text, split by split, and their ids. */
static colibri_status encode_pieces(call_t *call, colibri_text_span_t text)
{
    const uint32_t n_splits = colibri_text_header(call->tokenizer)->n_splits;
    colibri_text_span_t rest[COLIBRI_TEXT_MAX_SPLITS + 1]; /* what each split still has to cut */
    uint32_t level = 0;
    rest[0] = text;
    for (;;) {
        if (rest[level].n == 0) {
            if (level == 0) {
                return COLIBRI_OK;
            }
            level--;
            continue;
        }
        if (level == n_splits) {
            colibri_status status = colibri_text_flag(call->tokenizer, COLIBRI_TEXT_UNIGRAM)
                                        ? colibri_text_unigram(call->tokenizer, rest[level], &call->out, call->workspace)
                                        : colibri_text_bpe(call->tokenizer, rest[level], &call->out, call->workspace);
            if (status != COLIBRI_OK) {
                return status;
            }
            rest[level].n = 0;
            continue;
        }
        uint32_t removed;
        colibri_text_span_t piece = {rest[level].bytes, 0};
        piece.n = colibri_text_next_piece(call->tokenizer, level, rest[level], &removed);
        rest[level].bytes += piece.n;
        rest[level].n -= piece.n;
        piece.n = removed ? 0 : piece.n;
        rest[++level] = piece;
    }
}

/* The visible space of SentencePiece, U+2581. */
static uint32_t is_visible_space(colibri_text_span_t text, uint32_t at)
{
    return at + 3u <= text.n && text.bytes[at] == 0xe2u && text.bytes[at + 1] == 0x96u && text.bytes[at + 2] == 0x81u;
}

/* Copy a text into the workspace, with the space before it that `prefix` asks for, and each visible space as a plain one. Takes
 * what it needs off the workspace. */
static colibri_status normalise(call_t *call, colibri_text_span_t *text, uint32_t prefix, uint32_t is_first)
{
    const uint32_t spaces = colibri_text_flag(call->tokenizer, COLIBRI_TEXT_SPACES);
    uint8_t *bytes = call->workspace.bytes;
    uint32_t n = 0;
    if (call->workspace.n < text->n + 8u) {
        return COLIBRI_ERR_BUFFER;
    }
    uint32_t begins_with_space = text->bytes[0] == ' ' || (spaces && is_visible_space(*text, 0));
    if (prefix == COLIBRI_TEXT_PREFIX_ALWAYS ||
        (!begins_with_space &&
         (prefix == COLIBRI_TEXT_PREFIX_UNLESS_SPACE || (prefix == COLIBRI_TEXT_PREFIX_FIRST && is_first)))) {
        bytes[n++] = ' ';
    }
    for (uint32_t i = 0; i < text->n; i++) {
        uint32_t visible = spaces && is_visible_space(*text, i);
        bytes[n++] = visible ? ' ' : text->bytes[i];
        i += 2u * visible;
    }
    text->bytes = bytes;
    text->n = n;
    n = (n + 7u) / 8u * 8u;
    call->workspace.bytes += n;
    call->workspace.n -= n;
    return COLIBRI_OK;
}

/* A text between special tokens, to ids. A space that a normalizer puts before it is there when normalised special tokens are
 * looked for; one of a pre-tokenizer comes after that. */
static colibri_status encode_text(call_t *call, colibri_text_span_t text, uint32_t is_first)
{
    const uint32_t prefix = colibri_text_header(call->tokenizer)->flags >> 8 & 3u;
    const uint32_t before = prefix == COLIBRI_TEXT_PREFIX_ALWAYS;
    const colibri_text_workspace_t whole = call->workspace;
    colibri_status status = COLIBRI_OK;
    if (text.n > 0 && colibri_text_flag(call->tokenizer, COLIBRI_TEXT_NFC)) {
        status = colibri_text_nfc(call->tokenizer, &text, &call->workspace);
    }
    if (text.n > 0 && before && status == COLIBRI_OK) {
        status = normalise(call, &text, prefix, is_first);
    }
    for (uint32_t at = 0; at < text.n && status == COLIBRI_OK;) {
        found_t found = {text.n, text.n, COLIBRI_TEXT_NONE};
        if (call->flags & COLIBRI_TOKENIZE_SPECIAL) {
            found = next_special(call->tokenizer, text, at, COLIBRI_TEXT_SPECIAL_NORMALIZED);
        }
        colibri_text_span_t between = {text.bytes + at, found.begin - at};
        const colibri_text_workspace_t rest = call->workspace;
        if (between.n > 0 && !before) {
            status = normalise(call, &between, prefix, is_first && at == 0);
        }
        if (status == COLIBRI_OK) {
            status = encode_pieces(call, between);
        }
        call->workspace = rest;
        if (status == COLIBRI_OK && found.id != COLIBRI_TEXT_NONE) {
            status = colibri_text_emit(&call->out, found.id);
        }
        at = found.end;
    }
    call->workspace = whole;
    return status;
}

static colibri_status encode_all(call_t *call, colibri_text_span_t text)
{
    const colibri_text_tables_t *tables = colibri_text_header(call->tokenizer);
    const uint32_t around = call->flags & COLIBRI_TOKENIZE_AROUND ? 1u : 0u;
    colibri_status status = COLIBRI_OK;
    for (uint32_t i = 0; i < tables->n_before * around && status == COLIBRI_OK; i++) {
        status = colibri_text_emit(&call->out, colibri_text_word(call->tokenizer, tables->around, i));
    }
    for (uint32_t at = 0; at < text.n && status == COLIBRI_OK;) {
        found_t found = {text.n, text.n, COLIBRI_TEXT_NONE};
        if (call->flags & COLIBRI_TOKENIZE_SPECIAL) {
            found = next_special(call->tokenizer, text, at, 0);
        }
        colibri_text_span_t between = {text.bytes + at, found.begin - at};
        status = encode_text(call, between, at == 0);
        if (status == COLIBRI_OK && found.id != COLIBRI_TEXT_NONE) {
            status = colibri_text_emit(&call->out, found.id);
        }
        at = found.end;
    }
    for (uint32_t i = 0; i < tables->n_after * around && status == COLIBRI_OK; i++) {
        status = colibri_text_emit(&call->out, colibri_text_word(call->tokenizer, tables->around, tables->n_before + i));
    }
    return status;
}

int32_t colibri_tokenize(const colibri_tokenizer_t *tokenizer, const char *text, size_t n_bytes, uint32_t flags, int32_t *ids,
                         size_t max_ids, void *workspace, size_t workspace_bytes)
{
    if (tokenizer == NULL || text == NULL || ids == NULL || workspace == NULL || tokenizer->tables == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if (flags & ~(COLIBRI_TOKENIZE_AROUND | COLIBRI_TOKENIZE_SPECIAL)) {
        return COLIBRI_ERR_FLAGS;
    }
    if (((uintptr_t)ids & 3u) != 0 || ((uintptr_t)workspace & 7u) != 0) {
        return COLIBRI_ERR_BUFFER_ALIGN;
    }
    if (n_bytes > 0x0fffffffu) {
        return COLIBRI_ERR_BUFFER;
    }
    colibri_text_span_t span = {(const uint8_t *)text, (uint32_t)n_bytes};
    if (!colibri_text_is_utf8(span)) {
        return COLIBRI_ERR_UTF8;
    }
    call_t call = {
        tokenizer,
        flags,
        {ids, 0, max_ids < INT32_MAX ? (uint32_t)max_ids : INT32_MAX},
        {(uint8_t *)workspace, workspace_bytes < UINT32_MAX ? (uint32_t)workspace_bytes : UINT32_MAX},
    };
    colibri_status status = encode_all(&call, span);
    return status == COLIBRI_OK ? (int32_t)call.out.n : status;
}
