/* SPDX-License-Identifier: Apache-2.0 */
/* port.h's streams, counter and exit come from one of two files: semihosting.c in simulator builds, uart.c on hardware. */
#ifndef COLIBRI_ARM_M_CONSOLE_H
#define COLIBRI_ARM_M_CONSOLE_H

/* A line for a human beside the response stream: standard error in the simulator, nowhere on hardware. */
void colibri_console_note(const char *text);

#endif
