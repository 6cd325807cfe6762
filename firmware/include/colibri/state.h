/* SPDX-License-Identifier: Apache-2.0 */
/* The state: everything that changes, in the caller's memory (docs/DESIGN.md, section 2). It holds no pointers.
 *
 * An application only needs its size and alignment. Tools that look inside between two slices (the verify application, a
 * debugger) read `header` to see which stage comes next, and the buffers to see what the last one left.
 */
#ifndef COLIBRI_STATE_H
#define COLIBRI_STATE_H

#include "colibri/config.h"

/* The stages of one token, in order (docs/DESIGN.md, section 3). A layer has those of its axes. */
enum {
    COLIBRI_STAGE_EMBED,
    COLIBRI_STAGE_ATTN_NORM,
    COLIBRI_STAGE_ATTN_ROUTER_HIDDEN,
    COLIBRI_STAGE_ATTN_ROUTER,
    COLIBRI_STAGE_Q_A,
    COLIBRI_STAGE_Q,
    COLIBRI_STAGE_K, /* latent attention: kv_a */
    COLIBRI_STAGE_V,
    COLIBRI_STAGE_ROPE,
    COLIBRI_STAGE_K_UP,
    COLIBRI_STAGE_ATTENTION,
    COLIBRI_STAGE_V_UP,
    COLIBRI_STAGE_ATTN_GATE,
    COLIBRI_STAGE_CONV_IN,
    COLIBRI_STAGE_CONV,
    COLIBRI_STAGE_O, /* every mixer's output projection */
    COLIBRI_STAGE_ATTN_POST_NORM,
    COLIBRI_STAGE_ATTN_RESIDUAL,
    COLIBRI_STAGE_FFN_NORM,
    COLIBRI_STAGE_ROUTER_HIDDEN,
    COLIBRI_STAGE_ROUTER,
    COLIBRI_STAGE_GATE, /* the first of a feed-forward block */
    COLIBRI_STAGE_UP,
    COLIBRI_STAGE_ACT,
    COLIBRI_STAGE_DOWN,
    COLIBRI_STAGE_FFN_POST_NORM,
    COLIBRI_STAGE_FFN_RESIDUAL,
    COLIBRI_STAGE_FINAL_NORM, /* only for the last token of a call with logits */
    COLIBRI_STAGE_HEAD,
    COLIBRI_N_STAGES
};

/* What the tokens of a call go through: the layers one after the other, or, in an encoder, one part of a layer each before the next
 * part: keys and values, the rest of the layer, and at the end the keys and values of each cross-attention. */
enum { COLIBRI_PASS_STEP, COLIBRI_PASS_KEYS, COLIBRI_PASS_REST, COLIBRI_PASS_CROSS };

/* 64 bytes. Between two calls of colibri_step the next unit of work is `unit` of `stage`, in `layer`, of the expert in `slot`. */
typedef struct colibri_state_header {
    uint32_t magic;
    uint32_t position; /* tokens in the sequence; the one being computed has this index */
    uint32_t seq_len;  /* tokens of the pending call; 0: none is pending */
    uint32_t done;     /* of these, complete; in an encoder in the present pass */
    uint32_t stage;
    uint32_t layer;
    uint32_t slot;
    uint32_t unit;
    uint32_t status;    /* 0, or COLIBRI_ERR_RANGE once that has happened */
    uint32_t logits;    /* 1: the pending call wants logits */
    uint32_t ids_hash;  /* of the pending call's token ids */
    uint32_t pass;
    uint32_t source_len; /* tokens of the source; 0: none, or no encoder */
    uint32_t reserved[3];
} colibri_state_header_t;

#if COLIBRI_KV_Q8
typedef int8_t colibri_kv_element_t;
#elif COLIBRI_KV_F16
typedef uint16_t colibri_kv_element_t; /* binary16 */
#else
typedef float colibri_kv_element_t;
#endif

/* ALIAS: `scratch` holds one of these after the other; each is at an offset below. */
#define COLIBRI_SCRATCH_K 0
#define COLIBRI_SCRATCH_V COLIBRI_PAD8(COLIBRI_MAX_KV)
#define COLIBRI_SCRATCH_SCORES 0
#define COLIBRI_SCRATCH_ATTN_GATE 0
#define COLIBRI_SCRATCH_GATE 0 /* then h, in place */
#define COLIBRI_SCRATCH_UP COLIBRI_WIDTH_PAD
#define COLIBRI_SCRATCH_INPUT (2 * COLIBRI_WIDTH_PAD) /* a block's weighted input */
/* Output of the mixer, or of a block. */
#if COLIBRI_HAS_MIXTURE
#define COLIBRI_SCRATCH_SUM 0 /* of a mixture of attention */
#define COLIBRI_SCRATCH_OUT COLIBRI_MAX(COLIBRI_WIDTH_PAD, COLIBRI_HIDDEN_PAD)
#define COLIBRI_SCRATCH_HEADS (COLIBRI_SCRATCH_OUT + COLIBRI_HIDDEN_PAD) /* of one slot */
#else
#define COLIBRI_SCRATCH_OUT COLIBRI_WIDTH_PAD
#endif
/* Of a router: the hidden layer, the scores, the selection values; of a hierarchy the primary logits and one group's. */
#define COLIBRI_SCRATCH_ROUTER_HIDDEN 0
#define COLIBRI_SCRATCH_ROUTER_SCORES COLIBRI_PAD8(COLIBRI_MAX_RANKING)
#define COLIBRI_SCRATCH_ROUTER_CHOICE (2 * COLIBRI_PAD8(COLIBRI_MAX_RANKING))
/* Of latent attention: the query's latent, the queries, the latent and rotary key, and one head's input; then one head's, and u. */
#define COLIBRI_SCRATCH_Q_A 0
#define COLIBRI_SCRATCH_LATENT_Q COLIBRI_PAD8(COLIBRI_MAX_Q_RANK)
#define COLIBRI_SCRATCH_LATENT (COLIBRI_SCRATCH_LATENT_Q + COLIBRI_PAD8(COLIBRI_MAX_LATENT_Q))
#define COLIBRI_SCRATCH_NOPE (COLIBRI_SCRATCH_LATENT + COLIBRI_PAD8(COLIBRI_MAX_LATENT))
#define COLIBRI_SCRATCH_V_UP COLIBRI_PAD8(COLIBRI_MAX_KV_RANK)
#define COLIBRI_SCRATCH_CONV 0 /* b, c, u */

