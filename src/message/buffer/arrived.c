/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/buffer/arrived.h"

#include <assert.h>

#include "base/bitmap.h"
#include "base/least.h"

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
    range->bytes = lh_least(end * arrived->packet_bytes, arrived->bytes) - range->offset;
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
