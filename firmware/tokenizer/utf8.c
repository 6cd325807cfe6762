/* SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"

/* No overlong form, no surrogate, nothing above U+10FFFF. */
uint32_t colibri_text_char_needs(const uint8_t *bytes, uint32_t n)
{
    uint32_t c = bytes[0];
    if (c < 0x80u) {
        return 1;
    }
    if (c < 0xc2u || c > 0xf4u) {
        return 0;
    }
    if (n > 1) {
        uint32_t low = c == 0xe0u ? 0xa0u : c == 0xf0u ? 0x90u : 0x80u;
        uint32_t high = c == 0xedu ? 0x9fu : c == 0xf4u ? 0x8fu : 0xbfu;
        if (bytes[1] < low || bytes[1] > high) {
            return 0;
        }
    }
    uint32_t needs = c < 0xe0u ? 2 : c < 0xf0u ? 3 : 4;
    for (uint32_t i = 2; i < n && i < needs; i++) {
        if ((bytes[i] & 0xc0u) != 0x80u) {
            return 0;
        }
    }
    return needs;
}

uint32_t colibri_text_is_utf8(colibri_text_span_t text)
{
    uint32_t at = 0;
    while (at < text.n) {
        uint32_t needs = colibri_text_char_needs(text.bytes + at, text.n - at);
        if (needs == 0 || needs > text.n - at) {
            return 0;
        }
        at += needs;
    }
    return 1;
}
