/* SPDX-License-Identifier: Apache-2.0 */
/* A program without a libc for user-mode QEMU: init, then one call of COUNT_IDS tokens. The marks are where the host notes the
 * number of instructions executed.
 */
#include "colibri/colibri.h"
#include "colibri/port.h"

#if defined(__riscv)
#define EXIT(code) \
    __asm__ volatile("mv a0, %0\n\tli a7, 93\n\tecall" : : "r"(code) : "a0", "a7")
#else
#define EXIT(code) __asm__ volatile("mov r0, %0\n\tmov r7, #1\n\tsvc #0" : : "r"(code) : "r0", "r7")
#endif

extern const uint8_t test_image[];
void mark_init(void);
void mark_state(void);
void mark_forward(void);
void mark_end(void);
void _start(void);

#define MARK(name) \
    __attribute__((noinline)) void name(void) { __asm__ volatile("" : : : "memory"); }
MARK(mark_init)
MARK(mark_state)
MARK(mark_forward)
MARK(mark_end)

__asm__(".section .rodata\n\t.balign 64\n\t.globl test_image\ntest_image:\n\t.incbin \"image.bin\"\n\t.previous\n");

static colibri_state_t state;
static float logits[COLIBRI_VOCAB_SIZE];
static const int32_t ids[] = COUNT_IDS;

uint64_t colibri_port_cycles(void) { return 0; }

void *memset(void *to, int byte, size_t n_bytes) {
    volatile uint8_t *bytes = to;
    for (size_t i = 0; i < n_bytes; i++) {
        bytes[i] = (uint8_t)byte;
    }
    return to;
}

void *memcpy(void *to, const void *from, size_t n_bytes) {
    volatile uint8_t *bytes = to;
    for (size_t i = 0; i < n_bytes; i++) {
        bytes[i] = ((const uint8_t *)from)[i];
    }
    return to;
}

int memcmp(const void *a, const void *b, size_t n_bytes) {
    for (size_t i = 0; i < n_bytes; i++) {
        if (((const volatile uint8_t *)a)[i] != ((const uint8_t *)b)[i]) {
            return 1;
        }
    }
    return 0;
}

void _start(void) {
    colibri_model_t model;
    mark_init();
    int32_t status = colibri_init(&model, test_image, COLIBRI_IMAGE_BYTES, 0);
    mark_state();
    if (status == COLIBRI_OK) {
        status = colibri_state_init(&state, &model);
    }
    mark_forward();
    if (status == COLIBRI_OK) {
        status = colibri_forward(&model, &state, ids, sizeof(ids) / sizeof(ids[0]), logits, NULL);
    }
    mark_end();
    EXIT(status);
}
