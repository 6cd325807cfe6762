/* SPDX-License-Identifier: Apache-2.0 */
/* port.h's streams and exit come from one of three files: semihosting.c in simulator builds, uart.c on hardware, linux/port.c. */
#ifndef COLIBRI_CONSOLE_H
#define COLIBRI_CONSOLE_H

#include <stdint.h>

/* A line for a human beside the response stream: standard error in the simulator and on linux, nowhere on hardware. */
void colibri_console_note(const char *text);

/* The same, with a number: both in pieces, since a fault handler's stack is small. In fault.c. */
void colibri_console_note_hex(const char *name, uintptr_t value);

#endif
