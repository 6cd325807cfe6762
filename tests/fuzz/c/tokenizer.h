/* SPDX-License-Identifier: Apache-2.0 */
/* What the two tokenizer targets share: the seeds' tables, and one text through the tokenizer and back. */
#ifndef COLIBRI_FUZZ_TOKENIZER_H
#define COLIBRI_FUZZ_TOKENIZER_H

#include "colibri/tokenizer.h"
#include "spoil.h"

typedef struct tables {
    uint8_t *bytes;
    size_t n;
} tables_t;

static const char *const names[] = {COLIBRI_FUZZ_SEEDS};
#define N_TABLES (sizeof names / sizeof *names)
static tables_t tables[N_TABLES];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < N_TABLES; i++) {
        tables[i].bytes = read_file(names[i], &tables[i].n);
    }
    return 0;
}

/* Ids of a text in memory of just the sizes that are said. */
static inline int32_t encode(const colibri_tokenizer_t *tokenizer, const uint8_t *text, size_t n, uint32_t flags, int32_t *ids,
                             size_t max_ids, size_t workspace_bytes)
{
    uint8_t *copy = exactly(1, n);
    int32_t *exact = exactly(4, max_ids * sizeof *ids);
    void *workspace = exactly(8, workspace_bytes);
    memcpy(copy, text, n);
    int32_t n_ids = colibri_tokenize(tokenizer, (const char *)copy, n, flags, exact, max_ids, workspace, workspace_bytes);
    if (n_ids > 0) {
        REQUIRE((size_t)n_ids <= max_ids);
        memcpy(ids, exact, (size_t)n_ids * sizeof *ids);
    }
    free(copy);
    free(exact);
    free(workspace);
    return n_ids;
}

#endif
