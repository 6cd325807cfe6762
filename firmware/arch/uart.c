/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware builds: the byte streams are the board's console. Empty in simulator builds. */
#ifndef COLIBRI_SIMULATOR

#include <stdint.h>

#include <colibri/port.h>

#include "board.h"
#include "console.h"

void colibri_port_init(void)
{
    colibri_board_init();
}

size_t colibri_port_read(void *to, size_t n_bytes)
{
    uint8_t *at = to;
    for (size_t i = 0; i < n_bytes; i++) {
        at[i] = colibri_board_get();
    }
    return n_bytes;
}

void colibri_port_write(const void *from, size_t n_bytes)
{
    const uint8_t *at = from;
    for (size_t i = 0; i < n_bytes; i++) {
        colibri_board_put(at[i]);
    }
}

void colibri_console_note(const char *text)
{
    (void)text;
}

/* Success: the host is done with this session, so start again and wait for the next. Anything else is kept for a debugger. */
void colibri_port_exit(int status)
{
    if (status == 0) {
        colibri_board_restart();
    }
    for (;;) {
        __asm__ volatile("wfi"); /* Arm and RISC-V both call it so */
    }
}

#endif

typedef int colibri_uart_is_not_empty; /* ISO C forbids an empty translation unit */
