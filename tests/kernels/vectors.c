/* SPDX-License-Identifier: Apache-2.0 */
/* An application without an engine: the vector kernels of the table on what a request brings.
 *
 * 'K' kernel: eight words (its number below, then its arguments: positions in the memory, counts, the bits of a float), then the
 * memory's words. Answers 'K': the memory after the call.
 */
#include "colibri/port.h"
#include "../../firmware/arch/frames.h"
#include "kernels/kernels.h"

enum { DOT, AXPY, SCALE, ADD, NORMALISE, ABSMAX, SOFTMAX, SWIGLU, ROTATE, SCORES, MIX, STORE, MATVEC };

static _Alignas(16) float memory[1u << 16];

static void call(const uint32_t *a)
{
    float *x = memory + a[1];
    const float *y = memory + a[2];
    const float *w = memory + a[3];
    switch (a[0]) {
    case DOT: *x = colibri_kernels.dot(y, w, a[4]); break;
    case AXPY: colibri_kernels.axpy(x, colibri_from_bits(a[4]), y, a[5]); break;
    case SCALE: colibri_kernels.scale(x, colibri_from_bits(a[4]), a[5]); break;
    case ADD: colibri_kernels.add(x, y, a[5]); break;
    case NORMALISE: colibri_kernels.normalise(x, y, colibri_from_bits(a[4]), w, a[5]); break;
    case ABSMAX: *x = colibri_from_bits(colibri_kernels.absmax(y, a[5])); break;
    case SOFTMAX: colibri_kernels.softmax(x, a[5]); break;
    case SWIGLU: colibri_kernels.swiglu(x, y, a[5]); break;
    case ROTATE: colibri_kernels.rotate(x, y, w, a[4], a[5], a[6]); break;
    case SCORES:
    case MIX: { /* the cache, its scales and its numbers of rows, columns, stride, scale stride stand at the memory's start */
        const uint32_t *head = (const uint32_t *)(const void *)memory;
        colibri_kv_rows_t rows = {memory + a[3], memory + a[4], head[0], head[1], head[2], head[3]};
        (a[0] == SCORES ? colibri_kernels.scores : colibri_kernels.mix)(x, y, &rows);
        break;
    }
    case STORE: /* what the cache holds of y, to x */
#if COLIBRI_KV_F16
        colibri_kernels.narrow_f16((uint16_t *)(void *)x, y, a[5]);
#elif COLIBRI_KV_Q8
        colibri_kernels.quantise((int8_t *)(void *)x, memory + a[3], y, a[5]);
#endif
        break;
    case MATVEC: { /* x is the weights, of a[4] padded rows, a[5] columns and dtype a[6]; in two ranges of rows */
        uint32_t bytes = a[6] == COLIBRI_F32 ? 4 : 2;
        colibri_matrix_t matrix = {a[4], a[5], a[6], 0, COLIBRI_KERNEL_LAYOUT, (a[5] + 7) / 8 * 8 * bytes, 0};
        colibri_vector_t vector = {y, NULL, NULL};
        colibri_matvec_fn *matvec = a[6] == COLIBRI_F32    ? colibri_kernels.matvec_f32
                                    : a[6] == COLIBRI_BF16 ? colibri_kernels.matvec_bf16
                                                           : colibri_kernels.matvec_f16;
        matvec(memory + a[3], &matrix, (const uint8_t *)x, &vector, 0, a[4] - 1);
        matvec(memory + a[3], &matrix, (const uint8_t *)x, &vector, a[4] - 1, a[4]);
        break;
    }
    default: break;
    }
}

int colibri_app(void)
{
    colibri_request_t request;
    while (colibri_request_begin(&request) == 0) {
        if (request.type == 'E') {
            return 0;
        }
        uint32_t arguments[8];
        colibri_request_read(&request, arguments, sizeof arguments);
        uint32_t n_bytes = request.left_bytes;
        if (request.bad || n_bytes > sizeof memory) {
            return 10;
        }
        colibri_request_read(&request, memory, n_bytes);
        if (colibri_request_end(&request) != 0) {
            return 11;
        }
        call(arguments);
        uint32_t crc = colibri_frame_begin('K', n_bytes);
        colibri_frame_end(colibri_frame_write(crc, memory, n_bytes));
    }
    return 1;
}
