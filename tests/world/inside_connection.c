/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/completion_queue.h"
#include "message/connection_state.h"

#include "world/inside.h"

void inside_connection(struct lh_connection *connection, struct sdr_context **context, struct sdr_qp **qp)
{
    *context = connection->context;
    *qp = connection->qp;
}

struct lh_connection *inside_inner(const struct lh_connection *connection, struct sdr_qp **qp)
{
    struct lh_connection *sub = connection->onesided_parent.sub;
    *qp = sub ? sub->qp : NULL;
    return sub;
}

uint32_t inside_queue_entries(struct lh_completion_queue *queue)
{
    return atomic_load(&queue->ring.count);
}

uint32_t inside_connection_bounds(const struct lh_connection *c,
                                  struct inside_bound bounds[INSIDE_BOUNDS_MAX])
{
    const struct tx *tx = &c->tx;
    const struct rx *rx = &c->rx;
    uint64_t chunk = c->attr.chunk_bytes;
    uint32_t count = 0;
    bounds[count++] = (struct inside_bound){"messages to send", tx->next - tx->oldest, MESSAGES_MAX};
    bounds[count++] = (struct inside_bound){"messages to receive", rx->next - rx->oldest, MESSAGES_MAX};
    bounds[count++] =
        (struct inside_bound){"segments sent", tx->segment_next - tx->segment_oldest, c->attr.slots};
    bounds[count++] =
        (struct inside_bound){"segments received", rx->segment_next - rx->segment_oldest, c->attr.slots};
    bounds[count++] = (struct inside_bound){"held messages", tx->held_head - tx->held_tail, HELD_MAX};
    bounds[count++] = (struct inside_bound){"sends that end", tx->ending_count, 2 * c->attr.slots};
    /* A machine may call back chunks that it gave up as lost: they are in flight once more. */
    bounds[count++] = (struct inside_bound){"bytes of all segments", tx->in_flight_bytes,
                                            c->attr.slots * (c->attr.slot_bytes + chunk)};
    bounds[count++] = (struct inside_bound){"pending requests", c->requests->pending, LH_REQUESTS_MAX};
    bounds[count++] = (struct inside_bound){"requests in use", c->requests->in_use, LH_REQUESTS_MAX};
    if (!c->parent)
        return count;
    bounds[count++] = (struct inside_bound){"reads that are answered", c->onesided->reads, LH_READS_MAX};
    bounds[count++] =
        (struct inside_bound){"reads without an answer", c->onesided->asked.count, LH_READS_MAX};
    return count;
}

void inside_connection_number(struct lh_connection *sender, struct lh_connection *receiver,
                              uint32_t message, uint32_t segment)
{
    struct tx *tx = &sender->tx;
    struct rx *rx = &receiver->rx;
    tx->oldest = tx->next = tx->current = message;
    rx->oldest = rx->next = rx->posting = rx->active = message;
    tx->segment_oldest = tx->segment_next = segment;
    rx->segment_oldest = rx->segment_next = rx->newest_seen = segment;
}

bool inside_connection_segment(const struct lh_connection *c, uint32_t sequence,
                               struct inside_segment *segment)
{
    if (!c->rx.segments)
        return false;
    const struct rx_segment *own = rx_segment_at(&c->rx, sequence);
    if (own->sequence != sequence || own->state != SEGMENT_OPEN)
        return false;
    *segment = (struct inside_segment){
        .scheme = own->scheme->id,
        .chunks = own->bitmap,
        .count = rx_segment_chunks(&c->rx, own),
        .cut = own->bytes < own->posted_bytes,
        .extra = own->coded.bitmap,
        .extra_count = own->coded.bitmap ? own->coded.extra_chunks : 0,
    };
    return true;
}
