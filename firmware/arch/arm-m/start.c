/* SPDX-License-Identifier: Apache-2.0 */
/* Cortex-M: from reset to colibri_app(). */
#include <stddef.h>
#include <stdint.h>

#include <colibri/port.h>

/* Given by the linker script. */
extern uint32_t __colibri_bss_start[], __colibri_bss_end[];
extern const uint32_t __colibri_mpu_start[], __colibri_mpu_end[];
extern const unsigned char __colibri_weights_start[], __colibri_weights_end[];

COLIBRI_NORETURN void colibri_start(void);

#define REG(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define SHCSR REG(0xe000ed24u)
#define CPACR REG(0xe000ed88u)
#define MPU_CTRL REG(0xe000ed94u)
#define MPU_RNR REG(0xe000ed98u)
#define MPU_RBAR REG(0xe000ed9cu)
#define MPU_RASR REG(0xe000eda0u) /* RLAR on ARMv8-M */
#define MPU_MAIR0 REG(0xe000edc0u)
#define FPCCR REG(0xe000ef34u)

static void barrier(void)
{
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

/* The regions come as register pairs in the linker script, from the board's description: weights and code read-only, RAM not
 * executable, and on ARMv7-M a region without access below the stack. The default map stays for peripherals.
 */
static void mpu_enable(void)
{
    uint32_t n_regions = 0;
    for (const uint32_t *pair = __colibri_mpu_start; pair < __colibri_mpu_end; pair += 2) {
        MPU_RNR = n_regions;
        MPU_RBAR = pair[0];
        MPU_RASR = pair[1];
        n_regions++;
    }
    if (n_regions > 0) {
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__) || defined(__ARM_ARCH_8M_BASE__)
        MPU_MAIR0 = 0xffu; /* attribute 0: normal memory, write-back */
#endif
        MPU_CTRL = 5u; /* enable, default map for privileged code */
        barrier();
    }
}

void colibri_start(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    CPACR |= 0xfu << 20;
    /* Registers of the FPU are not saved on exceptions: the only handler ends the program. So a frame is 32 bytes. */
    FPCCR &= ~(3u << 30);
    barrier();
#endif
#if !defined(__ARM_ARCH_6M__)
    SHCSR |= 7u << 16; /* memory, bus and usage faults apart from the hard fault */
#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
    SHCSR |= 1u << 19; /* secure fault */
#endif
#endif
    for (uint32_t *word = __colibri_bss_start; word < __colibri_bss_end; word++) {
        *word = 0;
    }
    mpu_enable();
    colibri_port_init();
    colibri_port_exit(colibri_app());
}

const void *colibri_port_weights(size_t *n_bytes)
{
    *n_bytes = (size_t)((uintptr_t)__colibri_weights_end - (uintptr_t)__colibri_weights_start);
    return *n_bytes == 0 ? NULL : __colibri_weights_start;
}
