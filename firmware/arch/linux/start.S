/* SPDX-License-Identifier: Apache-2.0 */
/* Linux: where the kernel enters the program, and the call of the kernel. */
    .section .text._start, "ax", %progbits
    .global _start
    .type _start, %function
_start: /* at the stack pointer: argc, argv */
#if defined(__x86_64__)
    xor %ebp, %ebp
    mov %rsp, %rdi
    call colibri_linux_start
#elif defined(__aarch64__)
    mov x29, xzr
    mov x30, xzr
    mov x0, sp
    b colibri_linux_start
#elif defined(__riscv)
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    mv a0, sp
    j colibri_linux_start
#else
#error "colibri: arch/linux is for x86-64, AArch64 and RISC-V"
#endif
    .size _start, . - _start

/* long colibri_linux_call(long number, long a, long b, long c, long d, long e, long f) */
    .section .text.colibri_linux_call, "ax", %progbits
    .global colibri_linux_call
    .type colibri_linux_call, %function
colibri_linux_call:
#if defined(__x86_64__)
    mov %rdi, %rax
    mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    mov %r8, %r10
    mov %r9, %r8
    mov 8(%rsp), %r9
    syscall
    ret
#elif defined(__aarch64__)
    mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
    ret
#else
    mv a7, a0
    mv a0, a1
    mv a1, a2
    mv a2, a3
    mv a3, a4
    mv a4, a5
    mv a5, a6
    ecall
    ret
#endif
    .size colibri_linux_call, . - colibri_linux_call

    .section .note.GNU-stack, "", %progbits
