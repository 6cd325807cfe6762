/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzzer's bytes as decisions: how valid bytes are spoilt. After the last byte every decision is 0. */
#ifndef COLIBRI_FUZZ_SPOIL_H
#define COLIBRI_FUZZ_SPOIL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends with a report where a property does not hold. */
#define REQUIRE(holds)                                                                                                                     \
    do {                                                                                                                                   \
        if (!(holds)) {                                                                                                                    \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds);                                                     \
            abort();                                                                                                                       \
        }                                                                                                                                  \
    } while (0)

typedef struct choices {
    const uint8_t *bytes;
    size_t n;
} choices_t;

static inline uint32_t take(choices_t *c, size_t n)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++) {
        value |= (uint32_t)(c->n > 0 ? c->bytes[0] : 0) << 8 * i;
        c->bytes += c->n > 0;
        c->n -= c->n > 0;
    }
    return value;
}

static inline uint32_t below(choices_t *c, uint32_t n)
{
    uint32_t value = take(c, n <= 256 ? 1 : n <= 65536 ? 2 : 4);
    return n == 0 ? 0 : value % n;
}

/* A word that hurts, or any. */
static inline uint32_t odd_word(choices_t *c)
{
    static const uint32_t words[] = {
        0, 1, 2, 3, 7, 8, 9, 16, 63, 64, 127, 128, 255, 256, 0xffffu, 0x10000u, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu,
        0x7f800000u /* inf */, 0xff800000u, 0x7fc00000u /* NaN */, 0x7f7fffffu, 0x00000001u, 0x58800000u /* 2**50 */, 0x587fffffu,
        0xd8800000u, 0x3f800000u, 0xbf800000u, 0x2b000000u /* 2**-41 */, 0x49800000u /* 2**20 */, 0x80808080u, 0x7f7f7f7fu, 0x88888888u,
    };
    uint32_t i = below(c, 64);
    return i < sizeof words / sizeof *words ? words[i] : take(c, 4);
}

/* Some words of bytes [first, end) replaced; both multiples of 4. */
static inline void spoil(choices_t *c, uint8_t *bytes, uint32_t first, uint32_t end)
{
    const uint32_t n = (end - first) / 4;
    uint8_t *at = bytes + first + 4 * below(c, n);
    uint32_t word;
    switch (below(c, 5)) {
    case 0:
        at[below(c, 4)] = (uint8_t)take(c, 1);
        return;
    case 1: /* one more or less */
        memcpy(&word, at, 4);
        word += below(c, 2) ? 1u : 0xffffffffu;
        memcpy(at, &word, 4);
        return;
    case 2: /* another place's */
        memcpy(at, bytes + first + 4 * below(c, n), 4);
        return;
    case 3: { /* many */
        word = odd_word(c);
        for (uint32_t left = 1 + below(c, 256); left > 0 && at < bytes + end; left--, at += 4) {
            memcpy(at, &word, 4);
        }
        return;
    }
    default:
        word = odd_word(c);
        memcpy(at, &word, 4);
    }
}

/* A file's bytes, and how many. */
static inline uint8_t *read_file(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    REQUIRE(file != NULL && fseek(file, 0, SEEK_END) == 0);
    *n = (size_t)ftell(file);
    uint8_t *bytes = malloc(*n);
    rewind(file);
    REQUIRE(bytes != NULL && fread(bytes, 1, *n, file) == *n);
    fclose(file);
    return bytes;
}

/* Memory of just n bytes, so that the byte behind them is not ours. */
static inline void *exactly(size_t alignment, size_t n)
{
    void *memory = NULL;
    REQUIRE(posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, n > 0 ? n : 1) == 0);
    return memory;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#endif
