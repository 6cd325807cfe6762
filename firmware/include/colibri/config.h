/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine is compiled for: the generated model_config.h (docs/DESIGN.md, section 1), then the knobs, then the checks.
 *
 * Compile everything with -ffp-contract=off -fno-math-errno, GCC also -fno-tree-vectorize, clang -fno-vectorize
 * -fno-slp-vectorize, and never with -ffast-math or one of its parts (docs/NUMERICS.md, section 1).
 */
#ifndef COLIBRI_CONFIG_H
#define COLIBRI_CONFIG_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#include "model_config.h"

/* ---- Knobs: define them on the compiler's command line. None changes a bit of the results. ---- */

/* COLIBRI_PREFIX: a C identifier. Every external symbol of the engine is then PREFIX_... instead of colibri_..., so that two
 * models link into one program; source code keeps the colibri_ names. Default: not defined. Costs nothing. Usually in
 * model_config.h (pack --name). The port's functions (port.h) are shared and keep their names. */

/* COLIBRI_SOFT_FMA: 0 or 1. 1: the integer fma and square root even where the core has the instructions. Default 0. Costs
 * roughly 100 instructions a float multiply-accumulate; for tests. */
#ifndef COLIBRI_SOFT_FMA
#define COLIBRI_SOFT_FMA 0
#endif

/* COLIBRI_STATUS_NAMES: 0 or 1. 1: colibri_status_name exists. Default 0. Costs about 1 KiB of flash. */
#ifndef COLIBRI_STATUS_NAMES
#define COLIBRI_STATUS_NAMES 0
#endif

/* ---- Checks ---- */

#if defined(__BYTE_ORDER__) && defined(__ORDER_LITTLE_ENDIAN__)
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "colibri: the image is little-endian and this core is not; big-endian targets are not supported"
#endif
#endif

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "colibri: -ffast-math changes bits; remove it and its parts"
#endif

#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "colibri: FLT_EVAL_METHOD is not 0, float would be computed wider; on x86 use -mfpmath=sse, elsewhere -std=c11"
#endif

#if COLIBRI_SOFT_FMA != 0 && COLIBRI_SOFT_FMA != 1
#error "colibri: COLIBRI_SOFT_FMA must be 0 or 1"
#endif
#if COLIBRI_STATUS_NAMES != 0 && COLIBRI_STATUS_NAMES != 1
#error "colibri: COLIBRI_STATUS_NAMES must be 0 or 1"
#endif

#if !defined(COLIBRI_STATE_BYTES) || !defined(COLIBRI_CONFIG_HASH_WORDS) || !defined(COLIBRI_MATRICES)
#error "colibri: model_config.h is incomplete; write it again with colibri pack"
#endif
#if COLIBRI_FORMAT_VERSION != 2
#error "colibri: COLIBRI_FORMAT_VERSION is not 2, the version this engine reads; pack and build with the same release"
#endif
#if COLIBRI_QUANT_BYTES < 0 || COLIBRI_QUANT_BYTES % 4 != 0
#error "colibri: COLIBRI_QUANT_BYTES must be a multiple of 4, 0 where no matrix is of an integer format"
#endif
#if COLIBRI_VOCAB_SIZE < 1 || COLIBRI_VOCAB_SIZE > 16777216
#error "colibri: COLIBRI_VOCAB_SIZE must be 1 to 2**24"
#endif
#if COLIBRI_HIDDEN_SIZE < 1 || COLIBRI_HIDDEN_SIZE > 65536 || COLIBRI_MAX_WIDTH < 1 || COLIBRI_MAX_WIDTH > 65536
#error "colibri: COLIBRI_HIDDEN_SIZE and COLIBRI_MAX_WIDTH must be 1 to 65536: an int8 dot product fills an int32 there"
#endif
#if COLIBRI_MAX_Q < 0 || COLIBRI_MAX_Q > 65536
#error "colibri: COLIBRI_MAX_Q must be 0 to 65536, for the same reason"
#endif
#if COLIBRI_MAX_SEQ < 1 || COLIBRI_MAX_SEQ > 1048576
#error "colibri: COLIBRI_MAX_SEQ must be 1 to 2**20: the range of the rotary functions"
#endif
#if COLIBRI_HAS_ENCODER && (COLIBRI_MAX_SOURCE < 1 || COLIBRI_MAX_SOURCE > 1048576)
#error "colibri: COLIBRI_MAX_SOURCE must be 1 to 2**20, as COLIBRI_MAX_SEQ"
#endif
#if COLIBRI_N_LAYERS < 1 || COLIBRI_N_LAYERS > 1024
#error "colibri: COLIBRI_N_LAYERS must be 1 to 1024"
#endif
#if COLIBRI_MAX_EXPERTS < 0 || COLIBRI_MAX_EXPERTS > 65536
#error "colibri: COLIBRI_MAX_EXPERTS must be 0 (dense) to 65536"
#endif
#if COLIBRI_MAX_EXPERTS > 0 && (COLIBRI_MAX_TOP_K < 1 || COLIBRI_MAX_TOP_K > COLIBRI_MAX_EXPERTS)
#error "colibri: COLIBRI_MAX_TOP_K must be 1 to COLIBRI_MAX_EXPERTS"
#endif
#if COLIBRI_KV_F16 + COLIBRI_KV_Q8 > 1
#error "colibri: at most one of COLIBRI_KV_F16 and COLIBRI_KV_Q8 may be 1: a model has one KV cache"
#endif

/* ---- Derived ---- */

/* The image's header pages; the weights follow. */
#ifndef COLIBRI_HEADER_BYTES
#define COLIBRI_HEADER_BYTES 4096u
#endif

#define COLIBRI_PAD8(n) (((n) + 7) / 8 * 8)
#define COLIBRI_MAX(a, b) ((a) > (b) ? (a) : (b))

#define COLIBRI_HIDDEN_PAD COLIBRI_PAD8(COLIBRI_HIDDEN_SIZE)
#define COLIBRI_WIDTH_PAD COLIBRI_PAD8(COLIBRI_MAX_WIDTH)

/* Whether some router has a matrix before that of its logits: a two-layer gate, or the primary gate of a hierarchy. */
#define COLIBRI_NEEDS_FIRST_GATE (COLIBRI_HAS_ROUTER_HIDDEN || COLIBRI_HAS_HIERARCHY)

/* The KV cache's format: one of COLIBRI_KV_F32, _F16 and _Q8 is 1. */
#define COLIBRI_KV_F32 (!COLIBRI_KV_F16 && !COLIBRI_KV_Q8)

#if defined(__cplusplus)
#define COLIBRI_STATIC_ASSERT(condition, message) static_assert(condition, message)
#define COLIBRI_ALIGN16 alignas(16)
#else
#define COLIBRI_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#define COLIBRI_ALIGN16 _Alignas(16)
#endif

#include "colibri/names.h"

#endif
