/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V: physical memory protection, the port's counter. */
#include <stdint.h>

#include "../bare.h"

/* Pairs of address register and configuration, from the board's description by the linker script; at most eight. */
extern const uint32_t __colibri_protection_start[], __colibri_protection_end[];

#define MAX_ENTRIES 8u

/* A register's number is part of the instruction. */
static void write_address(uint32_t index, uintptr_t value)
{
    switch (index) {
    case 0: __asm__ volatile("csrw pmpaddr0, %0" : : "r"(value)); break;
    case 1: __asm__ volatile("csrw pmpaddr1, %0" : : "r"(value)); break;
    case 2: __asm__ volatile("csrw pmpaddr2, %0" : : "r"(value)); break;
    case 3: __asm__ volatile("csrw pmpaddr3, %0" : : "r"(value)); break;
    case 4: __asm__ volatile("csrw pmpaddr4, %0" : : "r"(value)); break;
    case 5: __asm__ volatile("csrw pmpaddr5, %0" : : "r"(value)); break;
    case 6: __asm__ volatile("csrw pmpaddr6, %0" : : "r"(value)); break;
    default: __asm__ volatile("csrw pmpaddr7, %0" : : "r"(value)); break;
    }
}

/* Entries are locked: those that are not do not bind machine mode. What none covers stays as it was, for the peripherals. */
void colibri_bare_protect(void)
{
    uint64_t configuration = 0;
    uint32_t index = 0;
    for (const uint32_t *pair = __colibri_protection_start; pair < __colibri_protection_end && index < MAX_ENTRIES; pair += 2) {
        write_address(index, pair[0]);
        configuration |= (uint64_t)pair[1] << (8u * index);
        index++;
    }
#if __riscv_xlen == 32
    __asm__ volatile("csrw pmpcfg1, %0\n\tcsrw pmpcfg0, %1"
                     :
                     : "r"((uint32_t)(configuration >> 32)), "r"((uint32_t)configuration)
                     : "memory");
#else
    __asm__ volatile("csrw pmpcfg0, %0" : : "r"(configuration) : "memory");
#endif
    __asm__ volatile("sfence.vma" : : : "memory"); /* translations that were cached keep their old permissions otherwise */
}
