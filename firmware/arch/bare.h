/* SPDX-License-Identifier: Apache-2.0 */
/* What an architecture owes to bare.c, which takes it from reset to colibri_app(). */
#ifndef COLIBRI_BARE_H
#define COLIBRI_BARE_H

#include <colibri/port.h>

/* Where the reset code goes once there is a stack and the FPU is on. .bss is not yet zero. */
COLIBRI_NORETURN void colibri_bare_start(void);

/* Make the board's regions what its description says: weights and code read-only, RAM not executable, the guard below the stack
 * without access. Called once .bss is zero.
 */
void colibri_bare_protect(void);

#endif
