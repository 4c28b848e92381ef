/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx/messages.h"

#include <assert.h>

#include "message/control/number.h"
#include "message/tx/backlog.h"
#include "message/tx/injector.h"

struct tx_message *tx_add_message(struct tx *tx, struct message_request *request,
                                  const struct tx_content *content)
{
    assert(tx->next - tx->oldest < MESSAGES_MAX);
    struct tx_message *message = tx_message_at(tx, tx->next);
    int error = message->notice.error; /* refused ahead */
    bool refused = message->refused;
    *message = (struct tx_message){
        .state = TX_OPEN,
        .number = tx->next++,
        .request = request,
        .buffer = content->buffer,
        .bytes = content->bytes,
        .tag = content->tag,
        .segments = 1,
        .refused = refused,
        .notice = {.error = error},
    };
    return message;
}

static void finish_message(struct tx *tx, struct tx_message *message, int error, enum tx_state state,
                           lh_time now)
{
    assert(message->state == TX_OPEN && state != TX_OPEN);
    message->request->result.tag = message->tag;
    effects_finish(tx->effects, message->request, error, message->bytes, now);
    message->request = NULL;
    message->state = state;
    if (!error)
        outgoing_on_receive(&tx->outgoing, message->number);
    if (state == TX_CANCELING && tx->outgoing.matched)
        outgoing_stop(&tx->outgoing, message->number); /* it has its place until the receiver answers */
    else
        outgoing_forget(&tx->outgoing, message->number);
    if (error)
        tx->stats->messages_failed++;
    else
        tx->stats->messages_sent++;
}

void tx_retire(struct tx *tx)
{
    /* Bounded by the ring. */
    while (tx->oldest != tx->next && tx_message_at(tx, tx->oldest)->state == TX_OVER) {
        *tx_message_at(tx, tx->oldest) = (struct tx_message){0};
        tx->oldest++;
    }
    if (number_before(tx->current, tx->oldest))
        tx->current = tx->oldest;
}

static void close_segment(struct tx *tx, struct tx_segment *segment)
{
    assert(segment->active);
    injector_end_segment(tx, segment);
    segment->active = false;
    /* Bounded by the ring. */
    while (tx->segment_oldest != tx->segment_next && !tx_segment_at(tx, tx->segment_oldest)->active)
        tx->segment_oldest++;
}

void tx_end_message(struct tx *tx, struct tx_message *message, int error, enum tx_state state, lh_time now)
{
    for (uint32_t n = tx->segment_oldest; n != tx->segment_next; n++) { /* at most attr.slots */
        struct tx_segment *segment = tx_segment_at(tx, n);
        if (segment->active && segment->message == message->number)
            close_segment(tx, segment);
    }
    backlog_on_message_over(tx, message);
    if (message->state == TX_OPEN)
        finish_message(tx, message, error, state, now);
    message->state = state;
}

/* A segment has left, or is done. */
static void note_sent(struct tx *tx, struct tx_message *message, enum tx_state state, lh_time now)
{
    message->sent++;
    if (message->sent == message->segments)
        finish_message(tx, message, 0, state, now);
}

void tx_sent_segment(struct tx *tx, struct tx_segment *segment, lh_time now)
{
    assert(segment->active && !segment->sent);
    segment->sent = true;
    note_sent(tx, tx_message_at(tx, segment->message), TX_SENT, now);
}

void tx_end_segment(struct tx *tx, struct tx_segment *segment, lh_time now)
{
    struct tx_message *message = tx_message_at(tx, segment->message);
    assert((message->state == TX_OPEN || message->state == TX_SENT) && message->number == segment->message);
    close_segment(tx, segment);
    message->done++;
    if (!segment->sent)
        note_sent(tx, message, message->done == message->segments ? TX_OVER : TX_SENT, now);
    if (message->done == message->segments)
        message->state = TX_OVER;
}
