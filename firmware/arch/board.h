/* SPDX-License-Identifier: Apache-2.0 */
/* What a bare-metal board owes to arch/: its console. Everything else is the core's. */
#ifndef COLIBRI_BOARD_H
#define COLIBRI_BOARD_H

#include <stdint.h>

/* Clocks, pins, the console at 115200 baud 8N1; in simulator builds also start the timer that counts, where that is the board's. */
void colibri_board_init(void);

#ifndef COLIBRI_SIMULATOR
/* Console, one byte, waiting. */
void colibri_board_put(uint8_t byte);
uint8_t colibri_board_get(void);

/* Reset everything, for the next session; it may return where that takes a while. On Cortex-M the core does it. */
void colibri_board_restart(void);
#endif

#endif
