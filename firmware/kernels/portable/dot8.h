/* SPDX-License-Identifier: Apache-2.0 */
/* dot8 of docs/NUMERICS.md, section 4: eight lanes, combined at the end. The order of every addition is part of the contract.
 *
 * Eight named accumulators, not an array: they stay in registers (GCC keeps an array in memory below -O3).
 */
#ifndef COLIBRI_DOT8_H
#define COLIBRI_DOT8_H

#include "../kernels.h"

#define COLIBRI_DOT8_BEGIN                                                                                            \
    float lane0 = 0.0f, lane1 = 0.0f, lane2 = 0.0f, lane3 = 0.0f, lane4 = 0.0f, lane5 = 0.0f, lane6 = 0.0f, lane7 = 0.0f

/* Elements i to i + 7: a(i) and b(i) are expressions. */
#define COLIBRI_DOT8_STEP(a, b, i)                      \
    do {                                                \
        lane0 = colibri_fma(a((i)), b((i)), lane0);         \
        lane1 = colibri_fma(a((i) + 1), b((i) + 1), lane1); \
        lane2 = colibri_fma(a((i) + 2), b((i) + 2), lane2); \
        lane3 = colibri_fma(a((i) + 3), b((i) + 3), lane3); \
        lane4 = colibri_fma(a((i) + 4), b((i) + 4), lane4); \
        lane5 = colibri_fma(a((i) + 5), b((i) + 5), lane5); \
        lane6 = colibri_fma(a((i) + 6), b((i) + 6), lane6); \
        lane7 = colibri_fma(a((i) + 7), b((i) + 7), lane7); \
    } while (0)

/* The last n - i elements, 1 to 7. */
#define COLIBRI_DOT8_TAIL(a, b, i, n)                             \
    do {                                                          \
        lane0 = colibri_fma(a((i)), b((i)), lane0);               \
        if ((i) + 1 < (n)) {                                      \
            lane1 = colibri_fma(a((i) + 1), b((i) + 1), lane1);   \
        }                                                         \
        if ((i) + 2 < (n)) {                                      \
            lane2 = colibri_fma(a((i) + 2), b((i) + 2), lane2);   \
        }                                                         \
        if ((i) + 3 < (n)) {                                      \
            lane3 = colibri_fma(a((i) + 3), b((i) + 3), lane3);   \
        }                                                         \
        if ((i) + 4 < (n)) {                                      \
            lane4 = colibri_fma(a((i) + 4), b((i) + 4), lane4);   \
        }                                                         \
        if ((i) + 5 < (n)) {                                      \
            lane5 = colibri_fma(a((i) + 5), b((i) + 5), lane5);   \
        }                                                         \
        if ((i) + 6 < (n)) {                                      \
            lane6 = colibri_fma(a((i) + 6), b((i) + 6), lane6);   \
        }                                                         \
    } while (0)

#define COLIBRI_DOT8_END (((lane0 + lane4) + (lane2 + lane6)) + ((lane1 + lane5) + (lane3 + lane7)))

#endif
