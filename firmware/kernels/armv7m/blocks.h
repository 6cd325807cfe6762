/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel layout 4 (docs/FORMAT.md, section 3): blocks of four rows (q8) or eight (q4), whose exact sums the assembly finds. */
#ifndef COLIBRI_ARMV7M_BLOCKS_H
#define COLIBRI_ARMV7M_BLOCKS_H

#include "../kernels.h"

/* Longer rows of q8 are summed in segments; q4 in groups of 32 columns always, each with its multipliers. */
#define COLIBRI_SEGMENT_ELEMS 512u
#define COLIBRI_Q4_GROUP_ELEMS 32u

/* Words before the elements of a segment of x: what its sums begin with. */
#define COLIBRI_Q8_BEGIN_WORDS 3u
#define COLIBRI_Q4_BEGIN_WORDS 4u

void colibri_q8_sums_armv7m(int32_t sums[4], const uint8_t *weights, const int32_t *x, uint32_t n_units);
void colibri_q4_sums_armv7m(int32_t sums[8], const uint8_t *weights, const int32_t *x, uint32_t n_units);

static inline uint32_t colibri_min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline const float *colibri_scales_at(const uint8_t *bytes)
{
    return (const float *)(const void *)bytes;
}

#endif
