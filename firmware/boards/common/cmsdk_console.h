/* SPDX-License-Identifier: Apache-2.0 */
/* The console of a board whose CMSDK UART is at UART0, which the including board.c defines first. */
#ifndef COLIBRI_CMSDK_CONSOLE_H
#define COLIBRI_CMSDK_CONSOLE_H

#include "../../arch/arm-m/board.h"
#include "cmsdk.h"

#ifndef COLIBRI_SIMULATOR
void colibri_board_put(uint8_t byte)
{
    cmsdk_uart_put(UART0, byte);
}

uint8_t colibri_board_get(void)
{
    return cmsdk_uart_get(UART0);
}
#endif

#endif
