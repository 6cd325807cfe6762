/* SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"

/* Whether a table of n_items items lies behind the header and within the tables. */
static uint32_t fits(const colibri_text_tables_t *tables, uint32_t offset, uint64_t n_bytes)
{
    return offset % 4u == 0 && offset >= sizeof *tables && offset <= tables->n_bytes && n_bytes <= tables->n_bytes - offset;
}

colibri_status colibri_tokenizer_init(colibri_tokenizer_t *tokenizer, const void *tables, size_t n_bytes)
{
    const colibri_text_tables_t *t = (const colibri_text_tables_t *)tables;
    if (tokenizer == NULL || tables == NULL) {
        return COLIBRI_ERR_NULL;
    }
    if (((uintptr_t)tables & 3u) != 0) {
        return COLIBRI_ERR_IMAGE_ALIGN;
    }
    if (n_bytes < sizeof *t || t->magic != COLIBRI_TEXT_MAGIC) {
        return COLIBRI_ERR_MAGIC;
    }
    if (t->version != 1) {
        return COLIBRI_ERR_FORMAT_VERSION;
    }
    const uint64_t index = t->flags & COLIBRI_TEXT_WIDE ? 4u : 2u;
    const uint32_t has_bytes = colibri_text_has_bytes(t);
    const uint32_t is_unigram = t->flags & COLIBRI_TEXT_UNIGRAM;
    if (t->n_bytes != n_bytes || t->n_splits > COLIBRI_TEXT_MAX_SPLITS || t->n_runs == 0 || t->n_tokens > 0x1fffffu ||
        !fits(t, t->ends, 4u * ((uint64_t)t->n_tokens + 1u)) || !fits(t, t->text, 0) || !fits(t, t->sorted, index * t->n_sorted) ||
        !fits(t, t->merges, 4u * index * t->n_merges) || !fits(t, t->scores, is_unigram ? 4u * (uint64_t)t->n_tokens : 0) ||
        !fits(t, t->byte_ids, has_bytes ? 256u * index : 0) || !fits(t, t->specials, 32u + 8u * (uint64_t)t->n_specials) ||
        !fits(t, t->around, 4u * ((uint64_t)t->n_before + t->n_after)) || !fits(t, t->hidden, (t->n_tokens + 7u) / 8u) ||
        !fits(t, t->decompositions, 16u * (uint64_t)t->n_decompositions) || !fits(t, t->pairs, 12u * (uint64_t)t->n_pairs) ||
        !fits(t, t->marks, 4u * (uint64_t)t->n_marks) || !fits(t, t->seconds, 4u * (uint64_t)t->n_seconds) ||
        !fits(t, t->classes, 128u + 4u * (uint64_t)t->n_runs) || !fits(t, t->splits, 8u * (uint64_t)t->n_splits)) {
        return COLIBRI_ERR_HEADER_BYTES;
    }
    const colibri_tokenizer_t bound = {(const uint8_t *)tables};
    colibri_status status = colibri_text_check(&bound);
    if (status == COLIBRI_OK) {
        *tokenizer = bound;
    }
    return status;
}
