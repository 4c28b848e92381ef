/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx/memory.h"

#include <assert.h>

#include "message/tx/cancel.h"

/* What is received has such memory, too, but that is no help: it may be what the peer has none to send. */
static bool will_give_back(const struct tx *tx)
{
    for (uint32_t i = 0; i < tx->ending_count; i++)
        if (tx->ending[i].buffer)
            return true;
    for (uint32_t i = 0; i < tx->attr->slots; i++)
        if (tx->segments[i].active && (tx->segments[i].coded.buffer || tx->segments[i].copied))
            return true;
    return false;
}

bool memory_take(struct tx *tx, struct tx_message *message, size_t bytes, size_t notes_bytes,
                 struct parity_buffer **buffer, lh_time now)
{
    *buffer = bytes > 0 ? parity_take(tx->parity, bytes, notes_bytes) : NULL;
    if (*buffer || bytes == 0)
        return true;
    if (!will_give_back(tx))
        cancel_message(tx, message, LH_ENOMEM, now);
    return false;
}

bool memory_place(struct tx *tx, struct tx_message *message, const struct segment_range *range, bool whole,
                  struct tx_place *place, lh_time now)
{
    struct message_part part;
    struct segment_pieces pieces;
    *place = (struct tx_place){0};
    if (buffer_place(&message->buffer, range->offset, range->bytes, &part)) {
        place->payload = part.address;
        place->lkey = part.lkey;
        return true;
    }
    size_t chunks = pieces_cut(&message->buffer, range, whole, &pieces);
    assert(chunks > 0 || pieces.count > 1);
    /* Without chunks to be copied there are still the notes. */
    size_t bytes = (chunks > 0 ? chunks : 1) * range->chunk_bytes;
    if (!memory_take(tx, message, bytes, sizeof pieces, &place->copied, now))
        return false;
    place->pieces = (struct segment_pieces *)place->copied->notes;
    *place->pieces = pieces;
    return true;
}

void memory_copy(const struct tx_message *message, const struct segment_range *range,
                 struct tx_segment *segment)
{
    struct parity_buffer *copied = segment->copied;
    if (!copied)
        return;
    pieces_copy(segment->pieces, &message->buffer, range, copied->chunks, copied->lkey);
    if (segment->pieces->count == 1)
        segment->payload = copied->chunks;
}
