/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/tell.h"

#include <assert.h>

static_assert((HELD_MAX & (HELD_MAX - 1)) == 0, "a ring");

bool tell(struct lh_connection *c, const struct transfer_message *message)
{
    uint8_t bytes[TRANSFER_BYTES_MAX];
    return lh_sdr_message_send(c->qp, bytes, transfer_encode(message, bytes)) == 0;
}

static struct transfer_message lengths_of(struct lh_connection *c, const struct send_segment *segment)
{
    struct transfer_message message = {.kind = TRANSFER_TO_RECEIVER};
    message.body.to_receiver.segment = segment->sequence;
    message.body.to_receiver.message = segment->message;
    message.body.to_receiver.segment_bytes = segment->bytes;
    message.body.to_receiver.message_bytes = send_message_at(c, segment->message)->bytes;
    return message;
}

/* Behind a slow link the chunks of a segment wait for long, and so may its lengths. */
static lh_time tell_span(const struct lh_connection *c, lh_time now)
{
    return connection_repeat_span(c, 0) + queue_delay_now(&c->sender.delay, now);
}

void tell_lengths(struct lh_connection *c, struct send_segment *segment, lh_time now)
{
    struct transfer_message message = lengths_of(c, segment);
    tell(c, &message);
    segment->tell_at = now + tell_span(c, now);
}

static bool chunks_have_left(struct lh_connection *c, uint64_t after)
{
    return lh_sdr_send_queued_bytes(c->qp) <= c->sender.posted_bytes - after;
}

void tell_held(struct lh_connection *c)
{
    struct sender *s = &c->sender;
    /* At most HELD_MAX. */
    while (s->held_tail != s->held_head) {
        struct held_message *held = &s->held[s->held_tail & (HELD_MAX - 1)];
        if (!chunks_have_left(c, held->after))
            return;
        lh_sdr_message_send(c->qp, held->data, held->bytes);
        s->held_tail++;
    }
}

void tell_receiver(struct lh_connection *c, struct send_segment *segment, const uint8_t *data,
                   uint32_t bytes, lh_time now)
{
    struct sender *s = &c->sender;
    struct transfer_message message = lengths_of(c, segment);
    message.body.to_receiver.scheme = data;
    message.body.to_receiver.scheme_bytes = bytes;
    segment->tell_at = now + tell_span(c, now);
    if (s->held_head == s->held_tail && chunks_have_left(c, s->posted_bytes)) {
        tell(c, &message);
        return;
    }
    if (s->held_head - s->held_tail == HELD_MAX)
        return; /* lost; machines expect that */
    struct held_message *held = &s->held[s->held_head++ & (HELD_MAX - 1)];
    held->after = s->posted_bytes;
    held->bytes = (uint32_t)transfer_encode(&message, held->data);
}

void tell_sender(struct lh_connection *c, const struct recv_segment *segment, const uint8_t *data,
                 uint32_t bytes)
{
    struct transfer_message message = {.kind = TRANSFER_TO_SENDER};
    message.body.to_sender.segment = segment->sequence;
    message.body.to_sender.scheme = data;
    message.body.to_sender.scheme_bytes = bytes;
    tell(c, &message);
}
