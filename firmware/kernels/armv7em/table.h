/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M4, M7, and M33 with the DSP extension. */
#ifndef COLIBRI_ARMV7EM_TABLE_H
#define COLIBRI_ARMV7EM_TABLE_H

#endif
