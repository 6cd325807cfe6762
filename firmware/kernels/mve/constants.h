/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that assembly and C share, without a suffix, which assemblers do not take. mve.h compares them with what C knows. */
#ifndef COLIBRI_MVE_CONSTANTS_H
#define COLIBRI_MVE_CONSTANTS_H

/* As in coefficients.h; binary32 powers of two for snap (asm.h). */
#define SNAP_BITS 0x2b800000
#define AMAX_ZERO_BITS 0x2f000000
#define ONE_BITS 0x3f800000
#define DOWN_BITS 0x14800000 /* 2**-86 */
#define UP_BITS 0x6a800000   /* 2**86 */

/* Offsets in colibri_mve_groups_t. */
#define GROUPS_OUT 0
#define GROUPS_W 4
#define GROUPS_SCALES 8
#define GROUPS_N 12
#define GROUPS_X 16
#define GROUPS_X_END 20
#define GROUPS_X_SCALES 24
#define GROUPS_GROUP 28
#define GROUPS_BLOCK_ROWS 32

#endif
