/* SPDX-License-Identifier: Apache-2.0 */
/* kernels: the kernels of the table by themselves, on matrices that are the image and vectors that a request brings. No engine.
 *
 * 'K': u32 operation, a matrix's seven words, u32 its offset in the image, float x[...]. The answer is 'O', what was written.
 * Under QEMU a plugin counts between colibri_bench_begin and colibri_bench_end: once a request, but a product of an integer format
 * has its vector quantised before, between another pair.
 */
#include <colibri/port.h>

#include "arch/frames.h"
#include "kernels/kernels.h"

#define MAX_ELEMS 1024u

enum { PRODUCT, WIDEN, DOT, AXPY, SCALE, ADD, NORMALISE, ABSMAX, SOFTMAX, SWIGLU, ROTATE, SCORES, MIX };

void colibri_bench_begin(void);
void colibri_bench_end(void);

static float x[MAX_ELEMS];
static float out[MAX_ELEMS];
static uint32_t quant[MAX_ELEMS];
static float scales[MAX_ELEMS / 32];

__attribute__((noinline)) void colibri_bench_begin(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void colibri_bench_end(void)
{
    __asm__ volatile("" ::: "memory");
}

static colibri_matvec_fn *matvec_of(const colibri_matrix_t *matrix)
{
    switch (matrix->dtype) {
    case COLIBRI_F32: return colibri_kernels.matvec_f32;
    case COLIBRI_BF16: return colibri_kernels.matvec_bf16;
    case COLIBRI_F16: return colibri_kernels.matvec_f16;
    case COLIBRI_Q8: return matrix->group != 0 ? colibri_kernels.matvec_q8_group : colibri_kernels.matvec_q8;
    default: return colibri_kernels.matvec_q4;
    }
}

static colibri_widen_fn *widen_of(const colibri_matrix_t *matrix)
{
    switch (matrix->dtype) {
    case COLIBRI_F32: return colibri_kernels.widen_f32;
    case COLIBRI_BF16: return colibri_kernels.widen_bf16;
    case COLIBRI_F16: return colibri_kernels.widen_f16;
    case COLIBRI_Q8: return colibri_kernels.widen_q8;
    default: return colibri_kernels.widen_q4;
    }
}

static void product(const colibri_matrix_t *matrix, const uint8_t *weights)
{
    const colibri_vector_t vector = {x, quant, scales};
    colibri_matvec_fn *matvec = matvec_of(matrix);
    if (matrix->dtype >= COLIBRI_Q8) {
        colibri_bench_begin();
        colibri_kernels.quantise_vector(quant, scales, matrix, x);
        colibri_bench_end();
    }
    colibri_bench_begin();
    matvec(out, matrix, weights, &vector, 0, matrix->rows);
    colibri_bench_end();
}

/* The matrix's columns are the vector's elements; out holds a copy of x before. */
static void vector_operator(uint32_t operation, uint32_t n)
{
    const colibri_kernels_t *table = &colibri_kernels;
    float result = 0.0f;
    for (uint32_t i = 0; i < n; i++) {
        out[i] = x[i];
    }
    colibri_bench_begin();
    switch (operation) {
    case DOT: result = table->dot(x, x, n); break;
    case AXPY: table->axpy(out, 0.5f, x, n); break;
    case SCALE: table->scale(out, 0.5f, n); break;
    case ADD: table->add(out, x, n); break;
    case NORMALISE: table->normalise(out, x, 0.5f, x, n); break;
    case ABSMAX: result = colibri_from_bits(table->absmax(x, n)); break;
    case SOFTMAX: table->softmax(out, n); break;
    case SWIGLU: table->swiglu(out, x, n); break;
    default: table->rotate(out, x, x, n / 2, 1, n / 2); break;
    }
    colibri_bench_end();
    if (operation == DOT || operation == ABSMAX) {
        out[0] = result;
    }
}

/* The matrix, of float32, is one head's keys or values. */
static void attention(uint32_t operation, const colibri_matrix_t *matrix, const uint8_t *weights)
{
    const colibri_kv_rows_t rows = {weights, NULL, matrix->rows, matrix->cols, matrix->row_bytes / 4u, 1};
    colibri_bench_begin();
    if (operation == SCORES) {
        colibri_kernels.scores(out, x, &rows);
    } else {
        colibri_kernels.mix(out, x, &rows);
    }
    colibri_bench_end();
}

static void answer(uint32_t operation, const colibri_matrix_t *matrix, const uint8_t *weights)
{
    uint32_t n_elems = matrix->cols;
    switch (operation) {
    case PRODUCT:
        product(matrix, weights);
        n_elems = matrix->rows;
        break;
    case WIDEN:
        colibri_bench_begin();
        widen_of(matrix)(out, matrix, weights, 0);
        colibri_bench_end();
        break;
    case SCORES:
    case MIX:
        attention(operation, matrix, weights);
        n_elems = operation == SCORES ? matrix->rows : matrix->cols;
        break;
    default:
        vector_operator(operation, matrix->cols);
    }
    colibri_frame_end(colibri_frame_write(colibri_frame_begin('O', 4u * n_elems), out, 4u * n_elems));
}

int colibri_app(void)
{
    colibri_request_t request;
    colibri_matrix_t matrix;
    size_t image_bytes;
    const uint8_t *image = colibri_port_weights(&image_bytes);
    colibri_fp_control_t control = colibri_fp_enter();

    while (colibri_request_begin(&request) == 0) {
        if (request.type == 'E' && colibri_request_end(&request) == 0) {
            colibri_fp_leave(control);
            return 0;
        }
        uint32_t operation = colibri_request_read_u32(&request);
        colibri_request_read(&request, &matrix, sizeof matrix);
        uint32_t offset = colibri_request_read_u32(&request);
        if (request.type != 'K' || request.bad || request.left_bytes > sizeof x || matrix.rows > MAX_ELEMS ||
            matrix.cols > MAX_ELEMS || offset > image_bytes) {
            return 2;
        }
        colibri_request_read(&request, x, request.left_bytes);
        if (colibri_request_end(&request) != 0) {
            return 2;
        }
        answer(operation, &matrix, image + offset);
    }
    return 1;
}
