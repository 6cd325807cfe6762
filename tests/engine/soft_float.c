/* SPDX-License-Identifier: Apache-2.0 */
/* The integer fma and square root against the host's instructions: every combination of special values, then random ones, many of
 * them close to cancellation, to a tie or to the subnormals. Any NaN equals any NaN.
 */
#define COLIBRI_SOFT_FMA 1
#include <stdio.h>

#include "kernels/portable/fma.c"
#include "kernels/portable/sqrt.c"

static uint64_t seed = 88172645463325252u;

static uint64_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static long n_checked;
static long n_wrong;

static void check(float got, float expected, float a, float b, float c)
{
    int both_nan = colibri_magnitude(got) > 0x7f800000u && colibri_magnitude(expected) > 0x7f800000u;
    n_checked++;
    if (!both_nan && colibri_bits(got) != colibri_bits(expected) && n_wrong++ < 10) {
        printf("%08x %08x %08x: %08x, not %08x\n", colibri_bits(a), colibri_bits(b), colibri_bits(c), colibri_bits(got),
               colibri_bits(expected));
    }
}

static void check_fma(uint32_t a_bits, uint32_t b_bits, uint32_t c_bits)
{
    float a = colibri_from_bits(a_bits);
    float b = colibri_from_bits(b_bits);
    float c = colibri_from_bits(c_bits);
    check(colibri_fma_portable(a, b, c), __builtin_fmaf(a, b, c), a, b, c);
}

static void check_sqrt(uint32_t bits)
{
    float a = colibri_from_bits(bits);
    check(colibri_sqrt_portable(a), __builtin_sqrtf(a), a, 0, 0);
}

int main(void)
{
    static const uint32_t special[20] = {0,          1,          2,          0x007fffff, 0x00800000, 0x00800001, 0x3f800000,
                                         0x3f7fffff, 0x3f800001, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x34000000, 0x33800000,
                                         0x00ffffff, 0x4b800000, 0x4b7fffff, 0x1f800000, 0x5f800000, 0x20000000};
    for (uint32_t i = 0; i < 40 * 40 * 40; i++) {
        uint32_t a = i % 40;
        uint32_t b = i / 40 % 40;
        uint32_t c = i / 1600;
        check_fma(special[a / 2] | (a & 1u) << 31, special[b / 2] | (b & 1u) << 31, special[c / 2] | (c & 1u) << 31);
    }
    for (long i = 0; i < 16000000; i++) {
        uint64_t x = next();
        uint64_t y = next();
        uint32_t a = (uint32_t)x;
        uint32_t b = (uint32_t)(x >> 32);
        uint32_t c = (uint32_t)y;
        uint32_t choice = (uint32_t)(y >> 32);
        if (choice & 128u) { /* a of moderate size */
            a = (a & 0x807fffffu) | ((a >> 23 & 63u) + 96u) << 23;
        }
        if ((choice & 0x600u) == 0x200u) { /* few significant bits: exact products and ties */
            a &= 0xffffff00u;
            b &= 0xfffff000u;
        }
        if (choice & 1u) { /* c close to -(a * b), or a few binades away */
            c = colibri_bits(colibri_from_bits(a) * colibri_from_bits(b)) ^ 0x80000000u;
            c += (choice >> 1 & 7u) - 3u;
            c += choice & 16u ? (choice >> 12 & 31u) << 23 : 0u;
            c -= choice & 32u ? (choice >> 17 & 31u) << 23 : 0u;
            c ^= choice & 64u ? 0x80000000u : 0u;
        }
        if ((choice & 0x1800u) == 0x1800u) { /* two or three significant bits each, c 10 binades below to 53 above the product */
            uint32_t exponent = 100u + (a >> 23 & 31u);
            a = exponent << 23 | 1u << (a & 15u) << (a >> 4 & 7u) | (a >> 8 & 1u);
            b = 127u << 23 | 1u << (b & 15u) << (b >> 4 & 7u) | (b >> 8 & 1u);
            c = (c & 0x80000000u) | (exponent - 10u + (c & 63u)) << 23 | (c >> 8 & 1u) | (c >> 9 & 1u) << 22;
        }
        check_fma(a, b, c);
    }
    /* Products 2**47 + d with small d, beside a c whose half ulp is 2**47: almost ties, decided by the last bits. */
    for (uint32_t a = 0x800000u; a < 0x1000000u; a++) {
        uint64_t b = (((uint64_t)1 << 47) + a - 1) / a;
        uint64_t d = a * b - ((uint64_t)1 << 47);
        if (d == 0 || d >= 512 || b >= 0x1000000u) {
            continue;
        }
        for (uint32_t i = 0; i < 32; i++) {
            uint32_t c = (i & 1u) << 31 | (150u - 3u + (i >> 2)) << 23 | (i >> 1 & 1u);
            check_fma(127u << 23 | (a & 0x7fffffu), 126u << 23 | ((uint32_t)b & 0x7fffffu), c);
        }
    }
    for (long i = 0; i < 10000000; i++) {
        check_sqrt(i < 20 ? special[i] : (uint32_t)next());
    }
    printf("%ld checked, %ld differ\n", n_checked, n_wrong);
    return n_wrong != 0;
}
