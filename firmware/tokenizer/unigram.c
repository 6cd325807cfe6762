/* SPDX-License-Identifier: Apache-2.0 */
/* The unigram model (Kudo 2018): the segmentation with the largest sum of scores, by Viterbi. Scores are integers of 2**-40, so
 * their sums are exact. */
#include "tables.h"

/* The best way to a place in the piece. */
typedef struct node {
    int64_t score;
    uint32_t begin; /* where its last token begins; COLIBRI_TEXT_NONE: none ends here yet */
    uint32_t id;
} node_t;

static int64_t fixed(uint32_t bits)
{
    int64_t magnitude = (int64_t)colibri_text_magnitude(bits);
    return bits >> 31 ? -magnitude : magnitude;
}

/* Whether sums of n scores stay below 2**63: none is larger than the unknown character's (colibri_text_check). */
static uint32_t sums_hold(const colibri_text_tables_t *tables, uint32_t n)
{
    uint32_t high = tables->unknown_score_high;
    uint32_t magnitude = (high >> 31 ? ~high : high) + 1u; /* above the score's, in units of 2**32 */
    uint32_t bits = 0;
    while (n >> bits != 0) {
        bits++;
    }
    return magnitude <= 0x7fffffffu >> bits;
}

/* A path to `at` that ends with a token; of equal ones the first found stays. */
static void offer(node_t *at, int64_t score, uint32_t begin, uint32_t id)
{
    if (at->begin == COLIBRI_TEXT_NONE || score > at->score) {
        at->score = score;
        at->begin = begin;
        at->id = id;
    }
}

/* Every token that begins at `begin`, and the unknown character where no token is exactly that character. */
static void offer_all(const colibri_tokenizer_t *tokenizer, colibri_text_span_t piece, node_t *nodes, uint32_t begin)
{
    const colibri_text_tables_t *tables = colibri_text_header(tokenizer);
    const uint32_t char_bytes = colibri_text_char_bytes(piece.bytes[begin]);
    uint32_t low = 0;
    uint32_t high = tables->n_sorted;
    uint32_t is_token = 0;
    for (uint32_t depth = 0; begin + depth < piece.n; depth++) {
        colibri_text_narrow(tokenizer, &low, &high, depth, piece.bytes[begin + depth]);
        if (low == high) {
            break;
        }
        uint32_t id = colibri_text_index(tokenizer, tables->sorted, low);
        if (colibri_text_token(tokenizer, id).n == depth + 1) {
            int64_t score = fixed(colibri_text_word(tokenizer, tables->scores, id));
            offer(&nodes[begin + depth + 1], nodes[begin].score + score, begin, id);
            is_token |= depth + 1 == char_bytes;
        }
    }
    if (!is_token) {
        int64_t score = (int64_t)((uint64_t)tables->unknown_score_high << 32 | tables->unknown_score_low);
        offer(&nodes[begin + char_bytes], nodes[begin].score + score, begin, COLIBRI_TEXT_NONE);
    }
}

colibri_status colibri_text_unigram(const colibri_tokenizer_t *tokenizer, colibri_text_span_t piece, colibri_text_ids_t *out,
                                    colibri_text_workspace_t workspace)
{
    node_t *nodes = (node_t *)(void *)workspace.bytes;
    if (workspace.n / sizeof(node_t) < (size_t)piece.n + 1) {
        return COLIBRI_ERR_BUFFER;
    }
    if (!sums_hold(colibri_text_header(tokenizer), piece.n)) {
        return COLIBRI_ERR_RANGE;
    }
    for (uint32_t i = 0; i <= piece.n; i++) {
        nodes[i].score = 0;
        nodes[i].begin = COLIBRI_TEXT_NONE;
    }
    for (uint32_t begin = 0; begin < piece.n; begin += colibri_text_char_bytes(piece.bytes[begin])) {
        offer_all(tokenizer, piece, nodes, begin);
    }
    /* Backwards to the start; then the begin of a node on the path is the end of the next token. */
    uint32_t end = COLIBRI_TEXT_NONE;
    for (uint32_t at = piece.n; at > 0;) {
        uint32_t begin = nodes[at].begin;
        nodes[at].begin = end;
        end = at;
        at = begin;
    }
    for (uint32_t begin = 0; begin < piece.n;) {
        colibri_status status;
        uint32_t id = nodes[end].id;
        uint32_t next = nodes[end].begin;
        if (id == COLIBRI_TEXT_NONE) {
            while (next != COLIBRI_TEXT_NONE && nodes[next].id == COLIBRI_TEXT_NONE) { /* neighbours are one */
                end = next;
                next = nodes[end].begin;
            }
            colibri_text_span_t characters = {piece.bytes + begin, end - begin};
            status = colibri_text_unknown(tokenizer, characters, out);
        } else {
            status = colibri_text_emit(out, id);
        }
        if (status != COLIBRI_OK) {
            return status;
        }
        begin = end;
        end = next;
    }
    return COLIBRI_OK;
}
