/* SPDX-License-Identifier: Apache-2.0 */
/* What a board owes to the applications: six functions. Of these the engine itself needs only colibri_port_cycles, for cycle_count.
 *
 * A new board implements these, calls colibri_app() once memory and the FPU are ready, and passes its result to
 * colibri_port_exit(). None of them allocates. None may be called from an interrupt or from two tasks at once. A pointer
 * MUST be valid for its byte count; NULL is allowed only with a count of 0.
 */
#ifndef COLIBRI_PORT_H
#define COLIBRI_PORT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__cplusplus)
#define COLIBRI_NORETURN [[noreturn]]
#else
#define COLIBRI_NORETURN _Noreturn
#endif

/* Open the console and start the counter. Called once, before every other function here and before colibri_app().
 * Does not return when the console cannot be opened: it ends as colibri_port_exit(2) does.
 */
void colibri_port_init(void);

/* Read exactly n_bytes from the request stream, waiting for them.
 *
 * Writes     to[0 .. n_bytes-1].
 * Returns    n_bytes, or fewer where the stream ended (simulator, linux); a UART never ends.
 */
size_t colibri_port_read(void *to, size_t n_bytes);

/* Write n_bytes to the response stream. When it returns, they are on their way and need no flush.
 * A stream that no longer takes bytes ends the program: colibri_port_exit(2).
 */
void colibri_port_write(const void *from, size_t n_bytes);

/* A counter that only rises, from an unspecified start.
 *
 * Unit       hardware: clock cycles of the core (Cortex-M: DWT.CYCCNT, extended to 64 bits; RISC-V: mcycle; AArch64:
 *            PMCCNTR). Simulator builds: ticks of the board's timer (RISC-V: minstret, AArch64: the generic timer), which
 *            measure instructions only when QEMU runs with -icount, and host time otherwise.
 *            linux: nanoseconds of CLOCK_MONOTONIC.
 * Ranges     Cortex-M's counters have 32 bits: call at least once in 2^32 ticks, or a wrap is lost.
 * COST       a few loads.
 */
uint64_t colibri_port_cycles(void);

/* Find the packed weights.
 *
 * Writes     *n_bytes: their size; 0 where this program was linked or started without weights.
 * Returns    their address, 64-byte aligned; not NULL unless *n_bytes is 0. They are readable until the program ends, and not writable.
 */
const void *colibri_port_weights(size_t *n_bytes);

/* End the program. 0: success; 2: the console failed; 3: a fault was reported; others are the application's.
 * On hardware there is nobody to tell: 0 starts again, for the next session; others wait for ever with the core asleep.
 */
COLIBRI_NORETURN void colibri_port_exit(int status);

/* The application, implemented in firmware/apps/: the port calls it and exits with its result. */
int colibri_app(void);

#ifdef __cplusplus
}
#endif

#endif
