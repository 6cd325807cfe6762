/* SPDX-License-Identifier: Apache-2.0 */
/* AArch64: the MMU and the caches on. The translation tables are constants in the linker script, from the board's description; an
 * address outside of every region has no translation.
 *
 * MUST: the caches hold nothing, as after a reset. A boot loader that leaves them on cleans them first.
 */
#include <stdint.h>

#include "../bare.h"

/* Given by the linker script: level 1 first, for 39 bits of address and a granule of 4 KiB. */
extern const uint64_t __colibri_page_tables[];

#define WRITE(name, value) __asm__ volatile("msr " name ", %0" : : "r"((uint64_t)(value)) : "memory")

void colibri_bare_protect(void)
{
    uint64_t control;
    WRITE("mair_el1", 0x04ffu); /* attribute 0: normal memory, write-back; 1: device, nGnRE */
    /* TCR_EL1: 39 bits; walks cached, inner shareable; no second table; physical addresses of 40 bits */
    WRITE("tcr_el1", UINT64_C(25) | 1u << 8 | 1u << 10 | 3u << 12 | 1u << 23 | UINT64_C(2) << 32);
    WRITE("ttbr0_el1", (uintptr_t)__colibri_page_tables);
    __asm__ volatile("dsb sy\n\tisb\n\ttlbi vmalle1\n\tic iallu\n\tdsb sy\n\tisb" : : : "memory");
    __asm__ volatile("mrs %0, sctlr_el1" : "=r"(control));
    control &= ~(UINT64_C(1) << 1);                       /* A: unaligned access is allowed */
    control |= 1u | 1u << 2 | 1u << 3 | 1u << 12 | 1u << 19; /* MMU, data cache, stack alignment, instruction cache, WXN */
    WRITE("sctlr_el1", control);
    __asm__ volatile("isb" : : : "memory");
}
