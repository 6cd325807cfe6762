/* SPDX-License-Identifier: Apache-2.0 */
/* AArch64: every exception ends here, since no interrupt is enabled: say what and where, and stop. */
#include <stdint.h>

#include "../console.h"
#include "../fault.h"

/* Given by the linker script. */
extern const unsigned char __colibri_guard_start[], __colibri_stack_bottom[];

COLIBRI_NORETURN void colibri_fault(uint64_t syndrome, uintptr_t pc, uintptr_t address, uintptr_t link);

enum { UNDEFINED = 0x00, INSTRUCTION_ABORT = 0x21, PC_ALIGNMENT = 0x22, DATA_ABORT = 0x25, SP_ALIGNMENT = 0x26, SERROR = 0x2f };

static const char *name_of(uint32_t kind, uintptr_t address)
{
    if (kind == DATA_ABORT && address >= (uintptr_t)__colibri_guard_start && address < (uintptr_t)__colibri_stack_bottom) {
        return "stack overflow";
    }
    switch (kind) {
    case UNDEFINED: return "undefined instruction";
    case INSTRUCTION_ABORT: return "instruction abort";
    case PC_ALIGNMENT: return "misaligned program counter";
    case DATA_ABORT: return "data abort";
    case SP_ALIGNMENT: return "misaligned stack pointer";
    case SERROR: return "SError";
    default: return "unexpected exception";
    }
}

void colibri_fault(uint64_t syndrome, uintptr_t pc, uintptr_t address, uintptr_t link)
{
    uint32_t kind = (uint32_t)(syndrome >> 26) & 63u;
    if (kind != INSTRUCTION_ABORT && kind != PC_ALIGNMENT && kind != DATA_ABORT) {
        address = 0; /* the register holds that of an earlier one */
    }
    colibri_console_note("colibri: ");
    colibri_console_note(name_of(kind, address));
    colibri_console_note_hex(", pc 0x", pc);
    colibri_console_note_hex(" lr 0x", link);
    colibri_console_note_hex(" status 0x", (uintptr_t)syndrome);
    colibri_console_note_hex(" at 0x", address);
    colibri_console_note("\n");
    colibri_fault_report(kind, pc, (uint32_t)syndrome, address);
}
