/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLIBRI_FAULT_H
#define COLIBRI_FAULT_H

#include <stdint.h>

#include <colibri/port.h>

/* Tell the host about a fault with an 'X' frame: u32 kind, program counter, u32 status, address. Program counter and address
 * have the width of a pointer, so the payload is 16 bytes on a 32-bit core and 24 on a 64-bit one.
 *
 * kind       the exception's number in the architecture's own numbering: Cortex-M exception number, RISC-V mcause, AArch64 exception
 *            class (EC), linux signal number.
 * pc         0 where the hardware could not save it (a stack overflow on Cortex-M).
 * status     Cortex-M: CFSR, or HFSR where CFSR is 0; ARMv6-M has neither: CFSR's STKERR (bit 12) for a stack overflow, else 0.
 *            RISC-V: mstatus. AArch64: ESR. linux: the signal's si_code.
 * address    the data address, 0 where there is none. RISC-V: mtval, which is the instruction for an illegal one.
 *
 * Then ends with colibri_port_exit(3). The frame may follow a frame that was cut short by the fault.
 */
COLIBRI_NORETURN void colibri_fault_report(uint32_t kind, uintptr_t pc, uint32_t status, uintptr_t address);

#endif
