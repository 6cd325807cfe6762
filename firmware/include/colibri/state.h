/* SPDX-License-Identifier: Apache-2.0 */
/* The state: everything that changes, in the caller's memory (docs/DESIGN.md, section 2). It holds no pointers.
 *
 * An application only needs its size and alignment. Tools that look inside between two slices (the verify application, a
 * debugger) read `header` to see which stage comes next, and the buffers to see what the last one left.
 */
#ifndef COLIBRI_STATE_H
#define COLIBRI_STATE_H

#include "colibri/config.h"

/* The stages of one token, in order (docs/DESIGN.md, section 3). */
enum {
    COLIBRI_STAGE_EMBED,
    COLIBRI_STAGE_ATTN_NORM,
    COLIBRI_STAGE_Q,
    COLIBRI_STAGE_K,
    COLIBRI_STAGE_V,
    COLIBRI_STAGE_ROPE,
    COLIBRI_STAGE_ATTENTION,
    COLIBRI_STAGE_O,
    COLIBRI_STAGE_ATTN_RESIDUAL,
    COLIBRI_STAGE_FFN_NORM,
    COLIBRI_STAGE_ROUTER, /* skipped where the block is dense */
    COLIBRI_STAGE_GATE,
    COLIBRI_STAGE_UP,
    COLIBRI_STAGE_ACT,
    COLIBRI_STAGE_DOWN,
    COLIBRI_STAGE_FFN_RESIDUAL,
    COLIBRI_STAGE_FINAL_NORM, /* only for the last token of a call with logits */
    COLIBRI_STAGE_HEAD,
    COLIBRI_N_STAGES
};

/* 64 bytes. Between two calls of colibri_step the next unit of work is `unit` of `stage`, in `layer`, of the expert in `slot`. */
typedef struct colibri_state_header {
    uint32_t magic;
    uint32_t position; /* tokens in the sequence; the one being computed has this index */
    uint32_t seq_len;  /* tokens of the pending call; 0: none is pending */
    uint32_t done;     /* of these, complete */
    uint32_t stage;
    uint32_t layer;
    uint32_t slot;
    uint32_t unit;
    uint32_t status;    /* 0, or COLIBRI_ERR_RANGE once that has happened */
    uint32_t logits;    /* 1: the pending call wants logits */
    uint32_t ids_hash;  /* of the pending call's token ids */
    uint32_t reserved[5];
} colibri_state_header_t;

#if COLIBRI_KV_Q8
typedef int8_t colibri_kv_element_t;
#elif COLIBRI_KV_F16
typedef uint16_t colibri_kv_element_t; /* binary16 */
#else
typedef float colibri_kv_element_t;
#endif

typedef struct colibri_state {
    COLIBRI_ALIGN16 colibri_state_header_t header;
    float x[COLIBRI_HIDDEN_PAD];                                  /* residual stream */
    float norm[COLIBRI_HIDDEN_PAD];                               /* norm output */
    float q[COLIBRI_MAX(COLIBRI_Q_PAD, COLIBRI_HIDDEN_PAD)];      /* q, head by head the attention output; later the experts' sum */
    float scratch[COLIBRI_SCRATCH_ELEMS];                         /* ALIAS: see the COLIBRI_SCRATCH_ offsets */
#if COLIBRI_N_EXPERTS > 0
    float router[COLIBRI_N_EXPERTS];
    int32_t expert_ids[COLIBRI_TOP_K];
    float expert_weights[COLIBRI_TOP_K];
#endif
#if COLIBRI_ROTARY_DIM > 0
    float rope_cos[COLIBRI_ROTARY_DIM / 2];
    float rope_sin[COLIBRI_ROTARY_DIM / 2];
#endif
#if COLIBRI_QUANT_BYTES > 0
    float quant_scales[COLIBRI_QUANT_GROUPS];
    uint32_t quant[COLIBRI_QUANT_BYTES / 4]; /* in the form that the kernels read */
#endif
#if COLIBRI_KV_Q8
    float k_scale[COLIBRI_N_LAYERS][COLIBRI_MAX_SEQ][COLIBRI_N_KV_HEADS];
    float v_scale[COLIBRI_N_LAYERS][COLIBRI_MAX_SEQ][COLIBRI_N_KV_HEADS];
#endif
    colibri_kv_element_t k[COLIBRI_N_LAYERS][COLIBRI_MAX_SEQ][COLIBRI_KV_ELEMS];
    colibri_kv_element_t v[COLIBRI_N_LAYERS][COLIBRI_MAX_SEQ][COLIBRI_KV_ELEMS];
} colibri_state_t;

/* ALIAS: `scratch` holds, one after the other: k at K and v at V, until they are in the cache; one head's scores at SCORES;
 * the o-projection at OUT; gate (then h, in place) at GATE with up at UP; the expert's output at OUT. */
#define COLIBRI_SCRATCH_K 0
#define COLIBRI_SCRATCH_V COLIBRI_KV_PAD
#define COLIBRI_SCRATCH_SCORES 0
#define COLIBRI_SCRATCH_GATE 0
#define COLIBRI_SCRATCH_UP COLIBRI_FFN_PAD
#define COLIBRI_SCRATCH_OUT COLIBRI_FFN_PAD

COLIBRI_STATIC_ASSERT(sizeof(colibri_state_header_t) == 64, "the state's header is 16 words");
COLIBRI_STATIC_ASSERT(sizeof(colibri_state_t) == COLIBRI_STATE_BYTES, "planner and engine disagree about the state's size");

#endif
