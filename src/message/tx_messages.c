/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_messages.h"

#include <assert.h>

#include "control/message_control.h"
#include "message/receive_buffer.h"
#include "message/tx_injector.h"
#include "message/tx_state.h"

/* ---- messages -------------------------------------------------------------------------------------- */

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

/* ---- cancel ---------------------------------------------------------------------------------------- */

void cancel_message(struct tx *tx, struct tx_message *message, int error, lh_time now)
{
    assert(message->state == TX_OPEN);
    message->notice.error = abort_error(error);
    tx_end_message(tx, message, -message->notice.error, TX_CANCELING, now);
    tx->canceling++;
    abort_send(&message->notice, tx->qp, TRANSFER_CANCEL, message->number, tx->path, now);
}

static void end_refused(struct tx *tx, struct tx_message *message, int error, lh_time now)
{
    switch (message->state) {
    case TX_OPEN:
    case TX_SENT:
        tx_end_message(tx, message, -error, TX_OVER, now);
        return;
    case TX_CANCELING:
        message->state = TX_OVER;
        tx->canceling--;
        outgoing_forget(&tx->outgoing, message->number);
        return;
    case TX_OVER:
    case TX_EMPTY:
        return;
    }
}

/* False: no memory. */
static bool refuse_ahead(struct tx *tx, uint32_t number, int error)
{
    if (!ring_hold(&tx->messages, tx->store, tx->oldest, number - tx->oldest + 1))
        return false;
    tx_message_at(tx, number)->notice.error = error;
    tx_message_at(tx, number)->refused = true;
    if (number_before(tx->ahead, number + 1) || !number_before(tx->next, tx->ahead))
        tx->ahead = number + 1;
    return true;
}

void cancel_on_refuse(struct tx *tx, const struct transfer_message *message, lh_time now)
{
    uint32_t number = message->body.verdict.message;
    int error = (int)message->body.verdict.error;
    error = error == 0 ? 0 : abort_error(error); /* 0: it has ended by its deadline, and was delivered */
    if (!number_before(number, tx->oldest)) {
        if (number - tx->oldest >= MESSAGES_MAX)
            return; /* no place to remember it: the receiver sends it again */
        if (number_before(number, tx->next))
            end_refused(tx, tx_message_at(tx, number), error, now);
        else if (!refuse_ahead(tx, number, error))
            return; /* likewise */
    }
    tx_retire(tx);
    control_tx_abort(tx->qp, TRANSFER_FORGET, number, 0);
}

void cancel_on_refresh_expired(struct tx *tx, lh_time now, lh_time *next)
{
    if (tx->canceling == 0)
        return;
    for (uint32_t n = tx->oldest; n != tx->next; n++) { /* at most MESSAGES_MAX */
        struct tx_message *message = tx_message_at(tx, n);
        if (message->state == TX_CANCELING)
            abort_on_refresh_expired(&message->notice, tx->qp, TRANSFER_CANCEL, n, tx->path, now, next);
    }
}

/* ---- memory ---------------------------------------------------------------------------------------- */

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
