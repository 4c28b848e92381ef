/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection/connection.h"

#include "world/inside.h"

void inside_connection(struct lh_connection *connection, struct sdr_context **context, struct sdr_qp **qp)
{
    *context = connection->context;
    *qp = connection->qp;
}

uint32_t inside_connection_bounds(const struct lh_connection *c,
                                  struct inside_bound bounds[INSIDE_BOUNDS_MAX])
{
    const struct sender *s = &c->sender;
    const struct receiver *r = &c->receiver;
    uint64_t chunk = c->attr.chunk_bytes;
    uint32_t count = 0;
    bounds[count++] = (struct inside_bound){"messages to send", s->next - s->oldest, MESSAGES_MAX};
    bounds[count++] = (struct inside_bound){"messages to receive", r->next - r->oldest, MESSAGES_MAX};
    bounds[count++] =
        (struct inside_bound){"segments sent", s->segment_next - s->segment_oldest, c->attr.slots};
    bounds[count++] =
        (struct inside_bound){"segments received", r->segment_next - r->segment_oldest, c->attr.slots};
    bounds[count++] = (struct inside_bound){"held messages", s->held_head - s->held_tail, HELD_MAX};
    bounds[count++] = (struct inside_bound){"sends that end", s->ending_count, 2 * c->attr.slots};
    /* A machine may call back chunks that it gave up as lost: they are in flight once more. */
    bounds[count++] = (struct inside_bound){"bytes of all segments", s->in_flight_bytes,
                                            c->attr.slots * (c->attr.slot_bytes + chunk)};
    bounds[count++] = (struct inside_bound){"pending requests", c->requests->pending, LH_REQUESTS_MAX};
    bounds[count++] = (struct inside_bound){"requests in use", c->requests->in_use, LH_REQUESTS_MAX};
    return count;
}

void inside_connection_number(struct lh_connection *sender, struct lh_connection *receiver,
                              uint32_t message, uint32_t segment)
{
    struct sender *s = &sender->sender;
    struct receiver *r = &receiver->receiver;
    s->oldest = s->next = s->current = message;
    r->oldest = r->next = r->posting = message;
    s->segment_oldest = s->segment_next = segment;
    r->segment_oldest = r->segment_next = r->newest_seen = segment;
}

bool inside_connection_segment(const struct lh_connection *c, uint32_t sequence,
                               struct inside_segment *segment)
{
    const struct recv_segment *own = &c->receiver.segments[sequence % c->attr.slots];
    if (own->sequence != sequence || own->state != SEGMENT_OPEN)
        return false;
    *segment = (struct inside_segment){
        .scheme = own->scheme->id,
        .chunks = own->bitmap,
        .count = (own->bytes + c->attr.chunk_bytes - 1) / c->attr.chunk_bytes,
        .cut = own->bytes < own->posted_bytes,
        .extra = own->coded.bitmap,
        .extra_count = own->coded.bitmap ? own->coded.extra_chunks : 0,
    };
    return true;
}
