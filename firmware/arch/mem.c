/* SPDX-License-Identifier: Apache-2.0 */
/* The four functions a compiler may call at any time, for boards without a libc.
 *
 * Compile with -fno-builtin and, for GCC, -fno-tree-loop-distribute-patterns: otherwise the compiler recognises these loops as
 * memcpy and memset and makes them call themselves.
 */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n_bytes);
void *memmove(void *to, const void *from, size_t n_bytes);
void *memset(void *to, int value, size_t n_bytes);
int memcmp(const void *a, const void *b, size_t n_bytes);

/* Words where both ends are aligned: KV rows and states are, and they are the only long copies there are. */
static int both_aligned(const void *a, const void *b)
{
    return (((uintptr_t)a | (uintptr_t)b) & 3u) == 0;
}

typedef uint32_t __attribute__((may_alias)) word_t;

void *memcpy(void *restrict to, const void *restrict from, size_t n_bytes)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    if (both_aligned(to, from)) {
        for (; n_bytes >= 4; n_bytes -= 4, t += 4, f += 4) {
            *(word_t *)(void *)t = *(const word_t *)(const void *)f;
        }
    }
    while (n_bytes-- > 0) {
        *t++ = *f++;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t n_bytes)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    if ((uintptr_t)t - (uintptr_t)f >= n_bytes) {
        while (n_bytes-- > 0) {
            *t++ = *f++;
        }
    } else {
        while (n_bytes-- > 0) {
            t[n_bytes] = f[n_bytes];
        }
    }
    return to;
}

void *memset(void *to, int value, size_t n_bytes)
{
    uint8_t *t = to;
    if (((uintptr_t)to & 3u) == 0) {
        word_t word = (uint8_t)value * 0x01010101u;
        for (; n_bytes >= 4; n_bytes -= 4, t += 4) {
            *(word_t *)(void *)t = word;
        }
    }
    while (n_bytes-- > 0) {
        *t++ = (uint8_t)value;
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t n_bytes)
{
    const uint8_t *x = a;
    const uint8_t *y = b;
    for (size_t i = 0; i < n_bytes; i++) {
        if (x[i] != y[i]) {
            return x[i] < y[i] ? -1 : 1;
        }
    }
    return 0;
}
