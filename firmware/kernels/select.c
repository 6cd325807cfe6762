/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels this build uses: those that read the image's layout. A kernel set is a folder whose table.h names what it does
 * better; portable/table.h names the rest.
 */
#include "kernels.h"
#include "layouts.h"

#if COLIBRI_KERNEL_LAYOUT == COLIBRI_LAYOUT_ARMV7EM
#if !COLIBRI_ISA_DSP
#error "colibri: the kernel set armv7em needs a core with the DSP extension and an FPU: pack with --kernels portable"
#endif
#include "armv7em/table.h"
#elif COLIBRI_KERNEL_LAYOUT == COLIBRI_LAYOUT_MVE
#if !COLIBRI_ISA_MVE
#error "colibri: the kernel set mve needs a core with MVE of integers and floats: pack with --kernels portable"
#endif
#include "mve/table.h"
#elif COLIBRI_KERNEL_LAYOUT == COLIBRI_LAYOUT_ARMV7M
#if !COLIBRI_ISA_ARMV7M
#error "colibri: the kernel set armv7m needs an ARMv7-M core: pack with --kernels portable"
#endif
#include "armv7m/table.h"
#elif COLIBRI_KERNEL_LAYOUT != COLIBRI_LAYOUT_PORTABLE
#error "colibri: COLIBRI_KERNEL_LAYOUT names no kernel set of this engine; pack and build with the same release"
#endif
#include "portable/table.h"

const colibri_kernels_t colibri_kernels = {
    .layout = COLIBRI_KERNEL_LAYOUT,
#if COLIBRI_USE_F32
    .matvec_f32 = COLIBRI_KERNEL_MATVEC_F32,
    .widen_f32 = COLIBRI_KERNEL_WIDEN_F32,
#endif
#if COLIBRI_USE_BF16
    .matvec_bf16 = COLIBRI_KERNEL_MATVEC_BF16,
    .widen_bf16 = COLIBRI_KERNEL_WIDEN_BF16,
#endif
#if COLIBRI_USE_F16
    .matvec_f16 = COLIBRI_KERNEL_MATVEC_F16,
    .widen_f16 = COLIBRI_KERNEL_WIDEN_F16,
#endif
#if COLIBRI_USE_Q8
    .matvec_q8 = COLIBRI_KERNEL_MATVEC_Q8,
#endif
#if COLIBRI_USE_Q8_GROUP
    .matvec_q8_group = COLIBRI_KERNEL_MATVEC_Q8_GROUP,
#endif
#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP
    .widen_q8 = COLIBRI_KERNEL_WIDEN_Q8,
#endif
#if COLIBRI_USE_Q4
    .matvec_q4 = COLIBRI_KERNEL_MATVEC_Q4,
    .widen_q4 = COLIBRI_KERNEL_WIDEN_Q4,
#endif
    .dot = COLIBRI_KERNEL_DOT,
    .axpy = COLIBRI_KERNEL_AXPY,
    .scale = COLIBRI_KERNEL_SCALE,
    .add = COLIBRI_KERNEL_ADD,
    .normalise = COLIBRI_KERNEL_NORMALISE,
    .absmax = COLIBRI_KERNEL_ABSMAX,
    .softmax = COLIBRI_KERNEL_SOFTMAX,
    .swiglu = COLIBRI_KERNEL_SWIGLU,
    .rotate = COLIBRI_KERNEL_ROTATE,
#if COLIBRI_QUANT_BYTES > 0
    .quantise_vector = COLIBRI_KERNEL_QUANTISE_VECTOR,
#endif
#if COLIBRI_KV_F32
    .scores = COLIBRI_KERNEL_SCORES_F32,
    .mix = COLIBRI_KERNEL_MIX_F32,
#endif
#if COLIBRI_KV_F16
    .scores = COLIBRI_KERNEL_SCORES_F16,
    .mix = COLIBRI_KERNEL_MIX_F16,
    .narrow_f16 = COLIBRI_KERNEL_NARROW_F16,
#endif
#if COLIBRI_KV_Q8
    .scores = COLIBRI_KERNEL_SCORES_Q8,
    .mix = COLIBRI_KERNEL_MIX_Q8,
    .quantise = COLIBRI_KERNEL_QUANTISE,
#endif
};

uint32_t colibri_kernels_supported(void)
{
    return 1;
}
