/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V, machine mode: reset and trap entry.
 *
 * Two stacks: traps have their own, because the other one may be what overflowed. It ran into the guard below its region then, a PMP
 * entry without access.
 */
    .section .colibri_entry, "ax", %progbits
    .global colibri_reset
    .type colibri_reset, %function
colibri_reset:
    .option push
    .option norelax /* gp itself cannot be computed from gp */
    la gp, __global_pointer$
    .option pop
    csrw mie, zero
    la t0, colibri_trap
    csrw mtvec, t0
    csrr t0, mhartid
    bnez t0, colibri_park
    la sp, __colibri_stack_top
    li t0, 0x6600 /* mstatus.FS and VS: dirty, so on; a field that this core lacks stays 0 */
    csrs mstatus, t0
#ifdef __riscv_flen
    fscsr zero
#endif
    j colibri_bare_start
    .size colibri_reset, . - colibri_reset

    .section .text.colibri_trap, "ax", %progbits
    .balign 4 /* mtvec's low bits are its mode: every trap to the same place */
    .type colibri_trap, %function
colibri_trap:
    la t0, colibri_park /* a fault of the handler: nobody is left to tell */
    csrw mtvec, t0
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, __colibri_fault_stack_top
    csrr a0, mcause
    csrr a1, mepc
    csrr a2, mstatus
    csrr a3, mtval
    j colibri_fault
    .size colibri_trap, . - colibri_trap

    .section .text.colibri_park, "ax", %progbits
    .balign 4
    .type colibri_park, %function
colibri_park:
    wfi
    j colibri_park
    .size colibri_park, . - colibri_park

    .section .note.GNU-stack, "", %progbits
