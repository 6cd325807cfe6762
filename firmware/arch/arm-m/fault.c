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

#if defined(__ARM_ARCH_6M__)

extern const uint32_t __colibri_stack_bottom[]; /* given by the linker script */

/* ARMv6-M has one fault and no register that says why: an overflow is seen by where the stack points, and told as STKERR. */
static uint32_t fault_status(const uint32_t *frame)
{
    return (uintptr_t)frame < (uintptr_t)__colibri_stack_bottom ? CFSR_STKERR : 0;
}

static uint32_t fault_address(uint32_t status)
{
    (void)status;
    return 0;
}

static uint32_t hard_fault_status(void)
{
    return 0;
}

#else

static uint32_t fault_status(const uint32_t *frame)
{
    (void)frame;
    return CFSR;
}

static uint32_t fault_address(uint32_t status)
{
    if ((status & CFSR_MMARVALID) != 0) {
        return MMFAR;
    }
    return (status & CFSR_BFARVALID) != 0 ? BFAR : 0;
}

static uint32_t hard_fault_status(void)
{
    return HFSR;
}

#endif

static const char *name_of(uint32_t kind, uint32_t status)
{
    if ((status & (CFSR_STKOF | CFSR_STKERR | CFSR_MSTKERR)) != 0) {
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
    uint32_t status = fault_status(frame);
    __asm__ volatile("mrs %0, ipsr" : "=r"(kind));
    if ((status & (CFSR_STKOF | CFSR_STKERR | CFSR_MSTKERR)) == 0) {
        lr = frame[5]; /* otherwise the registers were not saved, and the frame is not there */
        pc = frame[6];
    }
    uint32_t address = fault_address(status);
    colibri_console_note("colibri: ");
    colibri_console_note(name_of(kind, status));
    colibri_console_note_hex(", pc 0x", pc);
    colibri_console_note_hex(" lr 0x", lr);
    colibri_console_note_hex(" status 0x", status);
    colibri_console_note_hex(" at 0x", address);
    colibri_console_note("\n");
    colibri_fault_report(kind, pc, status != 0 ? status : hard_fault_status(), address);
}
