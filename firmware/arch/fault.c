/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include "console.h"
#include "frames.h"

void colibri_console_note_hex(const char *name, uintptr_t value)
{
    char text[2 * sizeof value + 1];
    for (unsigned i = 0; i < 2 * sizeof value; i++) {
        unsigned digit = (unsigned)(value >> (8 * sizeof value - 4));
        text[i] = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
        value <<= 4;
    }
    text[sizeof text - 1] = 0;
    colibri_console_note(name);
    colibri_console_note(text);
}

static uint32_t write_pointer(uint32_t crc, uintptr_t value)
{
#if UINTPTR_MAX > 0xffffffffu
    return colibri_frame_write_u64(crc, value);
#else
    return colibri_frame_write_u32(crc, value);
#endif
}

void colibri_fault_report(uint32_t kind, uintptr_t pc, uint32_t status, uintptr_t address)
{
    uint32_t crc = colibri_frame_begin('X', 8u + 2u * (uint32_t)sizeof(uintptr_t));
    crc = colibri_frame_write_u32(crc, kind);
    crc = write_pointer(crc, pc);
    crc = colibri_frame_write_u32(crc, status);
    crc = write_pointer(crc, address);
    colibri_frame_end(crc);
    colibri_port_exit(3);
}
