/* SPDX-License-Identifier: Apache-2.0 */
/* An application without an engine: the kernels of the table on matrices and vectors that a request brings.
 *
 * 'P' product: the matrix's seven words, u32 bytes of weights, u32 ranges, (u32 begin, u32 end) each, weights, x (padded to 8).
 *     Answers 'P' for each range: rows + 2 floats, 99 wherever the kernel wrote nothing.
 * 'W' widened rows: the same with (row, row) for ranges and no x. Answers 'W' for each: cols + 2 floats.
 *
 * The tests count instructions between the three markers.
 */
#include "colibri/port.h"
#include "../../firmware/arch/frames.h"
#include "kernels/kernels.h"

void kernel_begin(void);
void kernel_quantised(void);
void kernel_end(void);

#define MARK(name)                            \
    __attribute__((noinline)) void name(void) \
    {                                         \
        __asm__ volatile("" ::: "memory");    \
    }
MARK(kernel_begin)
MARK(kernel_quantised)
MARK(kernel_end)

#define MAX_ELEMS 65536u

static _Alignas(16) uint8_t weights[1u << 20];
static float x[MAX_ELEMS];
static float out[MAX_ELEMS + 2];
static uint32_t quant[MAX_ELEMS];
static float scales[MAX_ELEMS / 32];
static uint32_t ranges[256][2];

static colibri_matvec_fn *matvec_of(const colibri_matrix_t *matrix)
{
    if (matrix->dtype == COLIBRI_Q4) {
        return colibri_kernels.matvec_q4;
    }
    return matrix->group != 0 ? colibri_kernels.matvec_q8_group : colibri_kernels.matvec_q8;
}

static void answer(char type, uint32_t n_elems)
{
    uint32_t crc = colibri_frame_begin(type, n_elems * 4);
    colibri_frame_end(colibri_frame_write(crc, out, n_elems * 4));
}

static void fill(uint32_t n_elems)
{
    for (uint32_t i = 0; i < n_elems; i++) {
        out[i] = 99.0f;
    }
}

static void product(const colibri_matrix_t *matrix, uint32_t begin, uint32_t end)
{
    fill(matrix->rows + 2);
    colibri_vector_t vector = {x, quant, scales};
    colibri_matvec_fn *matvec = matvec_of(matrix);
    kernel_begin();
    colibri_kernels.quantise_vector(quant, scales, matrix, x);
    kernel_quantised();
    matvec(out + 1, matrix, weights, &vector, begin, end);
    kernel_end();
    answer('P', matrix->rows + 2);
}

static void widen(const colibri_matrix_t *matrix, uint32_t row)
{
    fill(matrix->cols + 2);
    (matrix->dtype == COLIBRI_Q4 ? colibri_kernels.widen_q4 : colibri_kernels.widen_q8)(out + 1, matrix, weights, row);
    answer('W', matrix->cols + 2);
}

int colibri_app(void)
{
    colibri_request_t request;
    while (colibri_request_begin(&request) == 0) {
        if (request.type == 'E') {
            return 0;
        }
        colibri_matrix_t matrix;
        colibri_request_read(&request, &matrix, sizeof matrix);
        uint32_t n_bytes = colibri_request_read_u32(&request);
        uint32_t n_ranges = colibri_request_read_u32(&request);
        if (request.bad || n_bytes > sizeof weights || n_ranges > 256 || matrix.rows > MAX_ELEMS || matrix.cols > MAX_ELEMS) {
            return 10;
        }
        colibri_request_read(&request, ranges, n_ranges * sizeof ranges[0]);
        colibri_request_read(&request, weights, n_bytes);
        colibri_request_read(&request, x, request.left_bytes);
        if (colibri_request_end(&request) != 0) {
            return 11;
        }
        for (uint32_t i = 0; i < n_ranges; i++) {
            if (request.type == 'P') {
                product(&matrix, ranges[i][0], ranges[i][1]);
            } else {
                widen(&matrix, ranges[i][0]);
            }
        }
    }
    return 1;
}
