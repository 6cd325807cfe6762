/* SPDX-License-Identifier: Apache-2.0 */
#include "colibri/image_format.h"
#include "internal.h"
#include "load.h"

static colibri_status check_header(const uint8_t *image)
{
    if (memcmp(image + COLIBRI_HEADER_OFFSET_MAGIC, COLIBRI_HEADER_MAGIC, 8) != 0) {
        return COLIBRI_ERR_MAGIC;
    }
    if (colibri_load_u32(image + COLIBRI_HEADER_OFFSET_FORMAT_VERSION) != COLIBRI_IMAGE_FORMAT_VERSION) {
        return COLIBRI_ERR_FORMAT_VERSION;
    }
    /* Before lengths and hash, which differ with it. */
    if (colibri_load_u32(image + COLIBRI_HEADER_OFFSET_KERNEL_LAYOUT) != colibri_kernels.layout) {
        return COLIBRI_ERR_KERNEL_LAYOUT;
    }
    if (colibri_load_u32(image + COLIBRI_HEADER_OFFSET_HEADER_BYTES) != COLIBRI_HEADER_BYTES ||
        colibri_load_u64(image + COLIBRI_HEADER_OFFSET_IMAGE_BYTES) != COLIBRI_IMAGE_BYTES) {
        return COLIBRI_ERR_HEADER_BYTES;
    }
    uint32_t difference = 0;
    for (uint32_t i = 0; i < 4; i++) {
        difference |= colibri_load_u32(image + COLIBRI_HEADER_OFFSET_CONFIG_HASH + 4 * i) ^ colibri_config_hash[i];
    }
    if (difference != 0) {
        return COLIBRI_ERR_CONFIG_HASH;
    }
    return COLIBRI_OK;
}

static colibri_status check_crc(const uint8_t *image)
{
    if (colibri_crc32(0, image, COLIBRI_HEADER_OFFSET_HEADER_CRC32) !=
        colibri_load_u32(image + COLIBRI_HEADER_OFFSET_HEADER_CRC32)) {
        return COLIBRI_ERR_HEADER_CRC;
    }
    if (colibri_crc32(0, image + COLIBRI_HEADER_BYTES, (size_t)COLIBRI_IMAGE_BYTES - COLIBRI_HEADER_BYTES) !=
        colibri_load_u32(image + COLIBRI_HEADER_OFFSET_WEIGHTS_CRC32)) {
        return COLIBRI_ERR_WEIGHTS_CRC;
    }
    return COLIBRI_OK;
}

colibri_status colibri_init(colibri_model_t *model, const void *image, size_t image_bytes, uint32_t flags)
{
    if (model == NULL || image == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if (((uintptr_t)image & 63u) != 0) {
        return COLIBRI_ERR_IMAGE_ALIGN;
    }
    if ((flags & ~COLIBRI_INIT_CHECK_CRC) != 0) {
        return COLIBRI_ERR_FLAGS;
    }
    if (image_bytes != COLIBRI_IMAGE_BYTES) {
        return COLIBRI_ERR_IMAGE_BYTES;
    }
    if (!colibri_kernels_supported()) {
        return COLIBRI_ERR_ISA;
    }
    colibri_status status = check_header(image);
    if (status == COLIBRI_OK && (flags & COLIBRI_INIT_CHECK_CRC) != 0) {
        status = check_crc(image);
    }
    if (status == COLIBRI_OK) {
        model->image = image;
        model->magic = COLIBRI_MODEL_MAGIC;
    }
    return status;
}

colibri_status colibri_scrub_init(colibri_scrub_t *cursor)
{
    if (cursor == NULL) {
        return COLIBRI_ERR_NULL;
    }
    cursor->offset = COLIBRI_HEADER_BYTES;
    cursor->crc = 0;
    return COLIBRI_OK;
}

colibri_status colibri_scrub(const colibri_model_t *model, colibri_scrub_t *cursor, uint32_t n_bytes)
{
    colibri_status status = colibri_check_model(model);
    if (status != COLIBRI_OK) {
        return status;
    }
    if (cursor == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if (cursor->offset < COLIBRI_HEADER_BYTES || cursor->offset > COLIBRI_IMAGE_BYTES) {
        return COLIBRI_ERR_CURSOR;
    }
    size_t left = (size_t)COLIBRI_IMAGE_BYTES - cursor->offset;
    size_t n = n_bytes < left ? n_bytes : left;
    cursor->crc = colibri_crc32(cursor->crc, model->image + cursor->offset, n);
    cursor->offset += n;
    if (n < left) {
        return COLIBRI_MORE;
    }
    uint32_t crc = cursor->crc;
    cursor->offset = COLIBRI_HEADER_BYTES;
    cursor->crc = 0;
    return crc == colibri_load_u32(model->image + COLIBRI_HEADER_OFFSET_WEIGHTS_CRC32) ? COLIBRI_OK : COLIBRI_ERR_WEIGHTS_CRC;
}
