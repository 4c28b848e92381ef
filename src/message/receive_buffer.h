/*
 * receive_buffer.h - where a message lies, in one or several parts, and which bytes of it arrived.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_RECEIVE_BUFFER_H
#define LH_MESSAGE_RECEIVE_BUFFER_H

#include <longhaul/connection.h>

/* Bytes in one place, as the SDR layer knows them. */
struct message_part {
    uint8_t *address;
    uint64_t bytes; /* not 0 */
    uint32_t lkey;
};

struct message_parts {
    uint32_t count; /* 2 to LH_PARTS_MAX */
    struct message_part list[LH_PARTS_MAX];
};

/* Its length is known to its owner, and each range below is within it. What is sent is only read. */
struct message_buffer {
    uint8_t *address; /* in one place: there; else NULL, as without bytes */
    uint32_t lkey;
    const struct message_parts *parts; /* NULL: in one place */
};

/* Whether a range lies in one place; then *place says where, its `bytes` are those from there to the end of
 * the range. An empty range lies nowhere. */
bool buffer_place(const struct message_buffer *buffer, uint64_t offset, uint64_t bytes,
                  struct message_part *place);
void buffer_read(const struct message_buffer *buffer, uint64_t offset, void *out, uint64_t bytes);
void buffer_write(const struct message_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes);
void buffer_zero(const struct message_buffer *buffer, uint64_t offset, uint64_t bytes);

/* ---- arrived --------------------------------------------------------------------------------------- */

/* Which packets of a message have come: a bit each, and the ranges of those that have not. */

struct arrived {
    const uint64_t *bits; /* NULL: none has come */
    uint64_t packet_bytes;
    uint64_t bytes; /* of the message */
};

/* Words of memory for the bits of a message of so many bytes. */
size_t arrived_words(uint64_t bytes, uint64_t packet_bytes);
/* The first range at or after `from` that is missing; false: there is none. Neither end is within a
 * packet but for the message's end. */
bool arrived_next_missing(const struct arrived *arrived, uint64_t from, struct lh_range *range);
/* Its number of ranges; *bytes: of all of them. */
uint64_t arrived_missing(const struct arrived *arrived, uint64_t *bytes);

/* ---- pieces ---------------------------------------------------------------------------------------- */

/*
 * A segment that lies in several parts, as runs of chunks that each lie in one place: where the
 * parts are, or in a copy of chunks that have bytes of several.
 */

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
