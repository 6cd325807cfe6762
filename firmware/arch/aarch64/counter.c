/* SPDX-License-Identifier: Apache-2.0 */
/* AArch64: the port's counter. The generic timer in simulator builds: QEMU's PMU counts nothing without -icount; the cycle counter on
 * hardware.
 */
#include <stdint.h>

#include <colibri/port.h>

uint64_t colibri_port_cycles(void)
{
    uint64_t count;
#ifdef COLIBRI_SIMULATOR
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(count));
#else
    __asm__ volatile("msr pmccfiltr_el0, xzr\n\t" /* from the first call on, at EL1 too */
                     "msr pmcntenset_el0, %1\n\t"
                     "msr pmcr_el0, %2\n\t" /* enabled, 64 bits */
                     "isb\n\t"
                     "mrs %0, pmccntr_el0"
                     : "=&r"(count)
                     : "r"(UINT64_C(1) << 31), "r"(UINT64_C(0x41)));
#endif
    return count;
}
