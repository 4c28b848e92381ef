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
