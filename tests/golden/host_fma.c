/* SPDX-License-Identifier: Apache-2.0
 * The processor's own fused multiply-add, for test_fma.py. */
#include <math.h>
#include <stddef.h>

#if defined(__x86_64__) || defined(__i386__)
#define USE_FMA __attribute__((target("fma")))
int has_fma(void) { return __builtin_cpu_supports("fma") != 0; }
#elif defined(__aarch64__) || (defined(__riscv) && defined(__riscv_flen))
#define USE_FMA
int has_fma(void) { return 1; }
#else
#define USE_FMA
int has_fma(void) { return 0; }
#endif

USE_FMA void fma_each(const float *a, const float *b, const float *c, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
}
