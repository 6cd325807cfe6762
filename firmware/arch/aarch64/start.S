/* SPDX-License-Identifier: Apache-2.0 */
/* AArch64: reset, from EL3 or EL2 down to EL1, and the exception vectors.
 *
 * Two stacks. Exceptions use SP_EL1, the fault stack; everything else runs on SP_EL0, which lies at the bottom of its region: what
 * overflows it reaches addresses without a translation, and the handler still has a stack to say so.
 */
    .section .colibri_entry, "ax", %progbits
    .global colibri_reset
    .type colibri_reset, %function
colibri_reset:
    msr daifset, #15
    mrs x0, mpidr_el1
    tst x0, #0xff
    b.ne colibri_park
    adr x5, in_el1
    mov x6, #0x3c5 /* for SPSR: EL1 with its own stack pointer, everything masked */
    mrs x0, currentel
    cmp x0, #0xc
    b.ne not_el3
    mov x1, #0x431 /* SCR_EL3: not secure, the next level is AArch64 */
    msr scr_el3, x1
    msr cptr_el3, xzr
    msr elr_el3, x5
    msr spsr_el3, x6
    mrs x1, id_aa64pfr0_el1
    tst x1, #0xf00
    b.eq 1f
    bl el2_registers
1:  eret
not_el3:
    cmp x0, #0x8
    b.ne in_el1
    bl el2_registers
    msr elr_el2, x5
    msr spsr_el2, x6
    eret

el2_registers: /* nothing of EL1's is trapped */
    mov x1, #1 << 31 /* HCR_EL2: EL1 is AArch64 */
    msr hcr_el2, x1
    mov x1, #0x33ff /* CPTR_EL2: its bits that read as one */
    msr cptr_el2, x1
    msr hstr_el2, xzr
    mov x1, #3 /* CNTHCTL_EL2: the counter is EL1's too */
    msr cnthctl_el2, x1
    msr cntvoff_el2, xzr
    mrs x1, midr_el1
    msr vpidr_el2, x1
    mrs x1, mpidr_el1
    msr vmpidr_el2, x1
    mrs x1, mdcr_el2
    and x1, x1, #0x1f /* HPMN alone: the number of performance counters stays, no trap of theirs */
    msr mdcr_el2, x1
    ret

in_el1:
    msr spsel, #1
    adrp x0, __colibri_fault_stack_top
    add x0, x0, :lo12:__colibri_fault_stack_top
    mov sp, x0
    msr spsel, #0
    adrp x0, __colibri_stack_top
    add x0, x0, :lo12:__colibri_stack_top
    mov sp, x0
    adrp x0, colibri_vectors
    add x0, x0, :lo12:colibri_vectors
    msr vbar_el1, x0
    mov x0, #3 << 20 /* CPACR_EL1.FPEN: floating point is not trapped */
    msr cpacr_el1, x0
    isb
    msr fpcr, xzr
    msr daifclr, #4 /* SError is reported like the others */
    b colibri_bare_start
    .size colibri_reset, . - colibri_reset

    .section .text.colibri_vectors, "ax", %progbits
    .balign 2048
    .type colibri_vectors, %function
colibri_vectors:
    .rept 4 /* from SP_EL0: synchronous, IRQ, FIQ, SError */
    .balign 128
    b colibri_exception
    .endr
    .rept 12 /* from the handler itself: nobody is left to tell; or from EL0, where nothing runs */
    .balign 128
    b colibri_park
    .endr
    .size colibri_vectors, . - colibri_vectors

    .section .text.colibri_exception, "ax", %progbits
    .type colibri_exception, %function
colibri_exception:
    mrs x0, esr_el1
    mrs x1, elr_el1
    mrs x2, far_el1
    mov x3, x30
    b colibri_fault
    .size colibri_exception, . - colibri_exception

    .section .text.colibri_park, "ax", %progbits
    .type colibri_park, %function
colibri_park:
    wfi
    b colibri_park
    .size colibri_park, . - colibri_park

    .section .note.GNU-stack, "", %progbits
