/* SPDX-License-Identifier: Apache-2.0 */
/* Ids to text, one at a time. What is not certain yet waits in the stream: a character whose bytes are not all there, and a run of
 * byte tokens, which is text only if all of it is UTF-8. */
#include "tables.h"

/* Text on its way to the caller. */
typedef struct sink {
    uint8_t *bytes;
    uint32_t n;
} sink_t;

static void put(sink_t *out, const uint8_t *bytes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        out->bytes[out->n++] = bytes[i];
    }
}

/* U+FFFD, which stands for bytes that are no character. */
static void put_replacement(sink_t *out)
{
    static const uint8_t replacement[3] = {0xef, 0xbf, 0xbd};
    put(out, replacement, sizeof replacement);
}

/* ---- Byte-level tokens: the bytes of all of them are the text, broken characters replaced ---- */

static void flush_character(colibri_detokenizer_t *stream, sink_t *out)
{
    if (stream->n_held > 0) {
        put_replacement(out);
        stream->n_held = 0;
    }
}

static void take_byte(colibri_detokenizer_t *stream, uint8_t byte, sink_t *out)
{
    stream->held[stream->n_held++] = byte;
    uint32_t needs = colibri_text_char_needs(stream->held, stream->n_held);
    if (needs == 0 && stream->n_held > 1) { /* the bytes before end here; this one begins anew */
        put_replacement(out);
        stream->held[0] = byte;
        stream->n_held = 1;
        needs = colibri_text_char_needs(stream->held, 1);
    }
    if (needs == 0) {
        flush_character(stream, out);
    } else if (needs == stream->n_held) {
        put(out, stream->held, needs);
        stream->n_held = 0;
    }
}

/* ---- Byte fallback: a run of byte tokens is text, or a replacement for each byte ---- */

/* Bytes of the run that are whole characters; *is_utf8: the rest may become one. */
static uint32_t whole_characters(const colibri_detokenizer_t *stream, uint32_t *is_utf8)
{
    uint32_t at = 0;
    *is_utf8 = 1;
    while (at < stream->n_held) {
        uint32_t left = stream->n_held - at;
        uint32_t n = colibri_text_char_needs(stream->held + at, left);
        if (n == 0 || n > left) {
            *is_utf8 = n != 0;
            break;
        }
        at += n;
    }
    return at;
}

static void replace_held(colibri_detokenizer_t *stream, sink_t *out)
{
    for (uint32_t i = 0; i < stream->n_held; i++) {
        put_replacement(out);
    }
    stream->n_held = 0;
}

static void end_run(colibri_detokenizer_t *stream, sink_t *out)
{
    uint32_t is_utf8;
    if (whole_characters(stream, &is_utf8) == stream->n_held) {
        put(out, stream->held, stream->n_held);
        stream->n_held = 0;
    }
    replace_held(stream, out);
    stream->broken = 0;
}

static void take_run_byte(colibri_detokenizer_t *stream, uint8_t byte, sink_t *out)
{
    uint32_t is_utf8;
    if (stream->n_held == COLIBRI_DETOKENIZE_HELD) { /* what is whole goes out, although the run may still break */
        uint32_t n = whole_characters(stream, &is_utf8);
        put(out, stream->held, n);
        for (uint32_t i = n; i < stream->n_held; i++) {
            stream->held[i - n] = stream->held[i];
        }
        stream->n_held = (uint16_t)(stream->n_held - n);
    }
    stream->held[stream->n_held++] = byte;
    (void)whole_characters(stream, &is_utf8);
    if (stream->broken || !is_utf8) {
        stream->broken = 1;
        replace_held(stream, out);
    }
}

/* The byte of a token of byte fallback, or -1. */
static int32_t byte_of(const colibri_tokenizer_t *tokenizer, uint32_t id)
{
    colibri_text_span_t token = colibri_text_token(tokenizer, id);
    uint32_t byte = 0;
    if (!colibri_text_flag(tokenizer, COLIBRI_TEXT_BYTE_TOKENS) || token.n != 6 || token.bytes[0] != '<') {
        return -1;
    }
    for (uint32_t i = 3; i < 5; i++) {
        uint32_t c = token.bytes[i];
        byte = byte << 4 | (c <= '9' ? c - '0' : c - 'A' + 10u);
    }
    byte &= 0xffu;
    return colibri_text_index(tokenizer, colibri_text_header(tokenizer)->byte_ids, byte) == id ? (int32_t)byte : -1;
}

/* ---- Public ---- */

colibri_status colibri_detokenizer_init(colibri_detokenizer_t *stream)
{
    if (stream == NULL) {
        return COLIBRI_ERR_NULL;
    }
    stream->n_held = 0;
    stream->begun = 0;
    stream->broken = 0;
    return COLIBRI_OK;
}

size_t colibri_detokenize_bytes(const colibri_tokenizer_t *tokenizer)
{
    if (tokenizer == NULL || tokenizer->tables == NULL) {
        return 0;
    }
    /* each byte of a token may be a broken character of its own */
    size_t longest = colibri_text_header(tokenizer)->longest_token;
    return 3u * longest + 3u * COLIBRI_DETOKENIZE_HELD;
}

/* Drop one space at the start, or all spaces. */
static void strip(sink_t *out, uint32_t all)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        if (out->bytes[i] != ' ' || !(all || i == 0)) {
            out->bytes[n++] = out->bytes[i];
        }
    }
    out->n = n;
}

static void take_token(const colibri_tokenizer_t *tokenizer, colibri_detokenizer_t *stream, uint32_t id, sink_t *out)
{
    colibri_text_span_t token = colibri_text_token(tokenizer, id);
    int32_t byte = byte_of(tokenizer, id);
    if (colibri_text_flag(tokenizer, COLIBRI_TEXT_BY_BYTES)) {
        for (uint32_t i = 0; i < token.n; i++) {
            take_byte(stream, token.bytes[i], out);
        }
    } else if (byte >= 0) {
        take_run_byte(stream, (uint8_t)byte, out);
    } else {
        end_run(stream, out);
        put(out, token.bytes, token.n);
    }
}

int32_t colibri_detokenize(const colibri_tokenizer_t *tokenizer, colibri_detokenizer_t *stream, int32_t id, char *text, size_t max_bytes)
{
    if (tokenizer == NULL || stream == NULL || text == NULL || tokenizer->tables == NULL) {
        return COLIBRI_ERR_NULL;
    }
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    if (max_bytes < colibri_detokenize_bytes(tokenizer)) {
        return COLIBRI_ERR_BUFFER;
    }
    if (id < -1 || (id >= 0 && (uint32_t)id >= tables->n_tokens)) {
        return COLIBRI_ERR_TOKEN_ID;
    }
    sink_t out = {(uint8_t *)text, 0};
    if (id < 0) {
        if (colibri_text_flag(tokenizer, COLIBRI_TEXT_BY_BYTES)) {
            flush_character(stream, &out);
        } else {
            end_run(stream, &out);
        }
    } else if (!colibri_text_bit(tokenizer, tables->hidden, (uint32_t)id)) {
        take_token(tokenizer, stream, (uint32_t)id, &out);
        if (!stream->begun && colibri_text_flag(tokenizer, COLIBRI_TEXT_STRIP_FIRST)) {
            strip(&out, 1);
            stream->begun = 1;
        }
    }
    if (!stream->begun && out.n > 0) {
        if (colibri_text_flag(tokenizer, COLIBRI_TEXT_STRIP_ONE)) {
            strip(&out, 0);
        }
        stream->begun = 1;
    }
    return (int32_t)out.n;
}
