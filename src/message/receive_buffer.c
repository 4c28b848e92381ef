/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/receive_buffer.h"

#include <assert.h>
#include <string.h>

#include <longhaul/connection.h>

#include "base/bitmap.h"
#include "base/bytes.h"
#include "base/min_max.h"

/* ---- buffer ---------------------------------------------------------------------------------------- */

/* The part that has this byte; *offset becomes that within the part. */
static const struct message_part *part_at(const struct message_parts *parts, uint64_t *offset)
{
    uint32_t i = 0;
    for (; *offset >= parts->list[i].bytes; i++) {
        *offset -= parts->list[i].bytes;
        assert(i + 1 < parts->count);
    }
    return &parts->list[i];
}

bool buffer_place(const struct message_buffer *buffer, uint64_t offset, uint64_t bytes,
                  struct message_part *place)
{
    *place = (struct message_part){.bytes = bytes};
    if (bytes == 0)
        return true;
    if (!buffer->parts) {
        place->address = buffer->address + offset;
        place->lkey = buffer->lkey;
        return true;
    }
    const struct message_part *part = part_at(buffer->parts, &offset);
    place->address = part->address + offset;
    place->lkey = part->lkey;
    return bytes <= part->bytes - offset;
}

/* The range of one part after the other: at most LH_PARTS_MAX turns. Bytes go out, or come from in. */
static void copy(const struct message_parts *parts, uint64_t offset, uint8_t *out, const uint8_t *in,
                 uint64_t bytes)
{
    const struct message_part *part = part_at(parts, &offset);
    for (uint64_t done = 0; done < bytes; part++, offset = 0) {
        uint64_t n = lh_min(part->bytes - offset, bytes - done);
        assert(part < parts->list + parts->count);
        if (out)
            lh_copy(out + done, part->address + offset, n);
        else
            lh_copy(part->address + offset, in + done, n);
        done += n;
    }
}

void buffer_read(const struct message_buffer *buffer, uint64_t offset, void *out, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (buffer->parts)
        copy(buffer->parts, offset, out, NULL, bytes);
    else
        lh_copy(out, buffer->address + offset, bytes);
}

void buffer_write(const struct message_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (buffer->parts)
        copy(buffer->parts, offset, NULL, data, bytes);
    else
        lh_copy(buffer->address + offset, data, bytes);
}

void buffer_zero(const struct message_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    if (bytes == 0)
        return;
    if (!buffer->parts) {
        memset(buffer->address + offset, 0, bytes);
        return;
    }
    const struct message_part *part = part_at(buffer->parts, &offset);
    for (uint64_t done = 0; done < bytes; part++, offset = 0) { /* at most LH_PARTS_MAX turns */
        uint64_t n = lh_min(part->bytes - offset, bytes - done);
        assert(part < buffer->parts->list + buffer->parts->count);
        memset(part->address + offset, 0, n);
        done += n;
    }
}

/* ---- arrived --------------------------------------------------------------------------------------- */

static uint64_t packets_of(uint64_t bytes, uint64_t packet_bytes)
{
    return bytes / packet_bytes + (bytes % packet_bytes != 0);
}

size_t arrived_words(uint64_t bytes, uint64_t packet_bytes)
{
    return LH_BITMAP_WORDS(packets_of(bytes, packet_bytes));
}

bool arrived_next_missing(const struct arrived *arrived, uint64_t from, struct lh_range *range)
{
    uint64_t packets = packets_of(arrived->bytes, arrived->packet_bytes);
    assert(from % arrived->packet_bytes == 0 || from == arrived->bytes);
    if (from >= arrived->bytes)
        return false;
    uint64_t first = from / arrived->packet_bytes, end = packets;
    if (arrived->bits) {
        first = lh_bitmap_next_clear(arrived->bits, packets, first);
        end = lh_bitmap_next_set(arrived->bits, packets, first);
    }
    if (first == packets)
        return false;
    range->offset = first * arrived->packet_bytes;
    range->bytes = lh_min(end * arrived->packet_bytes, arrived->bytes) - range->offset;
    return true;
}

uint64_t arrived_missing(const struct arrived *arrived, uint64_t *bytes)
{
    struct lh_range range = {0};
    uint64_t ranges = 0;
    *bytes = 0;
    for (; arrived_next_missing(arrived, range.offset + range.bytes, &range); ranges++)
        *bytes += range.bytes;
    return ranges;
}

/* ---- pieces ---------------------------------------------------------------------------------------- */

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
    uint64_t from = lh_max(start, range->offset) - range->offset;
    uint64_t to = lh_min(start + part->bytes, end);
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
        buffer_read(buffer, range->offset + from, memory, lh_min(to, range->bytes) - from);
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
    *count = (uint32_t)lh_min(*count, end_of(pieces, i) - chunk);
    piece.address += (uint64_t)(chunk - piece.first) * chunk_bytes;
    piece.first = chunk;
    return piece;
}
