/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#if COLIBRI_STATUS_NAMES

#define NAME(status) \
    case status:     \
        return #status

const char *colibri_status_name(colibri_status status)
{
    switch (status) {
        NAME(COLIBRI_MORE);
        NAME(COLIBRI_OK);
        NAME(COLIBRI_ERR_NULL);
        NAME(COLIBRI_ERR_IMAGE_ALIGN);
        NAME(COLIBRI_ERR_STATE_ALIGN);
        NAME(COLIBRI_ERR_BUFFER_ALIGN);
        NAME(COLIBRI_ERR_FLAGS);
        NAME(COLIBRI_ERR_IMAGE_BYTES);
        NAME(COLIBRI_ERR_MAGIC);
        NAME(COLIBRI_ERR_FORMAT_VERSION);
        NAME(COLIBRI_ERR_HEADER_BYTES);
        NAME(COLIBRI_ERR_CONFIG_HASH);
        NAME(COLIBRI_ERR_KERNEL_LAYOUT);
        NAME(COLIBRI_ERR_HEADER_CRC);
        NAME(COLIBRI_ERR_WEIGHTS_CRC);
        NAME(COLIBRI_ERR_ISA);
        NAME(COLIBRI_ERR_MODEL);
        NAME(COLIBRI_ERR_STATE);
        NAME(COLIBRI_ERR_STATE_CORRUPT);
        NAME(COLIBRI_ERR_STATE_FAILED);
        NAME(COLIBRI_ERR_SEQ_LEN);
        NAME(COLIBRI_ERR_CONTEXT_FULL);
        NAME(COLIBRI_ERR_TOKEN_ID);
        NAME(COLIBRI_ERR_PENDING);
        NAME(COLIBRI_ERR_POSITION);
        NAME(COLIBRI_ERR_SAMPLING);
        NAME(COLIBRI_ERR_CURSOR);
        NAME(COLIBRI_ERR_RANGE);
        NAME(COLIBRI_ERR_UTF8);
        NAME(COLIBRI_ERR_BUFFER);
        NAME(COLIBRI_ERR_TABLES);
        NAME(COLIBRI_ERR_SELFTEST);
        NAME(COLIBRI_ERR_NO_SOURCE);
    default:
        return "unknown status";
    }
}

#endif
