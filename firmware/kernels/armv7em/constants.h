/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that assembly and C share, without a suffix, which assemblers do not take. constants.c compares them with what C knows. */
#ifndef COLIBRI_ARMV7EM_CONSTANTS_H
#define COLIBRI_ARMV7EM_CONSTANTS_H

/* Bits of 2**-40, 2**-86, 2**86. */
#define SNAP_BITS 0x2b800000
#define DOWN_BITS 0x14800000
#define UP_BITS 0x6a800000

/* Offsets in colibri_kv_rows_t. */
#define KV_VALUES 0
#define KV_SCALES 4
#define KV_N_ROWS 8
#define KV_N_COLS 12
#define KV_STRIDE 16
#define KV_SCALE_STRIDE 20

#endif
