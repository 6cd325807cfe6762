/* SPDX-License-Identifier: Apache-2.0 */
/* The UART and timer of Arm's Cortex-M System Design Kit, which all MPS2 and MPS3 images carry. */
#ifndef COLIBRI_CMSDK_H
#define COLIBRI_CMSDK_H

#include <stdint.h>

#define COLIBRI_REG(address) (*(volatile uint32_t *)(uintptr_t)(address))

static inline void cmsdk_uart_init(uintptr_t base, uint32_t clock_hz, uint32_t baud)
{
    COLIBRI_REG(base + 0x10u) = clock_hz / baud; /* BAUDDIV, at least 16 */
    COLIBRI_REG(base + 0x08u) = 3u;              /* CTRL: transmit and receive */
    (void)COLIBRI_REG(base);                     /* a byte from before; QEMU looks for waiting input only on a read */
}

static inline void cmsdk_uart_put(uintptr_t base, uint8_t byte)
{
    while ((COLIBRI_REG(base + 0x04u) & 1u) != 0) { /* STATE: transmit buffer full */
    }
    COLIBRI_REG(base) = byte;
}

static inline uint8_t cmsdk_uart_get(uintptr_t base)
{
    while ((COLIBRI_REG(base + 0x04u) & 2u) == 0) { /* STATE: receive buffer full */
    }
    return (uint8_t)COLIBRI_REG(base);
}

static inline void cmsdk_timer_init(uintptr_t base)
{
    COLIBRI_REG(base + 0x08u) = 0xffffffffu; /* RELOAD */
    COLIBRI_REG(base + 0x04u) = 0xffffffffu; /* VALUE */
    COLIBRI_REG(base) = 1u;                  /* CTRL: count down, no interrupt */
}

static inline uint32_t cmsdk_timer_ticks(uintptr_t base)
{
    return 0xffffffffu - COLIBRI_REG(base + 0x04u);
}

#endif
