/* SPDX-License-Identifier: Apache-2.0 */
/* text: continue a text. The prompt comes as UTF-8 and is tokenised here; what is generated goes out as 'U' frames of whole
 * characters, and each token as a 'K' frame behind the characters that it completed.
 *
 * RAM: the state, the logits, and colibri_app_text, whose size `colibri plan` gives.
 */
#include <colibri/tokenizer.h>

#include "common/generation.h"

const colibri_app_kind_t colibri_app_kind = {'P', 1};

/* The prompt's ids lie where the logits will be; more than that, or than the context, is too long. */
#define MAX_IDS (COLIBRI_VOCAB_SIZE < COLIBRI_MAX_SEQ ? COLIBRI_VOCAB_SIZE : COLIBRI_MAX_SEQ)

/* The size of this object is held against the plan, so it is visible to the linker. */
extern struct colibri_app_text {
    union { /* first the tokenizer's, then the text of the token at hand */
        uint64_t words[COLIBRI_TEXT_WORKSPACE_BYTES / 8];
        char text[COLIBRI_TEXT_WORKSPACE_BYTES];
    } workspace;
    colibri_detokenizer_t stream;
    char prompt[COLIBRI_TEXT_PROMPT_BYTES];
} colibri_app_text;

struct colibri_app_text colibri_app_text;

/* Read the end of a request: u32 flags (of colibri_tokenize), u32 n_bytes, the prompt. Its ids are left in the logits' place. */
static int32_t read_prompt(const colibri_tokenizer_t *tokenizer, colibri_request_t *request)
{
    struct colibri_app_text *const ours = &colibri_app_text;
    uint32_t flags = colibri_request_read_u32(request);
    uint32_t n_bytes = colibri_request_read_u32(request);
    if (request->bad || request->left_bytes != n_bytes) {
        return COLIBRI_APP_ERR_REQUEST;
    }
    if (n_bytes > sizeof ours->prompt) {
        return COLIBRI_ERR_BUFFER;
    }
    colibri_request_read(request, ours->prompt, n_bytes);
    if (colibri_request_end(request) != 0) {
        return COLIBRI_APP_ERR_REQUEST;
    }
    int32_t n_ids = colibri_tokenize(tokenizer, ours->prompt, n_bytes, flags, colibri_app_logits.ids, MAX_IDS,
                                     ours->workspace.words, sizeof ours->workspace);
    if (n_ids == 0) {
        return COLIBRI_ERR_SEQ_LEN;
    }
    /* The workspace is large enough for any prompt, so what was too small is the room for ids. */
    return n_ids == COLIBRI_ERR_BUFFER ? COLIBRI_ERR_CONTEXT_FULL : n_ids;
}

/* Send the characters that a token completes; with the last one, what waits too. */
static colibri_status write_text(const colibri_tokenizer_t *tokenizer, int32_t id, int is_last)
{
    colibri_detokenizer_t *const stream = &colibri_app_text.stream;
    char *const text = colibri_app_text.workspace.text;
    const size_t max_bytes = sizeof colibri_app_text.workspace.text;
    int32_t n = colibri_detokenize(tokenizer, stream, id, text, max_bytes);
    if (n == COLIBRI_ERR_TOKEN_ID) {
        n = 0; /* the model's vocabulary may be larger than the tokenizer's, which gives such an id no text */
    }
    if (n >= 0 && is_last) {
        int32_t n_rest = colibri_detokenize(tokenizer, stream, -1, text + n, max_bytes - (size_t)n);
        n = n_rest < 0 ? n_rest : n + n_rest;
    }
    if (n > 0) {
        colibri_frame_end(colibri_frame_write(colibri_frame_begin('U', (uint32_t)n), text, (size_t)n));
    }
    return n < 0 ? n : COLIBRI_OK;
}

/* The prompt as the tokenizer gives it back, then 'I': its ids. */
static colibri_status write_prompt(const colibri_tokenizer_t *tokenizer, int32_t n_ids, int is_all)
{
    const uint32_t n_bytes = (uint32_t)n_ids * (uint32_t)sizeof colibri_app_logits.ids[0];
    colibri_status status = colibri_detokenizer_init(&colibri_app_text.stream);
    for (int32_t i = 0; i < n_ids && status == COLIBRI_OK; i++) {
        status = write_text(tokenizer, colibri_app_logits.ids[i], is_all && i + 1 == n_ids);
    }
    colibri_frame_end(colibri_frame_write(colibri_frame_begin('I', n_bytes), colibri_app_logits.ids, n_bytes));
    return status;
}

colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request)
{
    colibri_generation_t generation;
    colibri_tokenizer_t tokenizer;
    colibri_status status = colibri_app_read_generation(request, &generation);
    if (status == COLIBRI_OK) {
        status = colibri_tokenizer_init(&tokenizer, model->image + COLIBRI_TOKENIZER_AT, COLIBRI_TOKENIZER_BYTES);
    }
    if (status != COLIBRI_OK) {
        return status;
    }
    const int32_t n_ids = read_prompt(&tokenizer, request);
    if (n_ids < 0) {
        return n_ids;
    }
    /* The context ends the text as an end token does; the last token needs no place in it. */
    const uint32_t n_left = COLIBRI_MAX_SEQ - (uint32_t)n_ids + 1u;
    const uint32_t n_new = generation.n_new < n_left ? generation.n_new : n_left;
    int32_t id = colibri_app_logits.ids[n_ids - 1];
    status = write_prompt(&tokenizer, n_ids, n_new == 0);
    if (status == COLIBRI_OK && n_new > 0 && n_ids > 1) {
        status = colibri_forward(model, &colibri_app_state, colibri_app_logits.ids, n_ids - 1, NULL, NULL);
    }
    for (uint32_t i = 0; i < n_new && status == COLIBRI_OK; i++) {
        id = colibri_app_next(model, &generation, id);
        if (id < 0) {
            return id;
        }
        const int is_end = colibri_app_is_end(&generation, id);
        status = write_text(&tokenizer, id, is_end || i + 1 == n_new);
        colibri_app_write_id(id);
        if (is_end) {
            break;
        }
    }
    return status;
}
