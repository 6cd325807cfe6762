/* SPDX-License-Identifier: Apache-2.0 */
/* Hardware builds: the byte streams are the board's console, the counter is the core's. Empty in simulator builds. */
#ifndef COLIBRI_SIMULATOR

#include <stdint.h>

#include <colibri/port.h>

#include "board.h"
#include "console.h"

#define REG(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define AIRCR REG(0xe000ed0cu)

#if defined(__ARM_ARCH_6M__)
#define CYCLES colibri_board_ticks()
static void start_counter(void)
{
}
#else
#define DEMCR REG(0xe000edfcu)
#define DWT_CTRL REG(0xe0001000u)
#define CYCLES REG(0xe0001004u) /* DWT_CYCCNT */
static void start_counter(void)
{
    DEMCR |= 1u << 24; /* TRCENA */
    CYCLES = 0;
    DWT_CTRL |= 1u; /* CYCCNTENA */
}
#endif

void colibri_port_init(void)
{
    start_counter();
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

uint64_t colibri_port_cycles(void)
{
    static uint32_t last;
    static uint32_t wraps;
    uint32_t now = CYCLES;
    if (now < last) {
        wraps++;
    }
    last = now;
    return (uint64_t)wraps << 32 | now;
}

void colibri_console_note(const char *text)
{
    (void)text;
}

/* Success: the host is done with this session, so start again and wait for the next. Anything else is kept for a debugger. */
void colibri_port_exit(int status)
{
    if (status == 0) {
        AIRCR = 0x05fa0004u; /* SYSRESETREQ */
    }
    for (;;) {
        __asm__ volatile("wfi");
    }
}

#endif

typedef int colibri_uart_is_not_empty; /* ISO C forbids an empty translation unit */
