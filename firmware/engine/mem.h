/* SPDX-License-Identifier: Apache-2.0 */
/* The memory functions a freestanding toolchain must find somewhere (firmware/arch/mem.c, or a libc). Declared here because a
 * compiler without a libc has no string.h.
 */
#ifndef COLIBRI_MEM_H
#define COLIBRI_MEM_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t n_bytes);
void *memset(void *to, int byte, size_t n_bytes);
int memcmp(const void *a, const void *b, size_t n_bytes);

#endif
