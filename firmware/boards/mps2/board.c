/* SPDX-License-Identifier: Apache-2.0 */
/* Arm MPS2 with images AN385, AN386 and AN500: Cortex-M3, M4F and M7 at 25 MHz, with the same peripherals. */
#include "../../arch/arm-m/board.h"
#include "../common/cmsdk.h"

#define UART0 0x40004000u
#define TIMER0 0x40000000u
#define CLOCK_HZ 25000000u

#include "../common/cmsdk_console.h"

void colibri_board_init(void)
{
#ifdef COLIBRI_SIMULATOR
    cmsdk_timer_init(TIMER0);
#else
    cmsdk_uart_init(UART0, CLOCK_HZ, 115200u);
#endif
}

#ifdef COLIBRI_SIMULATOR
uint32_t colibri_board_ticks(void)
{
    return cmsdk_timer_ticks(TIMER0);
}
#endif
