/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include "frames.h"

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
