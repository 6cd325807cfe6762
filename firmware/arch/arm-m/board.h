/* SPDX-License-Identifier: Apache-2.0 */
/* What a Cortex-M board owes to arch/arm-m: its console and, for simulator builds, a timer. Everything else is the core's. */
#ifndef COLIBRI_ARM_M_BOARD_H
#define COLIBRI_ARM_M_BOARD_H

#include "../board.h"

/* A free-running counter that rises and wraps at 2^32. Hardware builds need it only on ARMv6-M, which has no cycle counter of its
 * own; there colibri_board_init starts it in every build. */
uint32_t colibri_board_ticks(void);

#endif
