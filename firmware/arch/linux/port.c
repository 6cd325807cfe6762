/* SPDX-License-Identifier: Apache-2.0 */
/* Linux, without a libc. Usage: firmware.elf [model.bin]; request on standard input, response on standard output.
 *
 * The image is mapped read-only and shared, never read into memory and never part of the ELF.
 */
#include <colibri/port.h>

#include "../console.h"
#include "../fault.h"
#include "system.h"

enum { STDIN = 0, STDOUT = 1, STDERR = 2 };

COLIBRI_NORETURN void colibri_linux_start(const uintptr_t *stack);

static const void *weights;
static size_t weights_bytes;

static long call(long number, long a, long b, long c)
{
    return colibri_linux_call(number, a, b, c, 0, 0, 0);
}

static void on_fault(int number, const colibri_linux_siginfo_t *info, const unsigned char *context)
{
    uintptr_t pc = *(const uintptr_t *)(const void *)(context + COLIBRI_LINUX_PC_OFFSET);
    colibri_console_note_hex("colibri: signal 0x", (uintptr_t)number);
    colibri_console_note_hex(", pc 0x", pc);
    colibri_console_note_hex(" at 0x", info->address);
    colibri_console_note("\n");
    colibri_fault_report((uint32_t)number, pc, (uint32_t)info->code, info->address);
}

static void never(void)
{
}

void colibri_port_init(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    static unsigned char handler_stack[16384]; /* apart from the one that may have overflowed */
    const colibri_linux_stack_t stack = {handler_stack, 0, sizeof handler_stack};
    colibri_linux_sigaction_t action = {.handler = on_fault, .flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
#if defined(__riscv)
    (void)never;
#else
    action.flags |= SA_RESTORER;
    action.restorer = never;
#endif
    if (call(SYS_SIGALTSTACK, (long)(intptr_t)&stack, 0, 0) != 0) {
        colibri_port_exit(2);
    }
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (colibri_linux_call(SYS_RT_SIGACTION, signals[i], (long)(intptr_t)&action, 0, sizeof action.mask, 0, 0) != 0) {
            colibri_port_exit(2);
        }
    }
}

size_t colibri_port_read(void *to, size_t n_bytes)
{
    unsigned char *at = to;
    size_t done = 0;
    while (done < n_bytes) {
        long n = call(SYS_READ, STDIN, (long)(intptr_t)(at + done), (long)(n_bytes - done));
        if (n <= 0) {
            break;
        }
        done += (size_t)n;
    }
    return done;
}

void colibri_port_write(const void *from, size_t n_bytes)
{
    const unsigned char *at = from;
    size_t done = 0;
    while (done < n_bytes) {
        long n = call(SYS_WRITE, STDOUT, (long)(intptr_t)(at + done), (long)(n_bytes - done));
        if (n <= 0) {
            colibri_port_exit(2);
        }
        done += (size_t)n;
    }
}

void colibri_console_note(const char *text)
{
    size_t n_bytes = 0;
    while (text[n_bytes] != 0) {
        n_bytes++;
    }
    (void)call(SYS_WRITE, STDERR, (long)(intptr_t)text, (long)n_bytes);
}

uint64_t colibri_port_cycles(void)
{
    uint64_t now[2] = {0, 0}; /* seconds, nanoseconds */
    (void)call(SYS_CLOCK_GETTIME, CLOCK_MONOTONIC, (long)(intptr_t)now, 0);
    return now[0] * 1000000000u + now[1];
}

const void *colibri_port_weights(size_t *n_bytes)
{
    *n_bytes = weights_bytes;
    return weights;
}

void colibri_port_exit(int status)
{
    for (;;) {
        (void)call(SYS_EXIT_GROUP, status, 0, 0);
    }
}

static void must(long result, const char *what, const char *path)
{
    if (result >= 0 || result < -4095) {
        return;
    }
    colibri_console_note("colibri: cannot ");
    colibri_console_note(what);
    colibri_console_note(path);
    colibri_console_note_hex(": errno 0x", (uintptr_t)-result);
    colibri_console_note("\n");
    colibri_port_exit(2);
}

static void map_weights(const char *path)
{
    long file = call(SYS_OPENAT, AT_FDCWD, (long)(intptr_t)path, O_CLOEXEC);
    must(file, "open ", path);
    long n_bytes = call(SYS_LSEEK, file, 0, SEEK_END);
    must(n_bytes, "find the size of ", path);
    long mapped = colibri_linux_call(SYS_MMAP, 0, n_bytes, PROT_READ, MAP_SHARED, file, 0);
    must(mapped, "map ", path);
    (void)call(SYS_CLOSE, file, 0, 0);
    weights = (const void *)(intptr_t)mapped;
    weights_bytes = (size_t)n_bytes;
}

void colibri_linux_start(const uintptr_t *stack)
{
    uintptr_t n_arguments = stack[0];
    if (n_arguments > 2) {
        colibri_console_note("usage: firmware.elf [model.bin] <request >response\n");
        colibri_port_exit(2);
    }
    colibri_port_init();
    if (n_arguments == 2) {
        map_weights((const char *)stack[2]);
    }
    colibri_port_exit(colibri_app());
}
