/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/messages.h"

#include <assert.h>

#include "message/control/number.h"
#include "message/rx/partial.h"

struct rx_message *rx_add_message(struct rx *rx, struct message_request *request,
                                  const struct message_buffer *buffer, uint64_t capacity)
{
    assert(rx->next - rx->oldest < MESSAGES_MAX);
    struct rx_message *message = rx_message_at(rx, rx->next);
    int error = message->notice.error; /* canceled ahead */
    bool forgotten = message->forgotten;
    *message = (struct rx_message){
        .state = RX_OPEN,
        .number = rx->next++,
        .request = request,
        .buffer = *buffer,
        .capacity = capacity,
        .bytes = MESSAGE_BYTES_UNKNOWN,
        .segments = 1,
        .forgotten = forgotten,
        .notice = {.error = error},
    };
    return message;
}

struct rx_message *rx_bind_message(struct rx *rx, uint32_t number, const struct rx_receive *receive)
{
    struct rx_message *message = rx_message_at(rx, number);
    assert(number - rx->oldest < rx->next - rx->oldest && message->state == RX_EMPTY);
    *message = (struct rx_message){
        .state = RX_OPEN,
        .number = number,
        .request = receive->request,
        .buffer = receive->buffer,
        .capacity = receive->capacity,
        .bytes = MESSAGE_BYTES_UNKNOWN,
        .segments = 1,
    };
    if (number_before(number, rx->posting))
        rx->posting = number;
    return message;
}

void rx_take_message(struct rx *rx)
{
    assert(rx->next - rx->oldest < MESSAGES_MAX);
    *rx_message_at(rx, rx->next) = (struct rx_message){.state = RX_OVER, .number = rx->next};
    rx->next++;
    rx->stats->messages_received++;
}

static void finish_message(struct rx *rx, struct rx_message *message, int error, enum rx_state state,
                           lh_time now)
{
    assert(message->state == RX_OPEN && state != RX_OPEN);
    uint64_t bytes = message->bytes == MESSAGE_BYTES_UNKNOWN ? 0 : message->bytes;
    partial_end(rx, message, error);
    message->request->result.tag = message->tag;
    effects_finish(rx->effects, message->request, error, bytes, now);
    message->request = NULL;
    message->state = state;
    if (error)
        rx->stats->messages_failed++;
    else if (message->end == LH_END_WHOLE)
        rx->stats->messages_received++;
}

static bool is_over(const struct rx *rx, uint32_t number)
{
    return number_before(number, rx->oldest) || rx_message_at(rx, number)->state == RX_OVER;
}

void rx_retire(struct rx *rx)
{
    /* Both bounded by their rings. */
    for (; rx->segment_oldest != rx->segment_next; rx->segment_oldest++) {
        struct rx_segment *segment = rx_segment_at(rx, rx->segment_oldest);
        bool open = segment->state == SEGMENT_OPEN || segment->state == SEGMENT_PARITY;
        bool failed = segment->state == SEGMENT_FAILED && !is_over(rx, segment->message);
        if (open || failed || segment->coded.jobs > 0)
            break;
        segment->state = SEGMENT_FREE;
    }
    while (rx->oldest != rx->next && rx_message_at(rx, rx->oldest)->state == RX_OVER) {
        *rx_message_at(rx, rx->oldest) = (struct rx_message){0};
        rx->oldest++;
    }
    if (number_before(rx->posting, rx->oldest))
        rx->posting = rx->oldest;
}

static void close_parity(struct rx *rx, struct rx_segment *segment, enum rx_segment_state state)
{
    struct coded_rx *coded = &segment->coded;
    if (coded->handle) {
        struct rx_segment *place = rx_segment_at(rx, segment->sequence + 1);
        assert(place->state == SEGMENT_PARITY);
        sdr_recv_complete(coded->handle);
        coded->handle = NULL;
        coded->bitmap = NULL;
        place->state = state;
    }
    if (segment->sequence + 1 == rx->segment_next)
        rx->parity_due = false;
    if (coded->buffer && coded->jobs == 0) {
        parity_give(rx->parity, coded->buffer);
        coded->buffer = NULL;
    }
}

static void give_copied(struct rx *rx, struct rx_segment *segment)
{
    if (segment->copied)
        parity_give(rx->parity, segment->copied);
    segment->copied = NULL;
}

void rx_close_segment(struct rx *rx, struct rx_segment *segment, enum rx_segment_state state)
{
    assert(segment->state == SEGMENT_OPEN);
    partial_close(rx, segment);
    segment->handle = NULL;
    segment->bitmap = NULL;
    segment->state = state;
    close_parity(rx, segment, state);
    if (state != SEGMENT_DONE)
        give_copied(rx, segment);
}

void rx_finish_segment(struct rx *rx, struct rx_segment *segment, lh_time now)
{
    struct rx_message *message = rx_message_at(rx, segment->message);
    assert(segment->state == SEGMENT_DONE && message->state == RX_OPEN &&
           message->done < message->segments);
    if (segment->copied)
        partial_copy(rx, segment);
    give_copied(rx, segment);
    message->done++;
    if (message->done == message->segments)
        rx_deliver_message(rx, message, now);
}

void rx_deliver_message(struct rx *rx, struct rx_message *message, lh_time now)
{
    finish_message(rx, message, 0, message->cut ? RX_REFUSED : RX_OVER, now);
    if (!message->cut)
        return;
    message->notice.error = 0;
    rx->refusing++;
    abort_send(&message->notice, rx->qp, TRANSFER_REFUSE, message->number, rx->path, now);
}

void rx_end_message(struct rx *rx, struct rx_message *message, int error, enum rx_state state, lh_time now)
{
    for (uint32_t n = rx->segment_oldest; n != rx->segment_next; n++) { /* at most attr.slots */
        struct rx_segment *segment = rx_segment_at(rx, n);
        if (segment->state == SEGMENT_OPEN && segment->message == message->number)
            rx_close_segment(rx, segment, SEGMENT_FAILED);
    }
    finish_message(rx, message, error, state, now);
}
