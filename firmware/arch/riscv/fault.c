/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V: every trap ends here, since no interrupt is enabled: say what and where, and stop. */
#include <stdint.h>

#include "../console.h"
#include "../fault.h"

/* Given by the linker script. */
extern const unsigned char __colibri_guard_start[], __colibri_stack_bottom[];

COLIBRI_NORETURN void colibri_fault(uintptr_t cause, uintptr_t pc, uintptr_t status, uintptr_t address);

static const char *name_of(uintptr_t cause, uintptr_t address)
{
    static const char *const names[] = {
        "instruction address misaligned", "instruction access fault", "illegal instruction",      "breakpoint",
        "load address misaligned",        "load access fault",        "store address misaligned", "store access fault",
    };
    if ((cause == 5 || cause == 7) && address >= (uintptr_t)__colibri_guard_start && address < (uintptr_t)__colibri_stack_bottom) {
        return "stack overflow";
    }
    return cause < sizeof names / sizeof names[0] ? names[cause] : "unexpected trap";
}

void colibri_fault(uintptr_t cause, uintptr_t pc, uintptr_t status, uintptr_t address)
{
    colibri_console_note("colibri: ");
    colibri_console_note(name_of(cause, address));
    colibri_console_note_hex(", pc 0x", pc);
    colibri_console_note_hex(" cause 0x", cause);
    colibri_console_note_hex(" status 0x", status);
    colibri_console_note_hex(" at 0x", address);
    colibri_console_note("\n");
    colibri_fault_report((uint32_t)cause, pc, (uint32_t)status, address);
}
