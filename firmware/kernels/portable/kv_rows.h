/* SPDX-License-Identifier: Apache-2.0 */
/* The two kernels over the KV cache, which differ by its format only in how an element is read. The including file defines
 * KV_ELEMENT, the stored type; KV_WIDEN(element, scale), its value; KV_SCALE(rows, t), row t's scale; and the names
 * COLIBRI_SCORES and COLIBRI_MIX. Included once by each.
 */
#include "dot8.h"

#define Q(i) q[i]
#define K(i) KV_WIDEN(k[i], scale)

void COLIBRI_SCORES(float *z, const float *q, const colibri_kv_rows_t *keys)
{
    const uint32_t n = keys->n_cols;
    const KV_ELEMENT *k = keys->values;
    for (uint32_t t = 0; t < keys->n_rows; t++, k += keys->stride) {
        const float scale = KV_SCALE(keys, t);
        (void)scale;
        COLIBRI_DOT8_BEGIN;
        uint32_t i = 0;
        for (; i + 8 <= n; i += 8) {
            COLIBRI_DOT8_STEP(Q, K, i);
        }
        if (i < n) {
            COLIBRI_DOT8_TAIL(Q, K, i, n);
        }
        z[t] = colibri_snap(COLIBRI_DOT8_END);
    }
}

/* Four columns at a time over all rows: the sums stay in registers. */
void COLIBRI_MIX(float *o, const float *p, const colibri_kv_rows_t *values)
{
    const uint32_t n = values->n_cols;
    uint32_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const KV_ELEMENT *v = (const KV_ELEMENT *)values->values + i;
        float o0 = 0.0f;
        float o1 = 0.0f;
        float o2 = 0.0f;
        float o3 = 0.0f;
        for (uint32_t t = 0; t < values->n_rows; t++, v += values->stride) {
            const float scale = KV_SCALE(values, t);
            (void)scale;
            o0 = colibri_fma(p[t], KV_WIDEN(v[0], scale), o0);
            o1 = colibri_fma(p[t], KV_WIDEN(v[1], scale), o1);
            o2 = colibri_fma(p[t], KV_WIDEN(v[2], scale), o2);
            o3 = colibri_fma(p[t], KV_WIDEN(v[3], scale), o3);
        }
        o[i] = colibri_snap(o0);
        o[i + 1] = colibri_snap(o1);
        o[i + 2] = colibri_snap(o2);
        o[i + 3] = colibri_snap(o3);
    }
    for (; i < n; i++) {
        const KV_ELEMENT *v = (const KV_ELEMENT *)values->values + i;
        float sum = 0.0f;
        for (uint32_t t = 0; t < values->n_rows; t++, v += values->stride) {
            const float scale = KV_SCALE(values, t);
            (void)scale;
            sum = colibri_fma(p[t], KV_WIDEN(v[0], scale), sum);
        }
        o[i] = colibri_snap(sum);
    }
}
