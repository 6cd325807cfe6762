/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes: 0 is success, COLIBRI_MORE is positive, every error is negative.
 *
 * An error leaves everything as it was, except COLIBRI_ERR_RANGE and COLIBRI_ERR_SELFTEST (see there). Values never change meaning and are never reused.
 */
#ifndef COLIBRI_STATUS_H
#define COLIBRI_STATUS_H

#include <stdint.h>

/* An int32_t, not an enum: its size must not depend on -fshort-enums. */
typedef int32_t colibri_status;

enum {
    COLIBRI_MORE = 1,                /* The call is not complete: call again with the same arguments. */
    COLIBRI_OK = 0,                  /* Done. */
    COLIBRI_ERR_NULL = -1,           /* A pointer that must not be NULL is NULL. */
    COLIBRI_ERR_IMAGE_ALIGN = -2,    /* The image does not start on a 64-byte boundary. */
    COLIBRI_ERR_STATE_ALIGN = -3,    /* The state does not start on a 16-byte boundary. */
    COLIBRI_ERR_BUFFER_ALIGN = -4,   /* Token ids or logits do not start on a 4-byte boundary. */
    COLIBRI_ERR_FLAGS = -5,          /* An unknown flag is set. */
    COLIBRI_ERR_IMAGE_BYTES = -6,    /* image_bytes is not COLIBRI_IMAGE_BYTES: another model, or a file cut short. */
    COLIBRI_ERR_MAGIC = -7,          /* The image does not begin with "COLIBRI": wrong address, or flash not programmed. */
    COLIBRI_ERR_FORMAT_VERSION = -8, /* The image has another format version than this engine. */
    COLIBRI_ERR_HEADER_BYTES = -9,   /* The lengths in the image's header disagree with this engine. */
    COLIBRI_ERR_CONFIG_HASH = -10,   /* The image was packed for another configuration than the engine was compiled for. */
    COLIBRI_ERR_KERNEL_LAYOUT = -11, /* The weights are laid out for other kernels than this engine's. */
    COLIBRI_ERR_HEADER_CRC = -12,    /* The header's CRC-32 is wrong. */
    COLIBRI_ERR_WEIGHTS_CRC = -13,   /* The weights' CRC-32 is wrong. */
    COLIBRI_ERR_ISA = -14,           /* The engine was compiled for instructions this core does not have. */
    COLIBRI_ERR_MODEL = -15,         /* The model was not initialised by colibri_init. */
    COLIBRI_ERR_STATE = -16,         /* The state was not initialised by colibri_state_init, or for another model. */
    COLIBRI_ERR_STATE_CORRUPT = -17, /* An index in the state is out of range: something wrote over it. */
    COLIBRI_ERR_STATE_FAILED = -18,  /* An earlier call ended with COLIBRI_ERR_RANGE: call colibri_state_init. */
    COLIBRI_ERR_SEQ_LEN = -19,       /* seq_len is below 1. */
    COLIBRI_ERR_CONTEXT_FULL = -20,  /* seq_len is more than the positions left (max_seq - position), or the source than max_source. */
    COLIBRI_ERR_TOKEN_ID = -21,      /* A token id is outside the vocabulary. */
    COLIBRI_ERR_PENDING = -22,       /* A call is pending and these are not its arguments: finish it, or cancel it with colibri_rewind. */
    COLIBRI_ERR_POSITION = -23,      /* The position is negative or past the present one. */
    COLIBRI_ERR_SAMPLING = -24,      /* A sampling parameter is out of its range. */
    COLIBRI_ERR_CURSOR = -25,        /* The scrub cursor is past the end of the image: it was not initialised. */
    COLIBRI_ERR_RANGE = -26,         /* A value reached 2**50 or is not finite: damaged weights or RAM. In a forward step the logits
                                        are all +0.0 and the state is unusable until colibri_state_init. */
    COLIBRI_ERR_SELFTEST = -27,      /* The replayed vector gave other bits than the golden model: do not trust this core's answers. */
    COLIBRI_ERR_UTF8 = -28,          /* A text is not UTF-8. */
    COLIBRI_ERR_BUFFER = -29,        /* A buffer is too small for the result. */
    COLIBRI_ERR_TABLES = -30,        /* A tokenizer's tables name what they do not have: damaged, or made by something else. */
    COLIBRI_ERR_NO_SOURCE = -31      /* The model has an encoder, and colibri_encode has not given it a source. */
};

/* The caller must look at the status. */
#if defined(__GNUC__)
#define COLIBRI_RESULT __attribute__((warn_unused_result))
#else
#define COLIBRI_RESULT
#endif

#endif
