/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from scripts/colibri/numerics.py by colibri.build.coefficients: do not edit. */
#ifndef COLIBRI_COEFFICIENTS_H
#define COLIBRI_COEFFICIENTS_H

/* Thresholds as bits of binary32. */
#define COLIBRI_SNAP_BITS 0x2b800000u
#define COLIBRI_RANGE_BITS 0x58800000u
#define COLIBRI_AMAX_ZERO_BITS 0x2f000000u

/* exp's argument is clamped to -COLIBRI_EXP_LIMIT. */
#define COLIBRI_EXP_LIMIT 0x1.cp+4f

#define COLIBRI_LOG2E 0x1.715476p+0f
#define COLIBRI_LN2_HI 0x1.62e43p-1f
#define COLIBRI_LN2_LO (-0x1.05c61p-29f)
#define COLIBRI_E2 0x1.fffffcp-2f
#define COLIBRI_E3 0x1.555492p-3f
#define COLIBRI_E4 0x1.5558f2p-5f
#define COLIBRI_E5 0x1.1239e2p-7f
#define COLIBRI_E6 0x1.6a2434p-10f
#define COLIBRI_TWO_OVER_PI 0x1.45f306p-1f
#define COLIBRI_PIO2_A 0x1.921fb6p+0f
#define COLIBRI_PIO2_B (-0x1.777a5cp-25f)
#define COLIBRI_PIO2_C (-0x1.ee59dap-50f)
#define COLIBRI_S3 (-0x1.555546p-3f)
#define COLIBRI_S5 0x1.11073ap-7f
#define COLIBRI_S7 (-0x1.994388p-13f)
#define COLIBRI_C4 0x1.55554ap-5f
#define COLIBRI_C6 (-0x1.6c0c32p-10f)
#define COLIBRI_C8 0x1.99eb4ap-16f
#define COLIBRI_T3 (-0x1.555532p-2f)
#define COLIBRI_T5 0x1.110726p-3f
#define COLIBRI_T7 (-0x1.b83c5ap-5f)
#define COLIBRI_T9 0x1.522698p-6f
#define COLIBRI_T11 (-0x1.75e1c2p-8f)
#define COLIBRI_G1 0x1.988454p+0f
#define COLIBRI_G3 0x1.2444f2p-4f
#define COLIBRI_P1 (-0x1.326374p+0f)
#define COLIBRI_P2 0x1.0da468p+0f
#define COLIBRI_P3 (-0x1.27bb7cp-2f)
#define COLIBRI_P4 (-0x1.2bfe2cp-3f)
#define COLIBRI_P5 0x1.05d706p-6f
#define COLIBRI_P6 0x1.c95e8p-4f
#define COLIBRI_P7 (-0x1.910a5ep-5f)

#define COLIBRI_PCG32_MULTIPLIER 6364136223846793005ull
#define COLIBRI_PCG32_INCREMENT 1442695040888963407ull

#endif
