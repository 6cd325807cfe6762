/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels this build uses. */
#include "kernels.h"

#if COLIBRI_KERNEL_LAYOUT != 1
#error "colibri: COLIBRI_KERNEL_LAYOUT is not 1 (portable), the only one these kernels read; pack again for this board"
#endif

const colibri_kernels_t colibri_kernels = {
    .layout = COLIBRI_KERNEL_LAYOUT,
#if COLIBRI_USE_F32
    .matvec_f32 = colibri_matvec_f32_portable,
    .widen_f32 = colibri_widen_f32_portable,
#endif
#if COLIBRI_USE_BF16
    .matvec_bf16 = colibri_matvec_bf16_portable,
    .widen_bf16 = colibri_widen_bf16_portable,
#endif
#if COLIBRI_USE_F16
    .matvec_f16 = colibri_matvec_f16_portable,
    .widen_f16 = colibri_widen_f16_portable,
#endif
#if COLIBRI_USE_Q8
    .matvec_q8 = colibri_matvec_q8_portable,
#endif
#if COLIBRI_USE_Q8_GROUP
    .matvec_q8_group = colibri_matvec_q8_group_portable,
#endif
#if COLIBRI_USE_Q8 || COLIBRI_USE_Q8_GROUP
    .widen_q8 = colibri_widen_q8_portable,
#endif
#if COLIBRI_USE_Q4
    .matvec_q4 = colibri_matvec_q4_portable,
    .widen_q4 = colibri_widen_q4_portable,
#endif
    .dot = colibri_dot_portable,
    .axpy = colibri_axpy_portable,
    .scale = colibri_scale_portable,
    .add = colibri_add_portable,
    .normalise = colibri_normalise_portable,
    .absmax = colibri_absmax_portable,
    .quantise = colibri_quantise_portable,
    .softmax = colibri_softmax_portable,
    .swiglu = colibri_swiglu_portable,
    .rotate = colibri_rotate_portable,
#if COLIBRI_KV_F32
    .scores = colibri_scores_f32_portable,
    .mix = colibri_mix_f32_portable,
#endif
#if COLIBRI_KV_F16
    .scores = colibri_scores_f16_portable,
    .mix = colibri_mix_f16_portable,
    .narrow_f16 = colibri_narrow_f16_portable,
#endif
#if COLIBRI_KV_Q8
    .scores = colibri_scores_q8_portable,
    .mix = colibri_mix_q8_portable,
#endif
};

uint32_t colibri_kernels_supported(void)
{
    return 1;
}
