/* SPDX-License-Identifier: Apache-2.0 */
/* What a Cortex-M board owes to arch/arm-m: its console and, for simulator builds, a timer. Everything else is the core's. */
#ifndef COLIBRI_ARM_M_BOARD_H
#define COLIBRI_ARM_M_BOARD_H

#include <stdint.h>

/* Clocks, pins, the console at 115200 baud 8N1; in simulator builds also start the timer. */
void colibri_board_init(void);

/* A free-running counter that rises and wraps at 2^32. Hardware builds need it only on ARMv6-M, which has no cycle counter of its
 * own; there colibri_board_init starts it in every build. */
uint32_t colibri_board_ticks(void);

#ifndef COLIBRI_SIMULATOR
/* Console, one byte, waiting. */
void colibri_board_put(uint8_t byte);
uint8_t colibri_board_get(void);
#endif

#endif
