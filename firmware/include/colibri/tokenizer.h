/* SPDX-License-Identifier: Apache-2.0 */
/* Text to token ids and back, on the device: the model's own tokenizer, from the tables that `colibri pack --text` puts into the
 * image (and `colibri pack` into model_tokenizer.bin). Optional: nothing else of the engine uses it.
 *
 *     colibri_tokenizer_t tokenizer;
 *     colibri_tokenizer_init(&tokenizer, image + COLIBRI_TOKENIZER_AT, COLIBRI_TOKENIZER_BYTES);
 *     n = colibri_tokenize(&tokenizer, text, n_bytes, COLIBRI_TOKENIZE_AROUND, ids, max_ids, workspace, sizeof workspace);
 *
 * EXACT: the ids and the text are those of the tokenizers package. The conventions are those of colibri.h.
 */
#ifndef COLIBRI_TOKENIZER_H
#define COLIBRI_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "model_config.h" /* only for COLIBRI_PREFIX */

#include "colibri/names.h"
#include "colibri/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct colibri_tokenizer {
    const uint8_t *tables;
} colibri_tokenizer_t;

/* Bind a tokenizer to its tables, which MUST be 4-byte aligned and stay where they are.
 *
 * Checks     magic, version, that every table lies within n_bytes, and every id, length and program in them: whatever the bytes
 *            are, what is bound is read in bounds. How long a split's program may take is not checked.
 * Writes     *tokenizer, on success only.
 * COST       one pass over the tables, about 10 instructions for each token and each merge.
 */
COLIBRI_RESULT colibri_status colibri_tokenizer_init(colibri_tokenizer_t *tokenizer, const void *tables, size_t n_bytes);

/* Put the ids that the model wants around a text (BOS, EOS). */
#define COLIBRI_TOKENIZE_AROUND 1u
/* Find the model's special tokens in the text. Text from outside can then speak with the model's own control tokens. */
#define COLIBRI_TOKENIZE_SPECIAL 2u

/* Enough workspace for any text of n_bytes. Less will do where the longest piece of the text, usually a word, is short: the text
 * itself and 4 bytes, then 16 bytes for each byte of that piece and 16 more. */
#define COLIBRI_TOKENIZE_WORKSPACE_BYTES(n_bytes) (17u * (size_t)(n_bytes) + 64u)
/* The same where the model normalises characters (NFC, as Qwen does), which may triple a text. */
#define COLIBRI_TOKENIZE_NFC_WORKSPACE_BYTES(n_bytes) (56u * (size_t)(n_bytes) + 64u)

/* The ids of a text: their number, or a negative status.
 *
 * Shapes     text (n_bytes), UTF-8 without a terminator; ids (max_ids); workspace 8-byte aligned.
 * Writes     ids and workspace; on an error their content is unspecified.
 * Errors     COLIBRI_ERR_UTF8; COLIBRI_ERR_BUFFER where max_ids or the workspace is too small; COLIBRI_ERR_RANGE where a piece is
 *            so long that the sum of its scores may not be exact (unigram; above 65,535 bytes where no score is below -54).
 * COST       about (measured) a few hundred instructions a character; a piece of n bytes takes up to n * n / 2 steps.
 */
COLIBRI_RESULT int32_t colibri_tokenize(const colibri_tokenizer_t *tokenizer, const char *text, size_t n_bytes, uint32_t flags,
                                        int32_t *ids, size_t max_ids, void *workspace, size_t workspace_bytes);

/* Bytes of a character that is not complete yet, or of one that byte tokens spell. */
#define COLIBRI_DETOKENIZE_HELD 256

/* Where a stream of ids has got to. Start with colibri_detokenizer_init. */
typedef struct colibri_detokenizer {
    uint16_t n_held;
    uint8_t begun;  /* the start of the text is past */
    uint8_t broken; /* the present run of byte tokens is no UTF-8 */
    uint8_t held[COLIBRI_DETOKENIZE_HELD];
} colibri_detokenizer_t;

COLIBRI_RESULT colibri_status colibri_detokenizer_init(colibri_detokenizer_t *stream);

/* Bytes that one call of colibri_detokenize may write. */
COLIBRI_RESULT size_t colibri_detokenize_bytes(const colibri_tokenizer_t *tokenizer);

/* The text of one id more: how many bytes, or a negative status. All ids' texts in sequence are the text of the whole; each is
 * whole characters. id -1 ends the stream: what waits comes out.
 *
 * Shapes     text (max_bytes), at least colibri_detokenize_bytes; no terminator is written.
 * Errors     COLIBRI_ERR_TOKEN_ID for an id outside the vocabulary, COLIBRI_ERR_BUFFER.
 */
COLIBRI_RESULT int32_t colibri_detokenize(const colibri_tokenizer_t *tokenizer, colibri_detokenizer_t *stream, int32_t id, char *text,
                                          size_t max_bytes);

#ifdef __cplusplus
}
#endif

#endif
