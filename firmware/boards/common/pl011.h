/* SPDX-License-Identifier: Apache-2.0 */
/* Arm's PL011 UART. */
#ifndef COLIBRI_PL011_H
#define COLIBRI_PL011_H

#include <stdint.h>

#define COLIBRI_REG(address) (*(volatile uint32_t *)(uintptr_t)(address))

static inline void pl011_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    uint32_t divisor = (8u * clock_hz / baud + 1u) / 2u; /* clock / (16 * baud) in 1/64 */
    COLIBRI_REG(base + 0x30u) = 0;                       /* CR: off */
    COLIBRI_REG(base + 0x38u) = 0;                       /* IMSC: no interrupt */
    COLIBRI_REG(base + 0x24u) = divisor >> 6;            /* IBRD */
    COLIBRI_REG(base + 0x28u) = divisor & 63u;           /* FBRD */
    COLIBRI_REG(base + 0x2cu) = 0x70u;                   /* LCR_H: 8N1, FIFOs on; takes the divisor over */
    COLIBRI_REG(base + 0x30u) = 0x301u;                  /* CR: on, both directions */
}

static inline void pl011_put(uintptr_t base, uint8_t byte)
{
    while ((COLIBRI_REG(base + 0x18u) & 0x20u) != 0) { /* FR: transmit FIFO full */
    }
    COLIBRI_REG(base) = byte;
}

static inline uint8_t pl011_get(uintptr_t base)
{
    while ((COLIBRI_REG(base + 0x18u) & 0x10u) != 0) { /* FR: receive FIFO empty */
    }
    return (uint8_t)COLIBRI_REG(base);
}

#endif
