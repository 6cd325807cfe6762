/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M: the port's counter, and the reset of the core.
 *
 * Simulator builds count with the board's timer, since QEMU's DWT reads constant, and so do all on ARMv6-M, which has no DWT;
 * other hardware builds with DWT.CYCCNT. Both have 32 bits.
 */
#include <stdint.h>

#include <colibri/port.h>

#include "board.h"

#define REG(address) (*(volatile uint32_t *)(uintptr_t)(address))

#if defined(COLIBRI_SIMULATOR) || defined(__ARM_ARCH_6M__)
static uint32_t ticks(void)
{
    return colibri_board_ticks();
}
#else
#define DEMCR REG(0xe000edfcu)
#define DWT_CTRL REG(0xe0001000u)
#define DWT_CYCCNT REG(0xe0001004u)
static uint32_t ticks(void)
{
    DEMCR |= 1u << 24; /* TRCENA */
    DWT_CTRL |= 1u;    /* CYCCNTENA: from the first call on */
    return DWT_CYCCNT;
}
#endif

#ifndef COLIBRI_SIMULATOR
void colibri_board_restart(void)
{
    REG(0xe000ed0cu) = 0x05fa0004u; /* AIRCR: SYSRESETREQ */
}
#endif

uint64_t colibri_port_cycles(void)
{
    static uint32_t last;
    static uint32_t wraps;
    uint32_t now = ticks();
    if (now < last) {
        wraps++;
    }
    last = now;
    return (uint64_t)wraps << 32 | now;
}
