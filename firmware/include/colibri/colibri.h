/* SPDX-License-Identifier: Apache-2.0 */
/* Colibri: a Mixture-of-Experts language model in read-only memory, computed bit for bit the same on every core.
 *
 *     static colibri_state_t state;
 *     colibri_model_t model;
 *     colibri_init(&model, image, COLIBRI_IMAGE_BYTES, COLIBRI_INIT_CHECK_CRC);
 *     colibri_state_init(&state, &model);
 *     colibri_forward(&model, &state, ids, n_ids, logits, NULL);
 *     id = colibri_sample(logits, &sampling, &rng);
 *
 * Conventions, so that the functions need not repeat them
 *
 *  * The caller allocates everything: the model (a few words), the state (COLIBRI_STATE_BYTES, 16-byte aligned) and the logits
 *    (COLIBRI_VOCAB_SIZE floats). Nothing needs to be closed. The image is only read, and MUST stay where it is.
 *  * All arguments are checked before anything is written. On an error nothing has changed, except COLIBRI_ERR_RANGE and
 *    COLIBRI_ERR_SELFTEST.
 *    status.h has a sentence for each status.
 *  * A pointer may be NULL only where its description says so: otherwise COLIBRI_ERR_NULL. It MUST point to as many readable or
 *    writable elements as described; nothing else is read or written, and no two arguments of a call may overlap.
 *  * The engine keeps no pointer to its arguments (the model keeps the image's), has no static data that is written, no lock, no
 *    callback, and allocates nothing. One state belongs to one thread at a time; different states may run at once.
 *  * Every function may be interrupted at any instruction. A function that computes in floating point saves the control register
 *    (FPSCR, FPCR, fcsr, MXCSR), sets what it needs and restores it: no setting of the caller changes a bit of the result, and
 *    the exception flags are as before.
 *  * The instructions executed by a forward step depend on the position and on the arguments' values other than the token ids,
 *    never on ids, weights or activations (cores with an FPU; colibri_sample is not part of this).
 *  * EXACT: results are those of docs/NUMERICS.md, bit for bit.
 */
#ifndef COLIBRI_H
#define COLIBRI_H

#include "colibri/config.h"
#include "colibri/state.h"
#include "colibri/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Model ---- */

typedef struct colibri_model {
    const uint8_t *image;
    uint32_t magic;
} colibri_model_t;

/* Check the CRC-32 of the header and of the weights too. */
#define COLIBRI_INIT_CHECK_CRC 1u

/* Bind a model to its image.
 *
 * Ranges     image 64-byte aligned, image_bytes == COLIBRI_IMAGE_BYTES; flags 0 or COLIBRI_INIT_CHECK_CRC.
 * Checks     length, magic, format version, header length, config hash, kernel layout: each a status of its own. The header's
 *            CRC is checked only together with the weights' (COLIBRI_INIT_CHECK_CRC).
 * Writes     *model, on success only.
 * COST       below 1,000 instructions; with the CRC about 10 a byte of the image. Stack below 128 bytes.
 */
COLIBRI_RESULT colibri_status colibri_init(colibri_model_t *model, const void *image, size_t image_bytes, uint32_t flags);

/* Where a check of the weights has got to. Start with colibri_scrub_init. */
typedef struct colibri_scrub {
    size_t offset;
    uint32_t crc;
} colibri_scrub_t;

/* Start a check of the weights. */
COLIBRI_RESULT colibri_status colibri_scrub_init(colibri_scrub_t *cursor);

/* Check the next n_bytes of the weights against the header's CRC-32.
 *
 * Returns    COLIBRI_MORE until the last byte, then COLIBRI_OK or COLIBRI_ERR_WEIGHTS_CRC; the cursor then starts again.
 * Writes     *cursor.
 * COST       about 10 instructions a byte.
 */
COLIBRI_RESULT colibri_status colibri_scrub(const colibri_model_t *model, colibri_scrub_t *cursor, uint32_t n_bytes);

/* ---- State ---- */

/* Start an empty sequence. The only function that accepts a state of any content.
 *
 * Writes     all of *state (zeroes, then the header).
 * COST       COLIBRI_STATE_BYTES bytes of memset.
 */
COLIBRI_RESULT colibri_status colibri_state_init(colibri_state_t *state, const colibri_model_t *model);

/* The number of tokens in the sequence, 0 to COLIBRI_MAX_SEQ, or a negative status. While a call is pending: those complete. */
COLIBRI_RESULT int32_t colibri_position(const colibri_state_t *state);

/* Go back to an earlier position, forgetting the tokens from there on, and cancel a pending call.
 *
 * Ranges     0 <= position <= colibri_position(state), which itself only cancels.
 * Writes     the state's header. The source of an encoder stays.
 */
COLIBRI_RESULT colibri_status colibri_rewind(colibri_state_t *state, int32_t position);

#if COLIBRI_HAS_ENCODER
/* ---- Encoder ---- */

