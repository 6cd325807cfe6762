/* SPDX-License-Identifier: Apache-2.0 */
/* uintptr_t colibri_semihosting_call(uintptr_t operation, const void *parameter) */
#ifdef COLIBRI_SIMULATOR
    .section .text.colibri_semihosting_call, "ax", %progbits
    .global colibri_semihosting_call
    .type colibri_semihosting_call, %function
colibri_semihosting_call:
    hlt #0xf000
    ret
    .size colibri_semihosting_call, . - colibri_semihosting_call
#endif

    .section .note.GNU-stack, "", %progbits