/* Its size: that of the largest. */
typedef union colibri_scratch_uses {
    float block[COLIBRI_SCRATCH_UP + COLIBRI_WIDTH_PAD];
    float out[COLIBRI_SCRATCH_OUT + COLIBRI_HIDDEN_PAD];
#if COLIBRI_HAS_SIDE_INPUT
    float input[COLIBRI_SCRATCH_INPUT + COLIBRI_HIDDEN_PAD];
#endif
#if COLIBRI_HAS_ATTENTION
    float k_and_v[COLIBRI_SCRATCH_V + COLIBRI_PAD8(COLIBRI_MAX_KV)];
#endif
#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT
    float scores[COLIBRI_PAD8(COLIBRI_MAX_SCORES)];
#endif
#if COLIBRI_HAS_ATTN_GATE
    float gate[COLIBRI_PAD8(COLIBRI_MAX_GATE)];
#endif
#if COLIBRI_HAS_MIXTURE
    float heads[COLIBRI_SCRATCH_HEADS + COLIBRI_PAD8(COLIBRI_MAX_MIXTURE)];
#endif
#if COLIBRI_MAX_RANKING > 0
    float ranking[3 * COLIBRI_PAD8(COLIBRI_MAX_RANKING)];
#endif
#if COLIBRI_HAS_LATENT
    float latent[COLIBRI_SCRATCH_NOPE + COLIBRI_PAD8(COLIBRI_MAX_NOPE)];
    float up[COLIBRI_SCRATCH_V_UP + COLIBRI_PAD8(COLIBRI_MAX_LATENT_V)];
#endif
#if COLIBRI_HAS_CONVOLUTION
    float conv[COLIBRI_PAD8(COLIBRI_MAX_CONV)];
#endif
} colibri_scratch_uses_t;

#define COLIBRI_NO_EXPERT (-1)

typedef struct colibri_state {
    COLIBRI_ALIGN16 colibri_state_header_t header;
    float x[COLIBRI_HIDDEN_PAD];                                  /* residual stream */
    float norm[COLIBRI_HIDDEN_PAD];                               /* norm output */
    float q[COLIBRI_MAX(COLIBRI_PAD8(COLIBRI_MAX_Q), COLIBRI_HIDDEN_PAD)]; /* what the output projection reads; then the experts' sum */
    float scratch[sizeof(colibri_scratch_uses_t) / sizeof(float)];
#if COLIBRI_MAX_EXPERTS > 0
    float router[COLIBRI_MAX_EXPERTS];
    int32_t expert_ids[COLIBRI_MAX_TOP_K]; /* in slots that stay empty COLIBRI_NO_EXPERT */
    float expert_weights[COLIBRI_MAX_TOP_K];
#endif
#if COLIBRI_HAS_ROPE
    float rope_cos[COLIBRI_MAX_ROPE_PAIRS];
    float rope_sin[COLIBRI_MAX_ROPE_PAIRS];
#endif
#if COLIBRI_HAS_ENCODER
    float source[COLIBRI_MAX_SOURCE * COLIBRI_HIDDEN_SIZE]; /* residual stream of each of its tokens */
#endif
#if COLIBRI_HAS_CAPACITY
    uint32_t taken[COLIBRI_MAX_COUNTED]; /* tokens that have chosen each expert of the present layer */
#endif
#if COLIBRI_QUANT_BYTES > 0
    float quant_scales[COLIBRI_QUANT_GROUPS];
    uint32_t quant[COLIBRI_QUANT_BYTES / 4]; /* in the form that the kernels read */
#endif
    /* The caches: layer by layer, position by position; COLIBRI_LAYER_K_AT(layer) and so on are a layer's first elements. */
#if COLIBRI_HAS_CONVOLUTION
    float conv[COLIBRI_CACHE_CONV];
#endif
#if COLIBRI_KV_Q8 && COLIBRI_CACHE_K > 0
    float k_scale[COLIBRI_CACHE_K_SCALE];
#endif
#if COLIBRI_KV_Q8 && COLIBRI_CACHE_V > 0
    float v_scale[COLIBRI_CACHE_V_SCALE];
#endif
#if COLIBRI_CACHE_K > 0
    colibri_kv_element_t k[COLIBRI_CACHE_K]; /* latent attention: keys, of which values are the first elements */
#endif
#if COLIBRI_CACHE_V > 0
    colibri_kv_element_t v[COLIBRI_CACHE_V];
#endif
} colibri_state_t;

COLIBRI_STATIC_ASSERT(sizeof(colibri_state_header_t) == 64, "the state's header is 16 words");
COLIBRI_STATIC_ASSERT(sizeof(colibri_state_t) == COLIBRI_STATE_BYTES, "planner and engine disagree about the state's size");

#endif