/* Run the encoder over a whole source and start an empty sequence behind it; colibri_forward is then the decoder.
 *
 * Shapes     source_ids (n_source).
 * Ranges     1 <= n_source <= COLIBRI_MAX_SOURCE; 0 <= id < COLIBRI_VOCAB_SIZE.
 * Alignment  state 16 bytes, source_ids 4.
 * Writes     *state: the source before is forgotten with the first slice; *cycle_count (NULL: not wanted) as colibri_forward.
 * EXACT      in one call or in any slices of colibri_encode_step: the same bits.
 * The source stays through colibri_rewind. A call left pending by colibri_encode_step is completed, if these are its arguments.
 */
COLIBRI_RESULT colibri_status colibri_encode(const colibri_model_t *model, colibri_state_t *state, const int32_t *source_ids,
                                             int32_t n_source, uint64_t *cycle_count);

/* The same work in bounded slices, as colibri_step of colibri_forward: COLIBRI_MORE until it is complete. */
COLIBRI_RESULT colibri_status colibri_encode_step(const colibri_model_t *model, colibri_state_t *state, const int32_t *source_ids,
                                                  int32_t n_source, uint32_t max_macs);
#endif

/* ---- Forward ---- */

/* Append seq_len tokens to the sequence and compute the logits of the last.
 *
 * Shapes     input_ids (seq_len), logits (COLIBRI_VOCAB_SIZE) or NULL: then neither final norm nor head is computed.
 * Ranges     1 <= seq_len <= COLIBRI_MAX_SEQ - position; 0 <= id < COLIBRI_VOCAB_SIZE.
 * Alignment  state 16 bytes, input_ids and logits 4.
 * Writes     *state; logits, only complete and finite on COLIBRI_OK, all +0.0 on COLIBRI_ERR_RANGE; *cycle_count (NULL: not
 *            wanted), on COLIBRI_OK: what the port's counter counted, see colibri_port_cycles.
 * EXACT      n tokens in one call, in n calls, or in any slices of colibri_step: the same bits.
 * A call left pending by colibri_step is completed, if these are its arguments.
 */
COLIBRI_RESULT colibri_status colibri_forward(const colibri_model_t *model, colibri_state_t *state, const int32_t *input_ids,
                                              int32_t seq_len, float *logits, uint64_t *cycle_count);

/* The same work in bounded slices: COLIBRI_MORE until it is complete.
 *
 * Repeat the call with the same seq_len and ids (only read during the calls; another place is fine), and with the same buffer
 * for the logits or NULL each time. seq_len and ids, and whether logits are wanted, are compared: COLIBRI_ERR_PENDING.
 *
 * Ranges     max_macs: at least so many multiply-accumulates are done, unless the call completes before; at most one unit more
 *            (a matrix row, an attention head, a vector operator). 0: to the end of the present stage.
 * COST       about 6 instructions for each token of the call come on top of each slice: the check of its ids.
 */
COLIBRI_RESULT colibri_status colibri_step(const colibri_model_t *model, colibri_state_t *state, const int32_t *input_ids,
                                           int32_t seq_len, float *logits, uint32_t max_macs);

/* Replay the image's vector, up to 8 tokens: whether this core computes the golden model's bits. For power-on.
 *
 * Shapes     logits (COLIBRI_VOCAB_SIZE): scratch.
 * Returns    COLIBRI_OK where every logit of every position has the golden model's bits, else COLIBRI_ERR_SELFTEST.
 * Writes     *state, of any content before, and after a valid call an empty sequence, whatever the result; logits, which then hold
 *            nothing of use.
 * Finds      a fault of the core, of the compiler, of the RAM in use or of a weight in use. Experts that the router does not
 *            choose and rows of other tokens are not read: the CRC of colibri_init or colibri_scrub is for those.
 * COST       8 calls of colibri_forward and 2 of colibri_state_init. Takes no flash in a program that does not call it.
 */
COLIBRI_RESULT colibri_status colibri_selftest(const colibri_model_t *model, colibri_state_t *state, float *logits);

/* ---- Sampling ---- */

/* PCG32 (XSH RR 64/32). */
typedef struct colibri_rng {
    uint64_t state;
} colibri_rng_t;

typedef struct colibri_sampling {
    float temperature; /* 0: the largest logit, ties to the lower id; otherwise 2**-7 to 2**7 */
    int32_t top_k;     /* 0: off; otherwise only the top_k most likely tokens */
    float top_p;       /* above 0, to 1; 1: off */
} colibri_sampling_t;

COLIBRI_RESULT colibri_status colibri_rng_seed(colibri_rng_t *rng, uint64_t seed);

/* Choose a token: its id, or a negative status.
 *
 * Shapes     logits (COLIBRI_VOCAB_SIZE).
 * Writes     *rng, advanced by one number, and logits, which then hold the unnormalised probabilities. With temperature 0 neither
 *            is written, and rng may be NULL. No scratch memory.
 * COST       one exp a token of the vocabulary; with top_k or top_p on, 2 to 3 passes over the vocabulary for each candidate.
 */
COLIBRI_RESULT int32_t colibri_sample(float *logits, const colibri_sampling_t *sampling, colibri_rng_t *rng);

/* ---- Diagnosis ---- */

#if COLIBRI_STATUS_NAMES
/* The name of a status, such as "COLIBRI_ERR_RANGE"; never NULL. Only with COLIBRI_STATUS_NAMES. */
const char *colibri_status_name(colibri_status status);
#endif

#ifdef __cplusplus
}
#endif

#endif
