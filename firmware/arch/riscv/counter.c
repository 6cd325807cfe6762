/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V: the port's counter. Instructions in simulator builds, which QEMU counts with -icount only; cycles on hardware. */
#include <stdint.h>

#include <colibri/port.h>

#ifdef COLIBRI_SIMULATOR
#define LOW "minstret"
#define HIGH "minstreth"
#else
#define LOW "mcycle"
#define HIGH "mcycleh"
#endif

uint64_t colibri_port_cycles(void)
{
#if __riscv_xlen == 32
    uint32_t low;
    uint32_t high;
    uint32_t again;
    do { /* until no carry went from one to the other in between */
        __asm__ volatile("csrr %0, " HIGH "\n\tcsrr %1, " LOW "\n\tcsrr %2, " HIGH : "=&r"(high), "=&r"(low), "=&r"(again));
    } while (high != again);
    return (uint64_t)high << 32 | low;
#else
    uint64_t count;
    __asm__ volatile("csrr %0, " LOW : "=r"(count));
    return count;
#endif
}
