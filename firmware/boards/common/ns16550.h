/* SPDX-License-Identifier: Apache-2.0 */
/* The 16550 UART with byte-wide registers, one byte apart. */
#ifndef COLIBRI_NS16550_H
#define COLIBRI_NS16550_H

#include <stdint.h>

#define COLIBRI_REG8(address) (*(volatile uint8_t *)(uintptr_t)(address))

/* The FIFOs are left as they are: turning them on empties them, and the first byte of a request may be there already. */
static inline void ns16550_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    uint32_t divisor = (clock_hz + 8u * baud) / (16u * baud);
    COLIBRI_REG8(base + 1u) = 0;     /* IER: no interrupt */
    COLIBRI_REG8(base + 3u) = 0x83u; /* LCR: 8N1, and the divisor instead of the data register */
    COLIBRI_REG8(base) = (uint8_t)divisor;
    COLIBRI_REG8(base + 1u) = (uint8_t)(divisor >> 8);
    COLIBRI_REG8(base + 3u) = 0x03u;
}

static inline void ns16550_put(uintptr_t base, uint8_t byte)
{
    while ((COLIBRI_REG8(base + 5u) & 0x20u) == 0) { /* LSR: room in the transmitter */
    }
    COLIBRI_REG8(base) = byte;
}

static inline uint8_t ns16550_get(uintptr_t base)
{
    while ((COLIBRI_REG8(base + 5u) & 0x01u) == 0) { /* LSR: data ready */
    }
    return COLIBRI_REG8(base);
}

#endif
