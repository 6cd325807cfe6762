/* SPDX-License-Identifier: Apache-2.0 */
/* Every external symbol of the engine under the model's prefix, where COLIBRI_PREFIX is defined (config.h). Source code, this
 * project's and the application's, keeps writing colibri_. A new external symbol needs a line here: a test compares with nm.
 */
#ifndef COLIBRI_NAMES_H
#define COLIBRI_NAMES_H

#if defined(COLIBRI_PREFIX)

#define COLIBRI_PASTE_(prefix, name) prefix##_##name
#define COLIBRI_PASTE(prefix, name) COLIBRI_PASTE_(prefix, name)
#define COLIBRI_NAME(name) COLIBRI_PASTE(COLIBRI_PREFIX, name)

/* Public. */
#define colibri_init COLIBRI_NAME(init)
#define colibri_scrub_init COLIBRI_NAME(scrub_init)
#define colibri_scrub COLIBRI_NAME(scrub)
#define colibri_state_init COLIBRI_NAME(state_init)
#define colibri_position COLIBRI_NAME(position)
#define colibri_rewind COLIBRI_NAME(rewind)
#define colibri_forward COLIBRI_NAME(forward)
#define colibri_step COLIBRI_NAME(step)
#define colibri_rng_seed COLIBRI_NAME(rng_seed)
#define colibri_sample COLIBRI_NAME(sample)
#define colibri_status_name COLIBRI_NAME(status_name)

/* Internal. */
#define colibri_absmax_portable COLIBRI_NAME(absmax_portable)
#define colibri_add_residual COLIBRI_NAME(add_residual)
#define colibri_attention COLIBRI_NAME(attention)
#define colibri_attention_begin COLIBRI_NAME(attention_begin)
#define colibri_axpy_portable COLIBRI_NAME(axpy_portable)
#define colibri_axpy_q8_portable COLIBRI_NAME(axpy_q8_portable)
#define colibri_check_call COLIBRI_NAME(check_call)
#define colibri_check_model COLIBRI_NAME(check_model)
#define colibri_check_range COLIBRI_NAME(check_range)
#define colibri_check_state COLIBRI_NAME(check_state)
#define colibri_combine COLIBRI_NAME(combine)
#define colibri_config_hash COLIBRI_NAME(config_hash)
#define colibri_crc32 COLIBRI_NAME(crc32)
#define colibri_dot_portable COLIBRI_NAME(dot_portable)
#define colibri_dot_q8_portable COLIBRI_NAME(dot_q8_portable)
#define colibri_embed COLIBRI_NAME(embed)
#define colibri_exp COLIBRI_NAME(exp)
#define colibri_expert COLIBRI_NAME(expert)
#define colibri_expert_offsets COLIBRI_NAME(expert_offsets)
#define colibri_fma_portable COLIBRI_NAME(fma_portable)
#define colibri_kernels COLIBRI_NAME(kernels)
#define colibri_kernels_supported COLIBRI_NAME(kernels_supported)
#define colibri_layer_offsets COLIBRI_NAME(layer_offsets)
#define colibri_matrix_down COLIBRI_NAME(matrix_down)
#define colibri_matrix_embedding COLIBRI_NAME(matrix_embedding)
#define colibri_matrix_gate COLIBRI_NAME(matrix_gate)
#define colibri_matrix_head COLIBRI_NAME(matrix_head)
#define colibri_matrix_k COLIBRI_NAME(matrix_k)
#define colibri_matrix_o COLIBRI_NAME(matrix_o)
#define colibri_matrix_q COLIBRI_NAME(matrix_q)
#define colibri_matrix_up COLIBRI_NAME(matrix_up)
#define colibri_matrix_v COLIBRI_NAME(matrix_v)
#define colibri_matvec COLIBRI_NAME(matvec)
#define colibri_matvec_bf16_portable COLIBRI_NAME(matvec_bf16_portable)
#define colibri_matvec_f16_portable COLIBRI_NAME(matvec_f16_portable)
#define colibri_matvec_f32_portable COLIBRI_NAME(matvec_f32_portable)
#define colibri_matvec_q4_portable COLIBRI_NAME(matvec_q4_portable)
#define colibri_matvec_q8_group_portable COLIBRI_NAME(matvec_q8_group_portable)
#define colibri_matvec_q8_portable COLIBRI_NAME(matvec_q8_portable)
#define colibri_quantise_portable COLIBRI_NAME(quantise_portable)
#define colibri_quantise_vector_portable COLIBRI_NAME(quantise_vector_portable)
#define colibri_rmsnorm COLIBRI_NAME(rmsnorm)
#define colibri_rope COLIBRI_NAME(rope)
#define colibri_rope_prepare COLIBRI_NAME(rope_prepare)
#define colibri_route COLIBRI_NAME(route)
#define colibri_router_logits COLIBRI_NAME(router_logits)
#define colibri_silu COLIBRI_NAME(silu)
#define colibri_sincos COLIBRI_NAME(sincos)
#define colibri_sqrt_portable COLIBRI_NAME(sqrt_portable)
#define colibri_stage_run COLIBRI_NAME(stage_run)
#define colibri_stage_size COLIBRI_NAME(stage_size)
#define colibri_swiglu COLIBRI_NAME(swiglu)
#define colibri_widen_bf16_portable COLIBRI_NAME(widen_bf16_portable)
#define colibri_widen_f16_portable COLIBRI_NAME(widen_f16_portable)
#define colibri_widen_f32_portable COLIBRI_NAME(widen_f32_portable)
#define colibri_widen_q4_portable COLIBRI_NAME(widen_q4_portable)
#define colibri_widen_q8_portable COLIBRI_NAME(widen_q8_portable)

#endif

#endif
