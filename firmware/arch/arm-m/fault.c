/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M: every exception ends here, since no interrupt is enabled: say what and where, and stop. */
#include <stdint.h>

#include "../fault.h"
#include "console.h"

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

static void note_hex(const char *name, uint32_t value)
{
    char text[9]; /* in pieces, since the handler's stack is small */
    for (unsigned i = 0; i < 8; i++) {
        uint32_t digit = value >> 28;
        text[i] = (char)(digit < 10 ? '0' + digit : 'a' + digit - 10);
        value <<= 4;
    }
    text[8] = 0;
    colibri_console_note(name);
    colibri_console_note(text);
}

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
    note_hex(", pc 0x", pc);
    note_hex(" lr 0x", lr);
    note_hex(" status 0x", cfsr);
    note_hex(" at 0x", address);
    colibri_console_note("\n");
    colibri_fault_report(kind, pc, cfsr != 0 ? cfsr : HFSR, address);
}
