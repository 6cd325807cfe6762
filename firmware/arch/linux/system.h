/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's interface, as far as it is used here: no libc, so that every byte of the program is ours. */
#ifndef COLIBRI_LINUX_SYSTEM_H
#define COLIBRI_LINUX_SYSTEM_H

#include <stddef.h>
#include <stdint.h>

/* In start.S. Returns what the kernel returns: -4095 to -1 is an errno. */
long colibri_linux_call(long number, long a, long b, long c, long d, long e, long f);

#if defined(__x86_64__)
enum {
    SYS_READ = 0,
    SYS_WRITE = 1,
    SYS_CLOSE = 3,
    SYS_LSEEK = 8,
    SYS_MMAP = 9,
    SYS_RT_SIGACTION = 13,
    SYS_SIGALTSTACK = 131,
    SYS_CLOCK_GETTIME = 228,
    SYS_EXIT_GROUP = 231,
    SYS_OPENAT = 257
};
#define COLIBRI_LINUX_PC_OFFSET 168u /* of RIP in ucontext */
#else
enum {
    SYS_OPENAT = 56,
    SYS_CLOSE = 57,
    SYS_LSEEK = 62,
    SYS_READ = 63,
    SYS_WRITE = 64,
    SYS_EXIT_GROUP = 94,
    SYS_CLOCK_GETTIME = 113,
    SYS_SIGALTSTACK = 132,
    SYS_RT_SIGACTION = 134,
    SYS_MMAP = 222
};
#if defined(__aarch64__)
#define COLIBRI_LINUX_PC_OFFSET 440u
#else
#define COLIBRI_LINUX_PC_OFFSET 176u
#endif
#endif

enum { AT_FDCWD = -100, O_CLOEXEC = 02000000, SEEK_END = 2, PROT_READ = 1, MAP_SHARED = 1, CLOCK_MONOTONIC = 1 };
enum { SIGILL = 4, SIGBUS = 7, SIGFPE = 8, SIGSEGV = 11 };

#define SA_SIGINFO 0x00000004ul
#define SA_RESTORER 0x04000000ul
#define SA_ONSTACK 0x08000000ul
#define SA_RESETHAND 0x80000000ul

typedef struct {
    int32_t signal;
    int32_t error;
    int32_t code;
    int32_t pad;
    uintptr_t address;
} colibri_linux_siginfo_t;

typedef struct {
    void (*handler)(int number, const colibri_linux_siginfo_t *info, const unsigned char *context);
    unsigned long flags;
#if !defined(__riscv)
    void (*restorer)(void); /* where a handler returns to: ours never does, but x86-64 insists */
#endif
    uint64_t mask;
} colibri_linux_sigaction_t;

typedef struct {
    void *base;
    int flags;
    size_t n_bytes;
} colibri_linux_stack_t;

#endif
