/* SPDX-License-Identifier: Apache-2.0 */
/* uintptr_t colibri_semihosting_call(uintptr_t operation, const void *parameter) */
#ifdef COLIBRI_SIMULATOR
    .section .text.colibri_semihosting_call, "ax", %progbits
    .balign 16 /* the three instructions are not compressed and lie in one page, or they are only a breakpoint */
    .option norvc
    .global colibri_semihosting_call
    .type colibri_semihosting_call, %function
colibri_semihosting_call:
    slli zero, zero, 0x1f
    ebreak
    srai zero, zero, 7
    ret
    .size colibri_semihosting_call, . - colibri_semihosting_call
#endif

    .section .note.GNU-stack, "", %progbits
