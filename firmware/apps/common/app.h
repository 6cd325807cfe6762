/* SPDX-License-Identifier: Apache-2.0 */
/* What the applications share: the loop over requests (docs/DESIGN.md 4), the model and its state. */
#ifndef COLIBRI_APP_H
#define COLIBRI_APP_H

#include <colibri/colibri.h>
#include <colibri/port.h>

#include "arch/frames.h"

/* The status of a request that is damaged, of the wrong size or for another application: next to those of status.h. */
#define COLIBRI_APP_ERR_REQUEST (-128)

/* The stages of a token were not those that the trace has: a bug of Colibri's. */
#define COLIBRI_APP_ERR_TRACE (-129)

/* How an application answers. */
typedef struct {
    char request;        /* the letter of its request */
    char tells_position; /* whether its 'S' frame holds the position too */
} colibri_app_kind_t;

/* Given by each application. */
extern const colibri_app_kind_t colibri_app_kind;

/* ALIAS: a prompt's ids may lie where the logits will be, until its last token is computed. */
typedef union {
    float values[COLIBRI_VOCAB_SIZE];
    int32_t ids[COLIBRI_VOCAB_SIZE];
} colibri_app_logits_t;

/* The state of the sequence and the logits: an application's RAM, but for a few words. */
extern colibri_state_t colibri_app_state;
extern colibri_app_logits_t colibri_app_logits;

/* Answer one request, but for the closing 'S' frame. The state is initialised.
 *
 * Returns    the status for that frame.
 */
colibri_status colibri_app_answer(const colibri_model_t *model, colibri_request_t *request);

/* Read the end of a request: u32 n_ids, i32 ids[n_ids], CRC.
 *
 * Writes     ids[0 .. n_ids-1].
 * Returns    n_ids, or COLIBRI_ERR_SEQ_LEN for none, COLIBRI_ERR_CONTEXT_FULL for more than max_ids, COLIBRI_APP_ERR_REQUEST.
 */
int32_t colibri_app_read_ids(colibri_request_t *request, int32_t *ids, uint32_t max_ids);

#if COLIBRI_HAS_ENCODER
/* Read a source in the middle of a request: u32 n_ids, i32 ids[n_ids].
 *
 * Writes     source_ids[0 .. n_ids-1].
 * Returns    n_ids, or COLIBRI_ERR_SEQ_LEN for none, COLIBRI_ERR_CONTEXT_FULL for more than COLIBRI_MAX_SOURCE, COLIBRI_APP_ERR_REQUEST.
 */
int32_t colibri_app_read_source(colibri_request_t *request, int32_t *source_ids);
#endif

/* Write a frame of u32 position, where it is not NULL, and the logits. */
void colibri_app_write_logits(char type, const uint32_t *position);

#endif
