/* SPDX-License-Identifier: Apache-2.0 */
/* QEMU's virt machine for AArch64. */
#include "../../arch/board.h"
#include "../common/pl011.h"

#define UART0 0x09000000u
#define UART_CLOCK_HZ 24000000u

void colibri_board_init(void)
{
#ifndef COLIBRI_SIMULATOR
    pl011_init(UART0, UART_CLOCK_HZ, 115200u);
#endif
}

#ifndef COLIBRI_SIMULATOR
void colibri_board_put(uint8_t byte)
{
    pl011_put(UART0, byte);
}

uint8_t colibri_board_get(void)
{
    return pl011_get(UART0);
}

void colibri_board_restart(void)
{
    register uint64_t function __asm__("x0") = 0x84000009u; /* PSCI SYSTEM_RESET; QEMU is the firmware that answers */
    __asm__ volatile("hvc #0" : "+r"(function) : : "memory");
}
#endif
