/* SPDX-License-Identifier: Apache-2.0 */
/* For echo.c's request 'k': 1,000 products and sums of ordinary size, between two symbols that are counted at; then the same loop
 * without them, between two more. The test builds it behind the lines that name the engine's files.
 */
void echo_extra(void);
void cost_begin(void);
void cost_end(void);
void frame_begin(void);
void frame_end(void);

#define MARK(name)                            \
    __attribute__((noinline)) void name(void) \
    {                                         \
        __asm__ volatile("" ::: "memory");    \
    }
MARK(cost_begin)
MARK(cost_end)
MARK(frame_begin)
MARK(frame_end)

static volatile uint32_t result;

/* Either sign, 2**-3 <= magnitude < 2. */
static float draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return colibri_from_bits((*seed & 0x807fffffu) | (124u + (*seed >> 24 & 3u)) << 23);
}

void echo_extra(void)
{
    uint32_t seed = 1;
    float sum = 0.0f;
    cost_begin();
    for (uint32_t i = 0; i < 1000; i++) {
        float a = draw(&seed);
        sum = colibri_fma_portable(a, draw(&seed), sum);
    }
    cost_end();
    result = colibri_bits(sum);
    uint32_t bits = 0;
    frame_begin();
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t a = colibri_bits(draw(&seed));
        bits += a ^ colibri_bits(draw(&seed));
    }
    frame_end();
    result = bits;
}
