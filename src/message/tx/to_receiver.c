/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/tx/to_receiver.h"

#include <assert.h>

#include "base/least.h"
#include "message/control/control_tx.h"
#include "message/control/timing.h"
#include "sdr/driver.h"

#define QUEUED_MAX_NS    (LH_NS_PER_S / 4) /* data_path.c wants eight in two seconds */
#define SILENCE_FRACTION 8u

static_assert((HELD_MAX & (HELD_MAX - 1)) == 0, "a ring");

static struct transfer_message lengths_of(const struct tx *tx, const struct tx_segment *segment)
{
    struct transfer_message message = {.kind = TRANSFER_TO_RECEIVER};
    message.body.to_receiver.segment = segment->sequence;
    message.body.to_receiver.message = segment->message;
    message.body.to_receiver.segment_bytes = segment->bytes;
    message.body.to_receiver.message_bytes = tx_message_at(tx, segment->message)->bytes;
    message.body.to_receiver.tag = tx_message_at(tx, segment->message)->tag;
    return message;
}

/* Of the path, since the segment began. */
static lh_time silence(const struct tx *tx, const struct tx_segment *segment, lh_time now)
{
    lh_time from = lh_most(tx->path->last_heard_ns, segment->began_ns);
    return now > from ? now - from : 0;
}

/* Behind a slow link the chunks of a segment wait for long, and so may its lengths. But not as long as chunks
 * wait where none arrives: by its lengths the receiver notices that. Where nothing is heard at all, they are
 * announced as seldom as a machine probes (schemes/sr/probe.h). */
static lh_time next_lengths(const struct tx *tx, const struct tx_segment *segment, lh_time now)
{
    lh_time refresh_ns =
        lh_most(timing_refresh_interval(tx->path, 0), silence(tx, segment, now) / SILENCE_FRACTION);
    return lh_least(now + refresh_ns + queue_delay_now(&tx->delay, now),
                    segment->lengths_sent_ns + refresh_ns + QUEUED_MAX_NS);
}

static uint64_t bytes_left(const struct tx *tx)
{
    return tx->posted_bytes - sdr_qp_send_unsent_bytes(tx->qp);
}

static void send_now(struct tx *tx, struct tx_segment *segment, const struct transfer_message *message,
                     lh_time now)
{
    control_tx_send(tx->qp, message);
    if (segment->lengths_sent_ns == 0)
        segment->began_ns = now;
    segment->lengths_sent_ns = now;
    segment->lengths_after = bytes_left(tx);
    segment->lengths_at = next_lengths(tx, segment, now);
}

void to_receiver_lengths(struct tx *tx, struct tx_segment *segment, lh_time now)
{
    struct transfer_message message = lengths_of(tx, segment);
    bool waits = queue_delay_now(&tx->delay, now) >= QUEUED_MAX_NS;
    if (waits && segment->lengths_sent_ns != 0 && bytes_left(tx) == segment->lengths_after)
        segment->lengths_at = now + QUEUED_MAX_NS; /* the receiver would miss what was not sent */
    else
        send_now(tx, segment, &message, now);
}

static bool chunks_have_left(const struct tx *tx, uint64_t after)
{
    return sdr_qp_send_unsent_bytes(tx->qp) <= tx->posted_bytes - after;
}

void to_receiver_send_held(struct tx *tx)
{
    /* At most HELD_MAX. */
    while (tx->held_tail != tx->held_head) {
        struct held_message *held = ring_at(&tx->held, tx->held_tail);
        if (!chunks_have_left(tx, held->after))
            return;
        lh_sdr_message_send(tx->qp, held->data, held->bytes);
        tx->held_tail++;
    }
}

void to_receiver_scheme(struct tx *tx, struct tx_segment *segment, const uint8_t *data, uint32_t bytes,
                        lh_time now)
{
    struct transfer_message message = lengths_of(tx, segment);
    message.body.to_receiver.scheme = data;
    message.body.to_receiver.scheme_bytes = bytes;
    if (tx->held_head == tx->held_tail && chunks_have_left(tx, tx->posted_bytes)) {
        send_now(tx, segment, &message, now);
        return;
    }
    segment->lengths_at = next_lengths(tx, segment, now);
    uint32_t count = tx->held_head - tx->held_tail;
    if (count == HELD_MAX || !ring_hold(&tx->held, tx->store, tx->held_tail, count + 1))
        return; /* lost; machines expect that */
    struct held_message *held = ring_at(&tx->held, tx->held_head++);
    held->after = tx->posted_bytes;
    held->bytes = (uint32_t)transfer_encode(&message, held->data);
}
