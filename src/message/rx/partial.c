/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/partial.h"

#include <assert.h>
#include <string.h>

#include "base/bitmap.h"
#include "base/least.h"
#include "message/buffer/arrived.h"
#include "sdr/driver.h"
#include "store/store.h"

bool partial_is_allowed(const struct rx *rx)
{
    return rx->choice.scheme->deadline && !rx->choice.automatic;
}

static size_t words_bytes(const struct rx *rx, const struct rx_message *message)
{
    return arrived_words(message->capacity, rx->attr->mtu_bytes) * sizeof(uint64_t);
}

bool partial_hold(struct rx *rx, struct rx_message *message)
{
    if (!message->arrived && message->choice.scheme->deadline && message->capacity > 0)
        message->arrived = store_take(rx->store, words_bytes(rx, message));
    return message->arrived || !message->choice.scheme->deadline || message->capacity == 0;
}

static uint64_t first_packet(const struct rx *rx, const struct rx_segment *segment)
{
    return segment->index * rx_message_at(rx, segment->message)->segment_bytes / rx->attr->mtu_bytes;
}

static uint32_t packets_of(const struct rx *rx, const struct rx_segment *segment)
{
    return (segment->bytes + rx->attr->mtu_bytes - 1) / rx->attr->mtu_bytes;
}

void partial_close(struct rx *rx, const struct rx_segment *segment)
{
    struct rx_message *message = rx_message_at(rx, segment->message);
    struct sdr_recv_arrived arrived = {
        .bitmap = message->arrived, .first = first_packet(rx, segment), .packets = packets_of(rx, segment)};
    sdr_recv_close(segment->handle, &arrived);
    if (message->guessed && arrived.end_bytes < segment->posted_bytes)
        message->bytes =
            lh_least(message->bytes, segment->index * message->segment_bytes + arrived.end_bytes);
}

void partial_add_segment(struct rx *rx, const struct rx_segment *segment)
{
    uint64_t *arrived = rx_message_at(rx, segment->message)->arrived;
    if (arrived)
        lh_bitmap_set_range(arrived, first_packet(rx, segment), packets_of(rx, segment));
}

void partial_add_recovered(struct rx *rx, const struct rx_segment *segment, const uint8_t *recovered)
{
    uint64_t *arrived = rx_message_at(rx, segment->message)->arrived;
    uint32_t chunk_packets = rx->attr->chunk_bytes / rx->attr->mtu_bytes;
    uint32_t packets = packets_of(rx, segment);
    for (uint32_t i = 0; i < rx_segment_chunks(rx, segment); i++)
        if (recovered[i])
            lh_bitmap_set_range(arrived, first_packet(rx, segment) + (uint64_t)i * chunk_packets,
                                lh_least(chunk_packets, packets - i * chunk_packets));
}

void partial_copy(const struct rx *rx, const struct rx_segment *segment)
{
    const struct rx_message *message = rx_message_at(rx, segment->message);
    uint64_t offset = segment->index * message->segment_bytes,
             end = lh_least(offset + segment->bytes, message->bytes);
    const struct arrived arrived = {message->arrived, rx->attr->mtu_bytes, end};
    struct lh_range missing = {.offset = end};
    /* What lies before the next that is missing; each turn takes a range. */
    while (offset < end) {
        if (!message->arrived || !arrived_next_missing(&arrived, offset, &missing))
            missing = (struct lh_range){.offset = end};
        buffer_write(&message->buffer, offset,
                     segment->payload + (offset - segment->index * message->segment_bytes),
                     missing.offset - offset);
        offset = missing.offset + missing.bytes;
    }
}

/* ---- the end ----------------------------------------------------------------------------------------- */

static void zero(const struct rx_message *message, const struct arrived *arrived)
{
    struct lh_range range = {0};
    while (arrived_next_missing(arrived, range.offset + range.bytes, &range))
        buffer_zero(&message->buffer, range.offset, range.bytes);
}

static void count_missing(struct rx *rx, const struct rx_message *message, uint64_t bytes)
{
    rx->stats->missing_bytes += bytes;
    rx->stats->messages_partial++;
    rx->stats->messages_preempted += message->end == LH_END_PREEMPTED;
    rx->stats->deadline_hits += message->end == LH_END_DEADLINE;
}

/* Of a message that is delivered without some of its bytes. */
static void hand_over(struct rx *rx, struct rx_message *message, const struct arrived *arrived,
                      uint64_t missing)
{
    struct message_request *request = message->request;
    if (rx->attr->zero_missing)
        zero(message, arrived);
    count_missing(rx, message, missing);
    request->result.missing_bytes = missing;
    request->delivery = (struct message_delivery){message->end, rx->attr->mtu_bytes, message->arrived};
    if (message->arrived)
        store_forget(rx->store, words_bytes(rx, message));
    message->arrived = NULL;
}

void partial_end(struct rx *rx, struct rx_message *message, int error)
{
    const struct arrived arrived = {message->arrived, rx->attr->mtu_bytes, message->bytes};
    uint64_t missing = 0;
    bool partial = message->arrived || message->end != LH_END_WHOLE;
    if (partial && !error && !message->small)
        arrived_missing(&arrived, &missing);
    if (missing == 0)
        message->end = LH_END_WHOLE; /* the last came while it was ended */
    else
        hand_over(rx, message, &arrived, missing);
    store_give(rx->store, message->arrived, words_bytes(rx, message));
    message->arrived = NULL;
    if (message->number == rx->active && !error)
        rx->active_bytes = message->bytes - missing;
}
