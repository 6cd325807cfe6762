/* SPDX-License-Identifier: Apache-2.0 */
/* Arm MPS3 with image AN547 (Corstone-300): Cortex-M55, left in the secure state it boots in. */
#include "../../arch/arm-m/board.h"
#include "../common/cmsdk.h"

#define UART0 0x59303000u
#define FPGAIO_COUNTER 0x59302018u /* QEMU 7.2: rises at 20 MHz, 1.28 ticks an instruction with -icount shift=6 */
#define UART_CLOCK_HZ 25000000u

#include "../common/cmsdk_console.h"

void colibri_board_init(void)
{
#ifndef COLIBRI_SIMULATOR
    cmsdk_uart_init(UART0, UART_CLOCK_HZ, 115200u);
#endif
}

#ifdef COLIBRI_SIMULATOR
uint32_t colibri_board_ticks(void)
{
    return COLIBRI_REG(FPGAIO_COUNTER);
}
#endif
