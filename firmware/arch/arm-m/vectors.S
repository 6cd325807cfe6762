/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M: vector table, reset and fault entry.
 *
 * Two stacks. Handlers use the main stack, `fault stack` below. Everything else runs on the process stack, which lies at the bottom
 * of its region: what overflows it reaches the guard (v7-M: an MPU region, v8-M: PSPLIM), and the fault handler still has a
 * stack to say so. ARMv6-M has neither: there the region must begin where no memory is.
 */
    .syntax unified
    .thumb

    .section .colibri_vectors, "a", %progbits
    .balign 128
    .global colibri_vectors
colibri_vectors:
    .word __colibri_fault_stack_top
    .word colibri_reset
    .rept 14 /* NMI .. SysTick. No interrupt is enabled, so the table ends here. */
    .word colibri_fault_entry
    .endr
    .size colibri_vectors, . - colibri_vectors

    .section .text.colibri_reset, "ax", %progbits
    .global colibri_reset
    .type colibri_reset, %function
    .thumb_func
colibri_reset:
    ldr r0, =__colibri_stack_top
    msr psp, r0
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
    ldr r0, =__colibri_stack_bottom
    msr psplim, r0
    ldr r0, =__colibri_fault_stack_bottom
    msr msplim, r0
#endif
    movs r0, #2 /* CONTROL.SPSEL: thread mode on the process stack */
    msr control, r0
    isb
#if !defined(__ARM_ARCH_6M__)
    ldr r0, =colibri_vectors
    ldr r1, =0xe000ed08 /* VTOR: a boot loader may have left its own */
    str r0, [r1]
#endif
    bl colibri_start /* does not return */
    .size colibri_reset, . - colibri_reset

    .section .text.colibri_fault_entry, "ax", %progbits
    .global colibri_fault_entry
    .type colibri_fault_entry, %function
    .thumb_func
colibri_fault_entry:
    mov r0, lr
    lsls r0, r0, #29 /* EXC_RETURN bit 2 to N: where the hardware saved the registers */
    bmi 1f
    mrs r0, msp
    b 2f
1:  mrs r0, psp
2:  ldr r1, =__colibri_fault_stack_top /* whatever was on the handler's stack is of no use any more */
    mov sp, r1
    bl colibri_fault
    .size colibri_fault_entry, . - colibri_fault_entry

    .section .note.GNU-stack, "", %progbits
