/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/rx/lengths.h"

#include "message/control/number.h"
#include "message/rx/arrivals.h"
#include "message/rx/done.h"
#include "message/rx/messages.h"
#include "message/rx/refuse.h"
#include "sdr/driver.h"

/* False when packets have come that the message of this length does not have. */
static bool cut_segment(struct rx *rx, struct rx_segment *segment, const struct rx_message *message)
{
    uint64_t offset = segment->index * message->segment_bytes;
    if (segment->index >= message->segments) {
        rx_close_segment(rx, segment, SEGMENT_UNNEEDED);
        return true;
    }
    uint64_t left = message->bytes - offset;
    segment->bytes = (uint32_t)(left < segment->posted_bytes ? left : segment->posted_bytes);
    segment->needs_step = true;
    return lh_sdr_recv_truncate(segment->handle, segment->bytes) == 0;
}

/* 0, or the lh_error with which the message is to be refused. */
static int learn_length(struct rx *rx, struct rx_message *message, const struct transfer_message *announced)
{
    uint64_t bytes = announced->body.to_receiver.message_bytes;
    message->tag = announced->body.to_receiver.tag;
    if (bytes > message->capacity)
        return LH_ETRUNCATED;
    message->bytes = bytes;
    message->segments = rx_segments_of(message, bytes);
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        bool own = segment->state == SEGMENT_OPEN && segment->message == message->number;
        if (own && !cut_segment(rx, segment, message))
            return LH_EPROTOCOL;
    }
    return 0;
}

/* Whether these lengths, and the tag, can be those of this segment. */
static bool lengths_possible(const struct rx_segment *segment, const struct rx_message *message,
                             const struct transfer_message *announced)
{
    uint64_t bytes = announced->body.to_receiver.message_bytes;
    uint64_t offset = segment->index * message->segment_bytes;
    if (announced->body.to_receiver.message != segment->message)
        return false;
    if (message->bytes != MESSAGE_BYTES_UNKNOWN &&
        (message->bytes != bytes || message->tag != announced->body.to_receiver.tag))
        return false;
    if (offset > bytes || (offset == bytes && segment->index > 0))
        return false;
    uint64_t left = bytes - offset;
    uint64_t limit = message->segment_bytes;
    return announced->body.to_receiver.segment_bytes == (left < limit ? left : limit);
}

/* False when the data path is broken: the connection ends. */
static bool data_passes(struct rx *rx, uint32_t bytes, lh_time now)
{
    char reason[REASON_MAX];
    const struct data_path_view view = {
        .bytes = bytes,
        .mtu_bytes = rx->attr->mtu_bytes,
        .packets = sdr_qp_rx_packets(rx->qp),
        .full = sdr_qp_full_arrived(rx->qp),
        .overdue_ns = rx->path->overdue_ns,
        .timeout_ns = rx->attr->peer_timeout_ns,
    };
    if (bytes == 0)
        return true;
    enum data_path_state state = data_path_on_announced(&rx->data_path, &view, now);
    if (state == DATA_PATH_PASSES)
        return true;
    uint32_t probed_bytes = sdr_qp_probed(rx->qp, data_path_since(&view, now));
    data_path_reason(&rx->data_path, state, rx->attr->mtu_bytes, probed_bytes, reason, sizeof reason);
    effects_fail(rx->effects, LH_EPATH, reason);
    return false;
}

static void on_open_segment(struct rx *rx, struct rx_segment *segment,
                            const struct transfer_message *announced, lh_time now)
{
    struct rx_message *message = rx_message_at(rx, segment->message);
    if (!lengths_possible(segment, message, announced)) {
        rx->stats->bad_control++;
        return;
    }
    arrivals_note_seen(rx, segment->sequence, now);
    int error = 0;
    if (message->bytes == MESSAGE_BYTES_UNKNOWN)
        error = learn_length(rx, message, announced);
    if (error) {
        refuse_message(rx, message, error, now);
        return;
    }
    if (!data_passes(rx, announced->body.to_receiver.segment_bytes, now))
        return;
    if (announced->body.to_receiver.scheme_bytes > 0)
        arrivals_on_scheme(rx, segment, announced->body.to_receiver.scheme,
                           announced->body.to_receiver.scheme_bytes, now);
}

void lengths_on_to_receiver(struct rx *rx, const struct transfer_message *message, lh_time now)
{
    uint32_t sequence = message->body.to_receiver.segment;
    if (!number_before(sequence, rx->segment_next)) {
        rx->stats->bad_control++; /* was never cleared to be sent */
        return;
    }
    if (number_before(sequence, rx->segment_oldest)) {
        done_answer(rx, sequence);
        return;
    }
    struct rx_segment *segment = rx_segment_at(rx, sequence);
    if (segment->state == SEGMENT_OPEN)
        on_open_segment(rx, segment, message, now);
    else if (segment->state == SEGMENT_FAILED)
        refuse_answer(rx, segment->message);
    else if (done_is(rx, segment))
        done_answer(rx, sequence);
    else if (segment->state == SEGMENT_PARITY)
        rx->stats->bad_control++; /* all messages go to the segment itself */
}
