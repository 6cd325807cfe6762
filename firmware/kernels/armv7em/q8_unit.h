/* SPDX-License-Identifier: Apache-2.0 */
/* Eight columns of four rows: 27 instructions for 32 products, 108 bytes.
 *
 *   r0       weights          r5   x, two int16 a word
 *   r1, r3   sums of 256 * odd row + even row       r2, r4   sums of the even row
 *   r6-r9    weights, each halfword 256 * odd row + even row; then the even row alone
 *   r10-r12, lr   x
 */
#define Q8_UNIT_BYTES 108

.macro Q8_COLUMNS2 w01, w23, x
    smlad r1, \w01, \x, r1
    smlad r3, \w23, \x, r3
    sxtb16 \w01, \w01
    sxtb16 \w23, \w23
    smlad r2, \w01, \x, r2
    smlad r4, \w23, \x, r4
.endm

.macro Q8_UNIT
    ldm r0!, {r6-r9}
    ldm r5!, {r10, r11, r12, lr}
    Q8_COLUMNS2 r6, r7, r10
    Q8_COLUMNS2 r8, r9, r11
    ldm r0!, {r6-r9}
    Q8_COLUMNS2 r6, r7, r12
    Q8_COLUMNS2 r8, r9, lr
.endm
