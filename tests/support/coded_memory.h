/*
 * coded_memory.h - the memory of a transfer at both ends, for machines of a scheme that codes: real bytes
 * that are encoded, carried, decoded and compared.
 *
 * The message ends inside its last chunk, and every buffer is exactly as long as it must be, so that a
 * sanitizer sees what goes past the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef SUPPORT_CODED_MEMORY_H
#define SUPPORT_CODED_MEMORY_H

#include <longhaul/scheme.h>

#include "base/prng.h"

struct coded_memory {
    const struct lh_scheme_coding *coding;
    struct lh_coding sender;
    struct lh_coding receiver;
    uint8_t *message;
    uint32_t extra_chunks;
    uint8_t *bitmap; /* extra chunks that the receiver has */
    uint8_t *fresh;  /* what the sender's extra chunks hold before they are encoded */
};

/* chunk_bytes >= 8. The last chunk's length follows from the prng. */
void coded_memory_start(struct coded_memory *memory, const struct lh_scheme_coding *coding,
                        const uint8_t *params, uint32_t chunks, uint32_t chunk_bytes, struct lh_prng *prng);
void coded_memory_end(struct coded_memory *memory);

/* Bytes of a chunk, extra or not, as it is now at the sender; an extra one must have been encoded. */
const uint8_t *coded_memory_chunk(const struct coded_memory *memory, uint32_t chunk);
void coded_memory_encode(struct coded_memory *memory, uint32_t group, uint32_t first_row, uint32_t rows);
/* A chunk arrives. */
void coded_memory_arrive(struct coded_memory *memory, uint32_t chunk, const uint8_t *data);
/* Decodes all that is missing and compares with the message. Returns how many chunks were recovered. */
uint32_t coded_memory_decode(struct coded_memory *memory, const uint8_t *chunk_bitmap);

#endif
