/* SPDX-License-Identifier: Apache-2.0 */
/* Bare metal with a linker script: the C part of start-up. */
#include "bare.h"

#include <stdint.h>

/* Given by the linker script. */
extern uint32_t __colibri_bss_start[], __colibri_bss_end[];
extern const unsigned char __colibri_weights_start[], __colibri_weights_end[];

void colibri_bare_start(void)
{
    for (uint32_t *word = __colibri_bss_start; word < __colibri_bss_end; word++) {
        *word = 0;
    }
    colibri_bare_protect();
    colibri_port_init();
    colibri_port_exit(colibri_app());
}

const void *colibri_port_weights(size_t *n_bytes)
{
    *n_bytes = (size_t)((uintptr_t)__colibri_weights_end - (uintptr_t)__colibri_weights_start);
    return *n_bytes == 0 ? NULL : __colibri_weights_start;
}
