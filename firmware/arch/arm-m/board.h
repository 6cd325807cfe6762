/* SPDX-License-Identifier: Apache-2.0 */
/* What a Cortex-M board owes to arch/arm-m: its console and, for simulator builds, a timer. Everything else is the core's. */
#ifndef COLIBRI_ARM_M_BOARD_H
#define COLIBRI_ARM_M_BOARD_H

#include "../board.h"

#ifdef COLIBRI_SIMULATOR
/* A free-running counter that rises and wraps at 2^32. */
uint32_t colibri_board_ticks(void);
#endif

#endif
