/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's files share: the compiled-in tables, and one function for each operator.
 *
 * A step is a walk over stages (docs/DESIGN.md, section 3). A stage is n units of so many multiply-accumulates; its operator
 * runs units begin to end - 1, and the walk (step.c) decides how many a slice gets.
 */
#ifndef COLIBRI_INTERNAL_H
#define COLIBRI_INTERNAL_H

#include "../kernels/kernels.h"
#include "colibri/colibri.h"
#include "mem.h"

#define COLIBRI_MODEL_MAGIC 0x4d4c4f43u /* "COLM" */
#define COLIBRI_STATE_MAGIC 0x534c4f43u /* "COLS", xor the configuration's first word */

/* Byte offsets in the image. */
typedef struct colibri_layer_offsets {
    size_t attn_norm;
    size_t q;
    size_t k;
    size_t v;
    size_t o;
    size_t ffn_norm;
    size_t router;
} colibri_layer_offsets_t;

/* The tables of model_config.h: tables.c. */
extern const uint32_t colibri_config_hash[4];
extern const colibri_layer_offsets_t colibri_layer_offsets[COLIBRI_N_LAYERS];
extern const size_t colibri_expert_offsets[COLIBRI_N_LAYERS][COLIBRI_N_BLOCKS];
extern const colibri_matrix_t colibri_matrix_embedding, colibri_matrix_head;
extern const colibri_matrix_t colibri_matrix_q, colibri_matrix_k, colibri_matrix_v, colibri_matrix_o;
extern const colibri_matrix_t colibri_matrix_gate, colibri_matrix_up, colibri_matrix_down;

/* One feed-forward block's weights. colibri_expert is the only place that computes their address. */
typedef struct colibri_expert {
    const uint8_t *gate;
    const uint8_t *up;
    const uint8_t *down;
} colibri_expert_t;

colibri_expert_t colibri_expert(const colibri_model_t *model, uint32_t layer, uint32_t index);

/* ---- Operators ---- */

/* COLIBRI_OK, or COLIBRI_ERR_RANGE where an element of x is 2**50 or more, or not finite. */
colibri_status colibri_check_range(const float *x, uint32_t n);

void colibri_embed(const colibri_model_t *model, colibri_state_t *state, int32_t id);
void colibri_rmsnorm(float *out, const float *x, const float *weights);

/* out[r] = (W x)[r] for rows begin to end - 1. The first row quantises x first where W is of an integer format and x is new;
 * x_is_quantised: another matrix of the same format did that. ALIAS: x has pad8(cols) elements. */
void colibri_matvec(colibri_state_t *state, float *out, const colibri_matrix_t *matrix, const uint8_t *weights, const float *x,
                    uint32_t x_is_quantised, uint32_t begin, uint32_t end);

/* cos and sin of every rotary pair at the present position. */
void colibri_rope_prepare(const colibri_model_t *model, colibri_state_t *state);
/* Rotate q and k in place, scale q, and append k and v to the cache of the present layer. */
colibri_status colibri_rope(colibri_state_t *state);

/* The first position that attention at `position` sees. */
uint32_t colibri_attention_begin(uint32_t position);
void colibri_attention(colibri_state_t *state, uint32_t head_begin, uint32_t head_end);

#if COLIBRI_N_EXPERTS > 0
void colibri_router_logits(const colibri_model_t *model, colibri_state_t *state, uint32_t begin, uint32_t end);
/* Choose the experts: ids and weights (TOP_K) from logits (N_EXPERTS). A device may take this function's place. */
void colibri_route(int32_t *ids, float *weights, const float *logits);
#endif

void colibri_swiglu(colibri_state_t *state);
/* Add the weighted output of the present slot's expert to the sum. */
void colibri_combine(colibri_state_t *state);

/* ---- Slices ---- */

typedef struct colibri_call {
    const colibri_model_t *model;
    colibri_state_t *state;
    const int32_t *input_ids;
    float *logits;
} colibri_call_t;

/* Everything a caller or a stray write may get wrong. */
colibri_status colibri_check_model(const colibri_model_t *model);
colibri_status colibri_check_state(const colibri_state_t *state);
/* Writes *ids_hash only. */
colibri_status colibri_check_call(const colibri_call_t *call, int32_t seq_len, uint32_t *ids_hash);

/* What the present stage consists of. */
typedef struct colibri_stage_size {
    uint32_t n_units;
    uint32_t macs_per_unit;
} colibri_stage_size_t;

colibri_stage_size_t colibri_stage_size(const colibri_state_t *state);
/* Run units of the present stage; after the last, `last` is 1: also check and combine what is complete. */
colibri_status colibri_stage_run(const colibri_call_t *call, uint32_t begin, uint32_t end, uint32_t last);

/* CRC-32 (IEEE, as zlib) of bytes, continued from crc (0 at the start). */
uint32_t colibri_crc32(uint32_t crc, const uint8_t *bytes, size_t n_bytes);

static inline const float *colibri_floats_at(const uint8_t *bytes)
{
    return (const float *)(const void *)bytes;
}

#endif
