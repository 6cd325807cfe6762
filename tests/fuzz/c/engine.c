/* SPDX-License-Identifier: Apache-2.0 */
/* Images whose checksums are right and whose content is not, through the whole engine; and a state that was written over.
 *
 * An image is refused, and then the model is as it was, or it is taken: then every call ends with a status that its description
 * names, logits are finite or all zero, and no byte outside is touched (AddressSanitizer). */
#include "colibri/colibri.h"
#include "colibri/image_format.h"
#include "colibri/port.h"
#include "spoil.h"

#define MAX_STEPS 600

static uint8_t *seed;

uint64_t colibri_port_cycles(void)
{
    return 0;
}

static uint32_t crc32_of(const uint8_t *bytes, size_t n)
{
    static uint32_t table[256];
    if (table[1] == 0) {
        for (uint32_t i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++) {
                table[i] = table[i] >> 1 ^ (table[i] & 1u ? 0xedb88320u : 0);
            }
        }
    }
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xffu];
    }
    return ~crc;
}

static uint32_t word_at(const uint8_t *image, uint32_t offset)
{
    uint32_t word;
    memcpy(&word, image + offset, 4);
    return word;
}

static void put_word(uint8_t *image, uint32_t offset, uint32_t word)
{
    memcpy(image + offset, &word, 4);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    size_t n;
    (void)argc;
    (void)argv;
    seed = read_file(COLIBRI_FUZZ_SEED, &n);
    REQUIRE(n == COLIBRI_IMAGE_BYTES);
    return 0;
}

/* Fields that colibri_init compares. */
static int is_ours(const uint8_t *image)
{
    return memcmp(image, seed, COLIBRI_HEADER_OFFSET_WEIGHTS_CRC32) == 0;
}

static void check_logits(const float *logits, colibri_status status)
{
    for (uint32_t i = 0; i < COLIBRI_VOCAB_SIZE; i++) {
        REQUIRE(status == COLIBRI_ERR_RANGE ? logits[i] == 0.0f : logits[i] - logits[i] == 0.0f);
    }
}

static void sample(choices_t *c, float *logits)
{
    static const float values[] = {0.0f, 1.0f, 0.0078125f, 128.0f, 0.5f, -1.0f, 1e30f, 0.9f};
    colibri_rng_t rng;
    colibri_sampling_t sampling = {values[below(c, 8)], (int32_t)odd_word(c), values[below(c, 8)]};
    REQUIRE(colibri_rng_seed(&rng, take(c, 4)) == COLIBRI_OK);
    int32_t id = colibri_sample(logits, &sampling, &rng);
    REQUIRE(id == COLIBRI_ERR_SAMPLING || id == COLIBRI_ERR_RANGE || (id >= 0 && id < (int32_t)COLIBRI_VOCAB_SIZE));
}

/* Slices of any size; between them the state may be written over. */
static void walk(choices_t *c, const colibri_model_t *model, colibri_state_t *state, float *logits)
{
    int32_t ids[4];
    const int32_t n = 1 + (int32_t)below(c, 4);
    const uint32_t spoils = below(c, 3) == 1;
    const uint32_t max_macs = below(c, 4) ? take(c, 1 + below(c, 2)) : 0;
    for (int32_t i = 0; i < n; i++) {
        ids[i] = (int32_t)below(c, COLIBRI_VOCAB_SIZE);
    }
    int32_t position = colibri_position(state);
    if (position < 0 || position + n > (int32_t)COLIBRI_MAX_SEQ || colibri_rewind(state, position) != COLIBRI_OK) {
        REQUIRE(colibri_state_init(state, model) == COLIBRI_OK);
    }
    colibri_status status = COLIBRI_MORE;
    for (uint32_t i = 0; i < MAX_STEPS && status == COLIBRI_MORE; i++) {
        status = colibri_step(model, state, ids, n, logits, max_macs);
        if (spoils && status == COLIBRI_MORE && below(c, 8) == 1) {
            uint32_t end = below(c, 2) ? sizeof state->header : (uint32_t)sizeof *state;
            spoil(c, (uint8_t *)state, 0, end);
        }
    }
    if (!spoils) {
        REQUIRE(status == COLIBRI_OK || status == COLIBRI_ERR_RANGE || status == COLIBRI_MORE);
    }
    if (status == COLIBRI_OK || status == COLIBRI_ERR_RANGE) {
        check_logits(logits, status);
        sample(c, logits);
    }
    position = colibri_position(state);
    if (position >= 0) {
        REQUIRE(position <= (int32_t)COLIBRI_MAX_SEQ);
        (void)!colibri_rewind(state, (int32_t)odd_word(c));
    }
}

