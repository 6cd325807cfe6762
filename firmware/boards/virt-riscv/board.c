/* SPDX-License-Identifier: Apache-2.0 */
/* QEMU's virt machine for RISC-V, 32 and 64 bits. */
#include "../../arch/board.h"
#include "../common/ns16550.h"

#define UART0 0x10000000u
#define UART_CLOCK_HZ 3686400u
#define TEST_DEVICE 0x00100000u /* SiFive's: ends or restarts the simulator */

void colibri_board_init(void)
{
#ifndef COLIBRI_SIMULATOR
    ns16550_init(UART0, UART_CLOCK_HZ, 115200u);
#endif
}

#ifndef COLIBRI_SIMULATOR
void colibri_board_put(uint8_t byte)
{
    ns16550_put(UART0, byte);
}

uint8_t colibri_board_get(void)
{
    return ns16550_get(UART0);
}

void colibri_board_restart(void)
{
    *(volatile uint32_t *)(uintptr_t)TEST_DEVICE = 0x7777u;
}
#endif
