/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian loads from the image's header. */
#ifndef COLIBRI_LOAD_H
#define COLIBRI_LOAD_H

#include <stdint.h>

static inline uint32_t colibri_load_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint64_t colibri_load_u64(const uint8_t *bytes)
{
    return (uint64_t)colibri_load_u32(bytes) | (uint64_t)colibri_load_u32(bytes + 4) << 32;
}

#endif
