/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the layers of a model: the tables of model_config.h (docs/DESIGN.md, section 1), and what they say about
 * the present layer of a state.
 *
 * COLIBRI_LAYER_KIND(layer), COLIBRI_KIND_N_HEADS(kind) and so on are constants where all rows agree. Only columns that differ are
 * in memory.
 */
#ifndef COLIBRI_TABLES_H
#define COLIBRI_TABLES_H

#include "colibri/state.h"

#ifdef __cplusplus
extern "C" {
#endif

#if COLIBRI_HAS_LAYER_TABLE
typedef struct colibri_layer {
    COLIBRI_LAYER_FIELDS
} colibri_layer_t;
extern const colibri_layer_t colibri_layers[COLIBRI_N_LAYERS];
#endif

/* Layers of equal axes are of one kind. */
#if COLIBRI_HAS_KIND_TABLE
typedef struct colibri_kind {
    COLIBRI_KIND_FIELDS
} colibri_kind_t;
extern const colibri_kind_t colibri_kinds[COLIBRI_N_KINDS];
#endif

#if COLIBRI_HAS_NORM_TABLE
typedef struct colibri_norm {
    COLIBRI_NORM_FIELDS
} colibri_norm_t;
extern const colibri_norm_t colibri_norms[COLIBRI_N_NORMS];
#endif

#if COLIBRI_HAS_ROUTER_TABLE
typedef struct colibri_router {
    COLIBRI_ROUTER_FIELDS
} colibri_router_t;
extern const colibri_router_t colibri_routers[COLIBRI_N_ROUTERS];
#endif

/* The geometries of feed-forward blocks. */
#if COLIBRI_HAS_SHAPE_TABLE
typedef struct colibri_shape {
    COLIBRI_SHAPE_FIELDS
} colibri_shape_t;
extern const colibri_shape_t colibri_shapes[COLIBRI_N_SHAPES];
#endif

/* Only where experts of one layer differ in size: place and shape of every expert. */
#if COLIBRI_HAS_VARIANT_TABLE
typedef struct colibri_variant {
    COLIBRI_VARIANT_FIELDS
} colibri_variant_t;
extern const colibri_variant_t colibri_variants[COLIBRI_N_VARIANTS];
#endif

#ifdef __cplusplus
}
#endif

/* COLIBRI_KIND_MIXER */
enum { COLIBRI_MIXER_ATTENTION, COLIBRI_MIXER_LATENT, COLIBRI_MIXER_CONVOLUTION };
/* COLIBRI_KIND_OVER */
enum { COLIBRI_OVER_PAST, COLIBRI_OVER_SOURCE, COLIBRI_OVER_ENCODED };
/* COLIBRI_KIND_ACTIVATION */
enum { COLIBRI_SILU, COLIBRI_GELU_TANH, COLIBRI_GELU_ERF, COLIBRI_RELU, COLIBRI_RELU2 };
/* COLIBRI_KIND_QK_OVER */
enum { COLIBRI_QK_NONE, COLIBRI_QK_VECTOR, COLIBRI_QK_HEAD, COLIBRI_QK_HEAD_AFTER };
/* COLIBRI_ROUTER_SCORE, _WEIGHTS, _RENORMALISE */
enum { COLIBRI_SCORE_RAW, COLIBRI_SCORE_SOFTMAX, COLIBRI_SCORE_SIGMOID };
enum { COLIBRI_WEIGHT_SCORE, COLIBRI_WEIGHT_SOFTMAX, COLIBRI_WEIGHT_SIGMOID, COLIBRI_WEIGHT_ONE };
enum { COLIBRI_RENORMALISE_NONE, COLIBRI_RENORMALISE_SUM, COLIBRI_RENORMALISE_L2 };

/* The kind of the present layer. */
static inline uint32_t colibri_kind_of(const colibri_state_t *state)
{
    (void)state;
    return COLIBRI_LAYER_KIND(state->header.layer);
}

/* The block of the present slot, by its index in the layer: that of an expert; behind the last expert the shared or dense one. */
static inline uint32_t colibri_block_of(const colibri_state_t *state)
{
    (void)state;
#if COLIBRI_HAS_EXPERTS
#if COLIBRI_HAS_SHARED || COLIBRI_HAS_DENSE
    const uint32_t kind = colibri_kind_of(state);
    if (state->header.slot >= COLIBRI_KIND_TOP_K(kind)) {
        return COLIBRI_KIND_N_EXPERTS(kind);
    }
#endif
    return (uint32_t)state->expert_ids[state->header.slot];
#else
    return 0;
#endif
}

/* The slot of a feed-forward after the present one: behind the last expert chosen those without one are left out. */
static inline uint32_t colibri_next_slot(const colibri_state_t *state)
{
    const uint32_t next = state->header.slot + 1;
#if COLIBRI_HAS_TOP_P
    const uint32_t kind = colibri_kind_of(state);
    (void)kind;
    if (next < COLIBRI_KIND_TOP_K(kind) && state->expert_ids[next] == COLIBRI_NO_EXPERT) {
        return COLIBRI_KIND_TOP_K(kind);
    }
#endif
    return next;
}

/* The geometry of a block of the present layer. */
static inline uint32_t colibri_shape_of(const colibri_state_t *state, uint32_t block)
{
    const uint32_t kind = colibri_kind_of(state);
    (void)kind;
    (void)block;
#if COLIBRI_HAS_SHARED || COLIBRI_HAS_DENSE
    if (block >= COLIBRI_KIND_N_EXPERTS(kind)) {
        return COLIBRI_KIND_LAST_SHAPE(kind);
    }
#endif
#if COLIBRI_N_VARIANTS > 0
    return COLIBRI_VARIANT_SHAPE(COLIBRI_KIND_FIRST_VARIANT(kind) + block);
#else
    return COLIBRI_KIND_EXPERT_SHAPE(kind);
#endif
}

#endif
