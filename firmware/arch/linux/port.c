/* SPDX-License-Identifier: Apache-2.0 */
/* Linux: the only port that has a libc. Usage: firmware.elf [model.bin]; request on standard input, response on standard output.
 *
 * The image is mapped read-only and shared, never read into memory and never part of the ELF.
 */
#define _GNU_SOURCE /* the program counter in a signal's context */

#include <colibri/port.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "../fault.h"

static const void *weights;
static size_t weights_bytes;

static uintptr_t program_counter(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)context->uc_mcontext.pc;
#elif defined(__riscv)
    return (uintptr_t)context->uc_mcontext.__gregs[REG_PC];
#else
    (void)context;
    return 0;
#endif
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    uintptr_t pc = program_counter(context);
    char line[96];
    int n = snprintf(line, sizeof line, "colibri: signal %d, pc 0x%lx at 0x%lx\n", number, (unsigned long)pc,
                     (unsigned long)(uintptr_t)info->si_addr);
    if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0) {
        /* nothing more can be done about it */
    }
    colibri_fault_report((uint32_t)number, pc, (uint32_t)info->si_code, (uintptr_t)info->si_addr);
}

void colibri_port_init(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    static unsigned char handler_stack[16384]; /* apart from the one that may have overflowed */
    stack_t stack;
    struct sigaction action;
    memset(&stack, 0, sizeof stack);
    stack.ss_sp = handler_stack;
    stack.ss_size = sizeof handler_stack;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND;
    if (sigaltstack(&stack, NULL) != 0) {
        colibri_port_exit(2);
    }
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], &action, NULL) != 0) {
            colibri_port_exit(2);
        }
    }
}

size_t colibri_port_read(void *to, size_t n_bytes)
{
    unsigned char *at = to;
    size_t done = 0;
    while (done < n_bytes) {
        ssize_t n = read(STDIN_FILENO, at + done, n_bytes - done);
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
        ssize_t n = write(STDOUT_FILENO, at + done, n_bytes - done);
        if (n <= 0) {
            colibri_port_exit(2);
        }
        done += (size_t)n;
    }
}

uint64_t colibri_port_cycles(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const void *colibri_port_weights(size_t *n_bytes)
{
    *n_bytes = weights_bytes;
    return weights;
}

void colibri_port_exit(int status)
{
    _exit(status); /* a fault's handler comes here too: no atexit functions */
}

static void map_weights(const char *path)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0 || status.st_size <= 0) {
        perror(path);
        colibri_port_exit(2);
    }
    void *mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        perror(path);
        colibri_port_exit(2);
    }
    (void)close(file);
    weights = mapped;
    weights_bytes = (size_t)status.st_size;
}

int main(int argc, char **argv)
{
    if (argc > 2) {
        (void)fprintf(stderr, "usage: %s [model.bin] <request >response\n", argv[0]);
        return 2;
    }
    colibri_port_init();
    if (argc == 2) {
        map_weights(argv[1]);
    }
    colibri_port_exit(colibri_app());
}
