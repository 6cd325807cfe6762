/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of model_config.h. */
#include "internal.h"

const uint32_t colibri_config_hash[4] = COLIBRI_CONFIG_HASH_WORDS;
const colibri_matrix_t colibri_matrices[COLIBRI_N_MATRICES] = COLIBRI_MATRICES;
#if COLIBRI_HAS_LAYER_TABLE
const colibri_layer_t colibri_layers[COLIBRI_N_LAYERS] = COLIBRI_LAYERS;
#endif
#if COLIBRI_HAS_KIND_TABLE
const colibri_kind_t colibri_kinds[COLIBRI_N_KINDS] = COLIBRI_KINDS;
#endif
#if COLIBRI_HAS_NORM_TABLE
const colibri_norm_t colibri_norms[COLIBRI_N_NORMS] = COLIBRI_NORMS;
#endif
#if COLIBRI_HAS_ROUTER_TABLE
const colibri_router_t colibri_routers[COLIBRI_N_ROUTERS] = COLIBRI_ROUTERS;
#endif
#if COLIBRI_HAS_SHAPE_TABLE
const colibri_shape_t colibri_shapes[COLIBRI_N_SHAPES] = COLIBRI_SHAPES;
#endif
#if COLIBRI_HAS_VARIANT_TABLE
const colibri_variant_t colibri_variants[COLIBRI_N_VARIANTS] = COLIBRI_VARIANTS;
#endif
