/* SPDX-License-Identifier: Apache-2.0 */
/* An application that needs no engine, to test a board: each request is one small misdeed or an echo. */
#include <stddef.h>
#include <stdint.h>

#include <colibri/port.h>

#include "frames.h"

/* Symbols that the tests look up: where a fault must be reported, and what the plugin counts between. */
void echo_fault_here(volatile uint32_t *address);
uint32_t echo_recurse(uint32_t depth);
void echo_begin(void);
void echo_end(void);
uint32_t echo_spin(uint32_t n_rounds);

/* What a test links in addition replaces this. */
void echo_extra(void);
__attribute__((weak)) void echo_extra(void)
{
}

static uint8_t payload[256];

__attribute__((noinline)) void echo_fault_here(volatile uint32_t *address)
{
    *address = 1;
}

__attribute__((noinline)) uint32_t echo_recurse(uint32_t depth)
{
    volatile uint8_t room[64];
    room[depth & 63u] = (uint8_t)depth;
    return depth == 0 ? 0 : echo_recurse(depth + 1) + room[depth & 63u];
}

__attribute__((noinline)) void echo_begin(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void echo_end(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) uint32_t echo_spin(uint32_t n_rounds)
{
    uint32_t x = 1;
    for (uint32_t i = 0; i < n_rounds; i++) {
        x = x * 1664525u + 1013904223u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static void answer(char type, const void *from, size_t n_bytes)
{
    uint32_t crc = colibri_frame_begin(type, (uint32_t)n_bytes);
    colibri_frame_end(colibri_frame_write(crc, from, n_bytes));
}

static void answer_u32(char type, uint32_t value)
{
    colibri_frame_end(colibri_frame_write_u32(colibri_frame_begin(type, 4), value));
}

static uint32_t weights_crc(void)
{
    size_t n_bytes;
    const void *weights = colibri_port_weights(&n_bytes);
    return ~colibri_crc32_update(COLIBRI_CRC32_INIT, weights, n_bytes);
}

int colibri_app(void)
{
    colibri_request_t request;
    while (colibri_request_begin(&request) == 0) {
        uint32_t n_bytes = request.left_bytes;
        if (n_bytes > sizeof payload) {
            return 10;
        }
        colibri_request_read(&request, payload, n_bytes);
        if (colibri_request_end(&request) != 0) {
            return 11;
        }
        uint32_t argument = 0;
        for (unsigned i = 0; i < 4 && i < n_bytes; i++) {
            argument |= (uint32_t)payload[i] << (8 * i);
        }
        switch (request.type) {
        case 'e': answer('e', payload, n_bytes); break;
        case 'w': answer_u32('w', weights_crc()); break;
        case 'f': echo_fault_here((volatile uint32_t *)(uintptr_t)argument); break;
        case 'p': { /* a write into the middle of the weights, in the middle of a frame */
            size_t weights_bytes;
            const void *weights = colibri_port_weights(&weights_bytes);
            (void)colibri_frame_begin('e', 100);
            echo_fault_here((volatile uint32_t *)((uintptr_t)weights + 64));
            break;
        }
        case 's': answer_u32('s', echo_recurse(1)); break;
        case 'j': ((void (*)(void))((uintptr_t)payload | argument))(); break;
        case 'h':
            for (;;) {
                __asm__ volatile("" ::: "memory");
            }
        case 'x': return (int)argument;
        case 't': (void)colibri_frame_begin('e', 100); return 0;
        case 'g': colibri_port_write("Hello, world", 12); return 0;
        case 'r': colibri_frame_end(colibri_frame_begin('e', 0) ^ 1u); break;
        case 'n': {
            echo_begin();
            uint32_t x = echo_spin(argument);
            echo_end();
            answer_u32('n', x);
            break;
        }
        case 'c': {
            uint64_t before = colibri_port_cycles();
            uint32_t x = echo_spin(argument);
            uint64_t after = colibri_port_cycles();
            uint32_t crc = colibri_frame_begin('c', 12);
            crc = colibri_frame_write_u64(crc, after - before);
            colibri_frame_end(colibri_frame_write_u32(crc, x));
            break;
        }
        case 'k': echo_extra(); break;
        case 'E': return 0;
        default: return 12;
        }
    }
    return 13;
}
