/* SPDX-License-Identifier: Apache-2.0 */
/* BBC micro:bit, first edition: Nordic nRF51822, Cortex-M0 at 16 MHz. The registers are named as in the nRF51 Series Reference Manual. */
#include "../../arch/arm-m/board.h"

#define REG(address) (*(volatile uint32_t *)(uintptr_t)(address))

#define CLOCK_TASKS_HFCLKSTART REG(0x40000000u)
#define CLOCK_EVENTS_HFCLKSTARTED REG(0x40000100u)

#define UART_TASKS_STARTRX REG(0x40002000u)
#define UART_TASKS_STARTTX REG(0x40002008u)
#define UART_EVENTS_RXDRDY REG(0x40002108u)
#define UART_EVENTS_TXDRDY REG(0x4000211cu)
#define UART_ENABLE REG(0x40002500u)
#define UART_PSELTXD REG(0x4000250cu)
#define UART_PSELRXD REG(0x40002514u)
#define UART_RXD REG(0x40002518u)
#define UART_TXD REG(0x4000251cu)
#define UART_BAUDRATE REG(0x40002524u)

#define TIMER0_TASKS_START REG(0x40008000u)
#define TIMER0_TASKS_CAPTURE0 REG(0x40008040u)
#define TIMER0_BITMODE REG(0x40008508u)
#define TIMER0_PRESCALER REG(0x40008510u)
#define TIMER0_CC0 REG(0x40008540u)

#define GPIO_OUTSET REG(0x50000508u)
#define GPIO_DIRSET REG(0x50000518u)

#define PIN_TX 24u /* to the interface chip, which is a serial port over USB */
#define PIN_RX 25u

void colibri_board_init(void)
{
    CLOCK_TASKS_HFCLKSTART = 1; /* the crystal: the internal oscillator is too inexact for a UART */
    while (CLOCK_EVENTS_HFCLKSTARTED == 0) {
    }
    TIMER0_BITMODE = 3u; /* 32 bits */
    TIMER0_PRESCALER = 0; /* 16 MHz, a tick a cycle */
    TIMER0_TASKS_START = 1;
#ifndef COLIBRI_SIMULATOR
    GPIO_OUTSET = 1u << PIN_TX;
    GPIO_DIRSET = 1u << PIN_TX;
    UART_PSELTXD = PIN_TX;
    UART_PSELRXD = PIN_RX;
    UART_BAUDRATE = 0x01d7e000u; /* 115200 */
    UART_ENABLE = 4u;
    UART_TASKS_STARTTX = 1;
    UART_TASKS_STARTRX = 1;
#endif
}

uint32_t colibri_board_ticks(void)
{
    TIMER0_TASKS_CAPTURE0 = 1;
    return TIMER0_CC0;
}

#ifndef COLIBRI_SIMULATOR
void colibri_board_put(uint8_t byte)
{
    UART_EVENTS_TXDRDY = 0;
    UART_TXD = byte;
    while (UART_EVENTS_TXDRDY == 0) {
    }
}

uint8_t colibri_board_get(void)
{
    while (UART_EVENTS_RXDRDY == 0) {
    }
    UART_EVENTS_RXDRDY = 0;
    return (uint8_t)UART_RXD;
}
#endif
