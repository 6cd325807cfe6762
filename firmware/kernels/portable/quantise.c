/* SPDX-License-Identifier: Apache-2.0 */
#include "../kernels.h"

/* amax below 2**-33 gives scale 0 and zeros: amax is then replaced by 1.0, so that every product rounds to 0 by itself.
 *
 * BOUND: |x| <= amax and inv is 127 / amax within half an ulp, so |x * inv| < 127.0001, which rounds to 127: the contract's
 * clamp never acts and is left out. The rounded value is read from the low byte of the sum that rounds it.
 */
void colibri_quantise_portable(int8_t *out, float *scale, const float *x, uint32_t n)
{
    uint32_t bits = colibri_absmax_portable(x, n);
    uint32_t tiny = colibri_mask_below(bits, COLIBRI_AMAX_ZERO_BITS);
    float amax = colibri_from_bits(colibri_select(tiny, colibri_bits(1.0f), bits));
    float inv = 127.0f / amax;
    *scale = colibri_from_bits(colibri_bits(amax / 127.0f) & ~tiny);
    for (uint32_t i = 0; i < n; i++) {
        out[i] = (int8_t)(uint8_t)colibri_bits(x[i] * inv + COLIBRI_RINT_MAGIC);
    }
}
