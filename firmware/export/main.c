/* SPDX-License-Identifier: Apache-2.0 */
/* Continue token ids with the 16 likeliest: example ID... With an encoder the first id begins its decoder's sequence; the others are
 * the source.
 */
#include <stdio.h>
#include <stdlib.h>

#include "colibri_model.h"
#include "colibri/port.h"

static colibri_state_t state;
static float logits[COLIBRI_VOCAB_SIZE];

/* A board's only duty to the engine: its counter, where one is wanted. */
uint64_t colibri_port_cycles(void)
{
    return 0;
}

int main(int argc, char **argv)
{
    colibri_model_t model;
    if (colibri_init(&model, colibri_weights, COLIBRI_IMAGE_BYTES, COLIBRI_INIT_CHECK_CRC) != COLIBRI_OK ||
        colibri_selftest(&model, &state, logits) != COLIBRI_OK) { /* once at power-on; it leaves an empty sequence */
        return 1;
    }
#if COLIBRI_HAS_ENCODER
    static int32_t source_ids[COLIBRI_MAX_SOURCE];
    int n_source = 0;
    while (n_source + 2 < argc && n_source < COLIBRI_MAX_SOURCE) {
        source_ids[n_source] = (int32_t)strtol(argv[n_source + 2], NULL, 10);
        n_source++;
    }
    if (colibri_encode(&model, &state, source_ids, n_source, NULL) != COLIBRI_OK) {
        return 1;
    }
    argc = 2;
#endif
    for (int i = 1; i < argc + 16; i++) {
        int32_t id = i < argc ? (int32_t)strtol(argv[i], NULL, 10)
                              : colibri_sample(logits, &(colibri_sampling_t){0.0f, 0, 1.0f}, NULL);
        if (i >= argc) {
            printf("%ld\n", (long)id);
        }
        if (colibri_forward(&model, &state, &id, 1, logits, NULL) != COLIBRI_OK) {
            return 1;
        }
    }
    return 0;
}
