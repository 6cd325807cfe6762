/* SPDX-License-Identifier: Apache-2.0 */
/* An exported model: the engine's interface and the packed weights, which weights.S links into the program. */
#ifndef COLIBRI_MODEL_H
#define COLIBRI_MODEL_H

#include "colibri/colibri.h"

#if defined(COLIBRI_PREFIX)
#define colibri_weights COLIBRI_NAME(weights)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The image that colibri_init takes: COLIBRI_IMAGE_BYTES, 64-byte aligned, read-only. */
extern const uint8_t colibri_weights[COLIBRI_IMAGE_BYTES];

#ifdef __cplusplus
}
#endif

#endif
