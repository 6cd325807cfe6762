/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of model_config.h, and the only computation of an expert's address. */
#include "internal.h"

const uint32_t colibri_config_hash[4] = COLIBRI_CONFIG_HASH_WORDS;
const colibri_layer_offsets_t colibri_layer_offsets[COLIBRI_N_LAYERS] = COLIBRI_LAYER_OFFSETS;
const size_t colibri_expert_offsets[COLIBRI_N_LAYERS][COLIBRI_N_BLOCKS] = COLIBRI_EXPERT_OFFSETS;
const colibri_matrix_t colibri_matrix_embedding = COLIBRI_MATRIX_EMBEDDING;
const colibri_matrix_t colibri_matrix_head = COLIBRI_MATRIX_HEAD;
const colibri_matrix_t colibri_matrix_q = COLIBRI_MATRIX_Q;
const colibri_matrix_t colibri_matrix_k = COLIBRI_MATRIX_K;
const colibri_matrix_t colibri_matrix_v = COLIBRI_MATRIX_V;
const colibri_matrix_t colibri_matrix_o = COLIBRI_MATRIX_O;
const colibri_matrix_t colibri_matrix_gate = COLIBRI_MATRIX_GATE;
const colibri_matrix_t colibri_matrix_up = COLIBRI_MATRIX_UP;
const colibri_matrix_t colibri_matrix_down = COLIBRI_MATRIX_DOWN;

colibri_expert_t colibri_expert(const colibri_model_t *model, uint32_t layer, uint32_t index)
{
    const uint8_t *block = model->image + colibri_expert_offsets[layer][index];
    colibri_expert_t expert = {block + COLIBRI_EXPERT_GATE, block + COLIBRI_EXPERT_UP, block + COLIBRI_EXPERT_DOWN};
    return expert;
}
