/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M: every exception ends here, since no interrupt is enabled: say what and where, and stop. */
#include <stdint.h>

#include "../console.h"
#include "../fault.h"

#define REG(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define CFSR REG(0xe000ed28u)
#define HFSR REG(0xe000ed2cu)
#define MMFAR REG(0xe000ed34u)
#define BFAR REG(0xe000ed38u)

#define CFSR_MSTKERR (1u << 4)
#define CFSR_MMARVALID (1u << 7)
#define CFSR_STKERR (1u << 12)
#define CFSR_BFARVALID (1u << 15)
#define CFSR_STKOF (1u << 20)

COLIBRI_NORETURN void colibri_fault(const uint32_t *frame);

static const char *name_of(uint32_t kind, uint32_t cfsr)
{
    if ((cfsr & (CFSR_STKOF | CFSR_STKERR | CFSR_MSTKERR)) != 0) {
        return "stack overflow";
    }
    switch (kind) {
    case 2: return "non-maskable interrupt";
    case 3: return "hard fault";
    case 4: return "memory protection fault";
    case 5: return "bus fault";
    case 6: return "usage fault";
    case 7: return "secure fault";
    default: return "unexpected exception";
    }
}

void colibri_fault(const uint32_t *frame)
{
    uint32_t kind;
    uint32_t pc = 0;
    uint32_t lr = 0;
    uint32_t address = 0;
    uint32_t cfsr = CFSR;
    __asm__ volatile("mrs %0, ipsr" : "=r"(kind));
    if ((cfsr & (CFSR_STKOF | CFSR_STKERR | CFSR_MSTKERR)) == 0) {
        lr = frame[5]; /* otherwise the registers were not saved, and the frame is not there */
        pc = frame[6];
    }
    if ((cfsr & CFSR_MMARVALID) != 0) {
        address = MMFAR;
    } else if ((cfsr & CFSR_BFARVALID) != 0) {
        address = BFAR;
    }
    colibri_console_note("colibri: ");
    colibri_console_note(name_of(kind, cfsr));
    colibri_console_note_hex(", pc 0x", pc);
    colibri_console_note_hex(" lr 0x", lr);
    colibri_console_note_hex(" status 0x", cfsr);
    colibri_console_note_hex(" at 0x", address);
    colibri_console_note("\n");
    colibri_fault_report(kind, pc, cfsr != 0 ? cfsr : HFSR, address);
}
