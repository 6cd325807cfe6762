/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, as in docs/DESIGN.md 4: 'C' 'B' type 0, u32 payload bytes, payload, u32 CRC-32 of all before it; little-endian.
 *
 * Both directions are streamed: no function here holds a payload, so a frame of any size needs no buffer. The caller MUST write
 * or read exactly the payload bytes it announced or was told, and finish the frame.
 */
#ifndef COLIBRI_FRAMES_H
#define COLIBRI_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#define COLIBRI_CRC32_INIT 0xffffffffu

/* Continue a CRC-32 (IEEE 802.3, reflected, as zlib's) over n_bytes. Start with COLIBRI_CRC32_INIT; the CRC is ~state. */
uint32_t colibri_crc32_update(uint32_t state, const void *from, size_t n_bytes);

/* Begin a frame: writes its header. Returns the CRC state to pass on. */
uint32_t colibri_frame_begin(char type, uint32_t payload_bytes);

/* Write the next n_bytes of the payload. Returns the new CRC state. */
uint32_t colibri_frame_write(uint32_t crc, const void *from, size_t n_bytes);
uint32_t colibri_frame_write_u32(uint32_t crc, uint32_t value);
uint32_t colibri_frame_write_u64(uint32_t crc, uint64_t value);

/* Finish the frame: writes its CRC. */
void colibri_frame_end(uint32_t crc);

/* A request being read. `left_bytes` of its payload are still to come. */
typedef struct {
    uint32_t crc;
    uint32_t left_bytes;
    char type;
    char bad;   /* set once the stream ended, more was read than the payload holds or the CRC was wrong */
    char ended; /* set once the CRC was read */
} colibri_request_t;

/* Wait for a request's header, past bytes that are none: noise on a line, the rest of a damaged request.
 * Returns 0, or -1 where the stream ended. */
int colibri_request_begin(colibri_request_t *request);

/* Read the next n_bytes of its payload. On failure `bad` is set and to[] is zeroed. */
void colibri_request_read(colibri_request_t *request, void *to, size_t n_bytes);
uint32_t colibri_request_read_u32(colibri_request_t *request);
uint64_t colibri_request_read_u64(colibri_request_t *request);

/* Skip what is left of the payload and check the CRC. Returns 0, or -1 where the request is not to be trusted. */
int colibri_request_end(colibri_request_t *request);

/* Skip what is left of a request that is not going to be used. */
void colibri_request_skip(colibri_request_t *request);

#endif