static void scrub(choices_t *c, const colibri_model_t *model, uint32_t expected)
{
    colibri_scrub_t cursor;
    colibri_status status;
    const uint32_t n = 1 + take(c, 2);
    REQUIRE(colibri_scrub_init(&cursor) == COLIBRI_OK);
    do {
        status = colibri_scrub(model, &cursor, n * 16);
    } while (status == COLIBRI_MORE);
    REQUIRE(status == (expected ? COLIBRI_OK : COLIBRI_ERR_WEIGHTS_CRC));
}

static void use(choices_t *c, const colibri_model_t *model, uint32_t weights_are_right)
{
    colibri_state_t *state = exactly(16, sizeof *state);
    float *logits = exactly(4, COLIBRI_VOCAB_SIZE * sizeof *logits);
    memset(state, 0x5a, sizeof *state);
    REQUIRE(colibri_state_init(state, model) == COLIBRI_OK);
    if (below(c, 4) == 1) {
        scrub(c, model, weights_are_right);
    }
    if (below(c, 4) == 1) {
        colibri_status status = colibri_selftest(model, state, logits);
        REQUIRE(status == COLIBRI_OK || status == COLIBRI_ERR_SELFTEST);
    }
    for (uint32_t calls = 1 + below(c, 3); calls > 0; calls--) {
        walk(c, model, state, logits);
    }
    free(state);
    free(logits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    choices_t c = {data, n};
    const uint32_t repaired = ~take(&c, 1);
    const uint32_t flags = below(&c, 2) ? 0 : COLIBRI_INIT_CHECK_CRC;
    size_t n_bytes = COLIBRI_IMAGE_BYTES;
    if (below(&c, 16) == 1) {
        n_bytes = take(&c, 2) % COLIBRI_IMAGE_BYTES;
    }
    uint8_t *image = exactly(64, n_bytes);
    memcpy(image, seed, n_bytes);
    if (n_bytes == COLIBRI_IMAGE_BYTES) {
        for (uint32_t left = below(&c, 8); left > 0; left--) {
            if (below(&c, 6) == 1) {
                spoil(&c, image, 0, COLIBRI_HEADER_FIXED_BYTES);
            } else {
                spoil(&c, image, COLIBRI_HEADER_BYTES, COLIBRI_IMAGE_BYTES);
            }
        }
        const uint32_t weights = crc32_of(image + COLIBRI_HEADER_BYTES, n_bytes - COLIBRI_HEADER_BYTES);
        if (repaired & 1u) {
            put_word(image, COLIBRI_HEADER_OFFSET_WEIGHTS_CRC32, weights);
        }
        const uint32_t header = crc32_of(image, COLIBRI_HEADER_OFFSET_HEADER_CRC32);
        if (repaired & 2u) {
            put_word(image, COLIBRI_HEADER_OFFSET_HEADER_CRC32, header);
        }
        const uint32_t weights_are_right = weights == word_at(image, COLIBRI_HEADER_OFFSET_WEIGHTS_CRC32);
        const uint32_t header_is_right = header == word_at(image, COLIBRI_HEADER_OFFSET_HEADER_CRC32);
        colibri_model_t model = {NULL, 0x5a5a5a5au};
        colibri_status status = colibri_init(&model, image, n_bytes, flags);
        const uint32_t checks = !(flags & COLIBRI_INIT_CHECK_CRC) || (weights_are_right && header_is_right);
        REQUIRE((status == COLIBRI_OK) == (is_ours(image) && checks));
        if (status == COLIBRI_OK) {
            use(&c, &model, weights_are_right);
        } else {
            REQUIRE(status < 0 && model.image == NULL && model.magic == 0x5a5a5a5au);
        }
    } else {
        colibri_model_t model = {NULL, 0};
        REQUIRE(colibri_init(&model, image, n_bytes, flags) == COLIBRI_ERR_IMAGE_BYTES);
    }
    free(image);
    return 0;
}
