/* SPDX-License-Identifier: Apache-2.0 */
/* Arm MPS2 with image AN505 (IoT Kit): Cortex-M33 at 20 MHz, left in the secure state it boots in; peripherals at their secure addresses. */
#include "../../arch/arm-m/board.h"
#include "../common/cmsdk.h"

#define UART0 0x50200000u
#define TIMER0 0x50000000u
#define CLOCK_HZ 20000000u

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
