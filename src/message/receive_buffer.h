/*
 * pieces.h - a segment that lies in several parts, as runs of chunks that each lie in one place: where the
 * parts are, or in a copy of chunks that have bytes of several.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_BUFFER_PIECES_H
#define LH_MESSAGE_BUFFER_PIECES_H

#include "message/buffer/buffer.h"

#define PIECES_MAX (2 * LH_PARTS_MAX + 1) /* of each part one, and copies between */
/* A shorter run is copied: that costs less than one more entry of the injection queues. */
#define PIECE_BYTES_MIN 16384u

struct segment_range {
    uint64_t offset; /* in its message */
    uint32_t bytes;  /* not 0 */
    uint32_t chunk_bytes;
};

struct segment_piece {
    const uint8_t *address; /* of its first chunk; NULL: to be copied */
    uint32_t lkey;
    uint32_t first; /* its first chunk; it ends before the next piece */
};

struct segment_pieces {
    uint32_t count;
    uint32_t chunks; /* of the segment */
    struct segment_piece list[PIECES_MAX];
};

/* Cuts a range of a buffer in parts. whole: all of it is to be copied, as one piece. Returns the number of
 * chunks to be copied. */
uint32_t pieces_cut(const struct message_buffer *buffer, const struct segment_range *range, bool whole,
                    struct segment_pieces *pieces);
/* Copies what is to be copied, to memory for that many chunks. */
void pieces_copy(struct segment_pieces *pieces, const struct message_buffer *buffer,
                 const struct segment_range *range, uint8_t *memory, uint32_t lkey);
/* The place of a chunk; *count, of chunks from there on, becomes what the place has of them. */
struct segment_piece pieces_at(const struct segment_pieces *pieces, uint32_t chunk, uint32_t chunk_bytes,
                               uint32_t *count);

#endif
