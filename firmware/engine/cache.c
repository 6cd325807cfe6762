/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache: where each layer's rows are, and the format they are stored in. */
#include "internal.h"

#if COLIBRI_HAS_ATTENTION || COLIBRI_HAS_LATENT

/* The least magnitude that the cache cannot hold: of f16, 65520, which rounds to infinity. */
#if COLIBRI_KV_F16
#define KV_RANGE_BITS 0x477ff000u
#else
#define KV_RANGE_BITS COLIBRI_RANGE_BITS
#endif

colibri_status colibri_check_cached(const float *x, uint32_t n)
{
    return colibri_kernels.absmax(x, n) < KV_RANGE_BITS ? COLIBRI_OK : COLIBRI_ERR_RANGE;
}

#if COLIBRI_KV_Q8
#define SCALES(which, WHICH, layer, at) (state->which##_scale + COLIBRI_LAYER_##WHICH##_SCALE_AT(layer) + (at))
#else
#define SCALES(which, WHICH, layer, at) NULL
#endif

/* One position: n_heads heads, in a q8 cache with a scale each. */
static void store(colibri_kv_element_t *to, float *scales, const float *x, uint32_t n_heads, uint32_t head_dim)
{
#if COLIBRI_KV_Q8
    for (uint32_t head = 0; head < n_heads; head++) {
        colibri_kernels.quantise(to + head * head_dim, scales + head, x + head * head_dim, head_dim);
    }
#elif COLIBRI_KV_F16
    (void)scales;
    colibri_kernels.narrow_f16(to, x, n_heads * head_dim);
#else
    (void)scales;
    memcpy(to, x, n_heads * head_dim * sizeof(float));
#endif
}

void colibri_cache_append(colibri_state_t *state, uint32_t kind, const float *k, const float *v)
{
    const uint32_t layer = state->header.layer;
    const size_t position = colibri_token(state);
    const uint32_t n_heads = COLIBRI_KIND_N_KV_HEADS(kind);
    const uint32_t head_dim = COLIBRI_KIND_HEAD_DIM(kind);
    const size_t at = position * n_heads * head_dim;
    const size_t scale_at = position * n_heads;
    (void)scale_at;
    store(state->k + COLIBRI_LAYER_K_AT(layer) + at, SCALES(k, K, layer, scale_at), k, n_heads, head_dim);
#if COLIBRI_HAS_ATTENTION
    if (v != NULL) {
        store(state->v + COLIBRI_LAYER_V_AT(layer) + at, SCALES(v, V, layer, scale_at), v, n_heads, head_dim);
    }
#else
    (void)v;
#endif
}

/* Of one KV head, from position `begin` to the last that is seen. */
static colibri_kv_rows_t rows(const colibri_state_t *state, uint32_t kind, const colibri_kv_element_t *cache, const float *scales,
                              uint32_t kv_head, uint32_t begin)
{
    const uint32_t head_dim = COLIBRI_KIND_HEAD_DIM(kind);
    const uint32_t n_heads = COLIBRI_KIND_N_KV_HEADS(kind);
    colibri_kv_rows_t found = {
        .values = cache + ((size_t)begin * n_heads + kv_head) * head_dim,
        .scales = NULL,
        .n_rows = colibri_seen_end(state, kind) - begin,
        .n_cols = head_dim,
        .stride = n_heads * head_dim,
        .scale_stride = n_heads,
    };
#if COLIBRI_KV_Q8
    found.scales = scales + (size_t)begin * n_heads + kv_head;
#else
    (void)scales;
#endif
    return found;
}

colibri_kv_rows_t colibri_cached_keys(const colibri_state_t *state, uint32_t kind, uint32_t kv_head, uint32_t begin)
{
    const uint32_t layer = state->header.layer;
    return rows(state, kind, state->k + COLIBRI_LAYER_K_AT(layer), SCALES(k, K, layer, 0), kv_head, begin);
}

/* Of latent attention they are the first elements of the keys. */
colibri_kv_rows_t colibri_cached_values(const colibri_state_t *state, uint32_t kind, uint32_t kv_head, uint32_t begin)
{
#if COLIBRI_HAS_LATENT
#if COLIBRI_HAS_ATTENTION
    if (COLIBRI_KIND_MIXER(kind) == COLIBRI_MIXER_LATENT)
#endif
    {
        colibri_kv_rows_t values = colibri_cached_keys(state, kind, kv_head, begin);
        values.n_cols = COLIBRI_KIND_VALUE_DIM(kind);
        return values;
    }
#endif
#if COLIBRI_HAS_ATTENTION
    const uint32_t layer = state->header.layer;
    return rows(state, kind, state->v + COLIBRI_LAYER_V_AT(layer), SCALES(v, V, layer, 0), kv_head, begin);
#endif
}

#endif
