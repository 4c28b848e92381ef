/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/buffer/pieces.h"

#include <assert.h>

#include "base/least.h"

static void add(struct segment_pieces *pieces, const uint8_t *address, uint32_t lkey, uint32_t first)
{
    assert(pieces->count < PIECES_MAX);
    pieces->list[pieces->count++] = (struct segment_piece){address, lkey, first};
}

/* The chunks that lie in this part alone, [*first, *last); it begins at `start` of its message. */
static void chunks_of(const struct message_part *part, uint64_t start, const struct segment_range *range,
                      uint64_t *first, uint64_t *last)
{
    uint64_t chunk = range->chunk_bytes;
    uint64_t end = range->offset + range->bytes;
    uint64_t from = lh_most(start, range->offset) - range->offset;
    uint64_t to = lh_least(start + part->bytes, end);
    *first = (from + chunk - 1) / chunk;
    *last = to <= range->offset ? 0 : to - range->offset;
    *last = (to == end ? *last + chunk - 1 : *last) / chunk;
}

uint32_t pieces_cut(const struct message_buffer *buffer, const struct segment_range *range, bool whole,
                    struct segment_pieces *pieces)
{
    uint64_t start = 0;
    uint32_t next = 0; /* chunk that has no piece yet */
    uint32_t copied = 0;
    assert(buffer->parts && range->bytes > 0);
    pieces->count = 0;
    pieces->chunks = (range->bytes - 1) / range->chunk_bytes + 1;
    for (uint32_t i = 0; i < buffer->parts->count && !whole; i++) {
        const struct message_part *part = &buffer->parts->list[i];
        uint64_t first, last;
        chunks_of(part, start, range, &first, &last);
        if (last > first && (last - first) * range->chunk_bytes >= PIECE_BYTES_MIN) {
            if (first > next)
                add(pieces, NULL, 0, next);
            copied += (uint32_t)first - next;
            add(pieces, part->address + (range->offset + first * range->chunk_bytes - start), part->lkey,
                (uint32_t)first);
            next = (uint32_t)last;
        }
        start += part->bytes;
    }
    if (next < pieces->chunks)
        add(pieces, NULL, 0, next);
    return copied + pieces->chunks - next;
}

static uint32_t end_of(const struct segment_pieces *pieces, uint32_t i)
{
    return i + 1 < pieces->count ? pieces->list[i + 1].first : pieces->chunks;
}

void pieces_copy(struct segment_pieces *pieces, const struct message_buffer *buffer,
                 const struct segment_range *range, uint8_t *memory, uint32_t lkey)
{
    for (uint32_t i = 0; i < pieces->count; i++) {
        struct segment_piece *piece = &pieces->list[i];
        if (piece->address)
            continue;
        uint64_t from = (uint64_t)piece->first * range->chunk_bytes;
        uint64_t to = (uint64_t)end_of(pieces, i) * range->chunk_bytes;
        buffer_read(buffer, range->offset + from, memory, lh_least(to, range->bytes) - from);
        piece->address = memory;
        piece->lkey = lkey;
        memory += to - from;
    }
}

struct segment_piece pieces_at(const struct segment_pieces *pieces, uint32_t chunk, uint32_t chunk_bytes,
                               uint32_t *count)
{
    uint32_t i = 0;
    assert(chunk<pieces->chunks && * count> 0);
    while (end_of(pieces, i) <= chunk) /* at most PIECES_MAX */
        i++;
    struct segment_piece piece = pieces->list[i];
    assert(piece.address);
    *count = (uint32_t)lh_least(*count, end_of(pieces, i) - chunk);
    piece.address += (uint64_t)(chunk - piece.first) * chunk_bytes;
    piece.first = chunk;
    return piece;
}
