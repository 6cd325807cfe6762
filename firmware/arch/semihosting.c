/* SPDX-License-Identifier: Apache-2.0 */
/* Simulator builds: the byte streams are files of the host, through semihosting. Empty in every other build.
 *
 * Reads the file request.bin in the simulator's working directory; writes to its standard output. Nothing is buffered here: each
 * call is one write(2) of the host, so a token is seen when it is sampled, and no RAM is spent.
 */
#ifdef COLIBRI_SIMULATOR

#include <stdint.h>

#include <colibri/port.h>

#include "board.h"
#include "console.h"

enum { SYS_OPEN = 0x01, SYS_WRITE0 = 0x04, SYS_WRITE = 0x05, SYS_READ = 0x06, SYS_EXIT_EXTENDED = 0x20 };

/* In semihosting.S of the architecture. */
uintptr_t colibri_semihosting_call(uintptr_t operation, const void *parameter);

static uintptr_t request_handle;
static uintptr_t response_handle;

static uintptr_t open_file(const char *name, uintptr_t name_bytes, uintptr_t mode)
{
    const uintptr_t block[3] = {(uintptr_t)name, mode, name_bytes};
    return colibri_semihosting_call(SYS_OPEN, block);
}

void colibri_port_init(void)
{
    static const char console[] = ":tt";
    static const char request[] = "request.bin";
    colibri_board_init();
    response_handle = open_file(console, sizeof console - 1, 4); /* "w": standard output */
    request_handle = open_file(request, sizeof request - 1, 1);  /* "rb" */
    if (request_handle == UINTPTR_MAX || response_handle == UINTPTR_MAX) {
        colibri_console_note("colibri: cannot open request.bin and standard output; run this ELF with semihosting enabled\n");
        colibri_port_exit(2);
    }
}

size_t colibri_port_read(void *to, size_t n_bytes)
{
    unsigned char *at = to;
    size_t left = n_bytes;
    while (left > 0) {
        const uintptr_t block[3] = {request_handle, (uintptr_t)at, left};
        size_t missing = colibri_semihosting_call(SYS_READ, block); /* how many bytes were not read */
        if (missing >= left) {
            break;
        }
        at += left - missing;
        left = missing;
    }
    return n_bytes - left;
}

void colibri_port_write(const void *from, size_t n_bytes)
{
    const unsigned char *at = from;
    size_t left = n_bytes;
    while (left > 0) {
        const uintptr_t block[3] = {response_handle, (uintptr_t)at, left};
        size_t missing = colibri_semihosting_call(SYS_WRITE, block);
        if (missing >= left) {
            colibri_port_exit(2);
        }
        at += left - missing;
        left = missing;
    }
}

void colibri_console_note(const char *text)
{
    (void)colibri_semihosting_call(SYS_WRITE0, text);
}

void colibri_port_exit(int status)
{
    const uintptr_t block[2] = {0x20026u, (uintptr_t)status}; /* ADP_Stopped_ApplicationExit */
    (void)colibri_semihosting_call(SYS_EXIT_EXTENDED, block);
    for (;;) {
    }
}

#endif

typedef int colibri_semihosting_is_not_empty; /* ISO C forbids an empty translation unit */
