/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/tx/sender.h"

#include "base/earlier.h"
#include "base/error.h"
#include "message/control/number.h"
#include "message/tx/backlog.h"
#include "message/tx/cancel.h"
#include "message/tx/cts.h"
#include "message/tx/injector.h"
#include "message/tx/messages.h"
#include "message/tx/to_receiver.h"

#define BITS_PER_BYTE 8u
#define LONG_LINK_BPS 100000000000u /* a link this fast is kept full, however long it is */

void sender_init(struct tx *tx, const struct lh_attr *attr, const struct lh_sdr_path *path,
                 struct coder *coder, struct parity_pool *parity, struct store *store)
{
    *tx = (struct tx){.attr = attr, .path = path, .coder = coder, .parity = parity, .store = store};
    ring_init(&tx->messages, sizeof(struct tx_message), MESSAGES_MAX);
    ring_init(&tx->held, sizeof(struct held_message), HELD_MAX);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Segments, sends that end, actions, and marks of the queue's delay, in this order. */
static size_t segments_bytes(const struct tx *tx)
{
    return tx->attr->slots * (sizeof *tx->segments + 2 * sizeof *tx->ending) + sizeof *tx->actions +
           QUEUE_DELAY_MARKS * sizeof *tx->delay.marks;
}

static int take_segments(struct tx *tx)
{
    tx->segments = store_take(tx->store, segments_bytes(tx));
    if (!tx->segments)
        return -LH_ENOMEM;
    tx->ending = (struct ending_send *)(void *)(tx->segments + tx->attr->slots);
    tx->actions = (struct lh_actions *)(void *)(tx->ending + 2 * (size_t)tx->attr->slots);
    tx->delay.marks = (struct queue_delay_mark *)(void *)(tx->actions + 1);
    return 0;
}

int sender_hold(struct tx *tx, uint32_t count)
{
    if (!ring_hold(&tx->messages, tx->store, tx->oldest, tx->next - tx->oldest + count))
        return -LH_ENOMEM;
    return tx->segments ? 0 : take_segments(tx);
}

static void free_segments(struct tx *tx)
{
    for (uint32_t i = 0; tx->segments && i < tx->attr->slots; i++)
        store_give(tx->store, tx->segments[i].machine, tx->segments[i].machine_bytes);
    store_give(tx->store, tx->segments, segments_bytes(tx));
    tx->segments = NULL;
    tx->ending = NULL;
    tx->actions = NULL;
    queue_delay_rest(&tx->delay);
}

void sender_give_back(struct tx *tx)
{
    if (tx->held_head == tx->held_tail)
        ring_free(&tx->held, tx->store);
    if (tx->oldest != tx->next || tx->segment_oldest != tx->segment_next || tx->ending_count > 0)
        return;
    free_segments(tx);
    if (!number_before(tx->next, tx->ahead))
        ring_free(&tx->messages, tx->store);
}

void sender_close(struct tx *tx)
{
    injector_close(tx);
    free_segments(tx);
    ring_free(&tx->held, tx->store);
    ring_free(&tx->messages, tx->store);
}

/* ---- the user ---------------------------------------------------------------------------------------- */

int sender_check(const struct tx *tx, uint64_t bytes)
{
    if (bytes > TRANSFER_ROOM_MAX || bytes / tx->attr->slot_bytes >= INT32_MAX)
        return lh_fail(LH_EINVAL, "message of %llu bytes: too long", (unsigned long long)bytes);
    if (tx->next - tx->oldest == MESSAGES_MAX)
        return lh_fail(LH_EAGAIN, "%u messages are in flight: wait for one", MESSAGES_MAX);
    return 0;
}

/* No clear-to-send starts a small one. */
static void add_outgoing(struct tx *tx, struct tx_message *message)
{
    message->small = message->bytes <= eager_small_max(tx->attr->mtu_bytes);
    const struct outgoing_content content = {
        .payload = message->buffer.address, /* a small one is in one place */
        .bytes = message->bytes,
        .tag = message->tag,
        .is_long = !message->small,
    };
    outgoing_add(&tx->outgoing, message->number, &content);
    if (message->small)
        message->started = message->segments;
}

void sender_send(struct tx *tx, struct message_request *request, const struct tx_content *content,
                 lh_time now)
{
    struct tx_message *message = tx_add_message(tx, request, content);
    if (tx->eager)
        add_outgoing(tx, message);
    if (!message->small)
        backlog_on_message(tx, message);
    if (message->refused) {
        tx_end_message(tx, message, -message->notice.error, TX_OVER, now);
        tx_retire(tx);
    }
}

void sender_cancel(struct tx *tx, uint32_t number, lh_time now)
{
    cancel_message(tx, tx_message_at(tx, number), LH_ECANCELED, now);
}

static void withdraw_segment(struct tx *tx, struct tx_segment *segment)
{
    segment->withdrawn = true;
    segment->needs_step = true;
    backlog_on_segment_over(tx, segment);
    injector_drop_queued(tx, segment);
}

void sender_withdraw(struct tx *tx, uint32_t number, lh_time now)
{
    struct tx_message *message = tx_message_at(tx, number);
    if (message->started < message->segments) {
        cancel_message(tx, message, LH_ECANCELED, now);
        return;
    }
    for (uint32_t n = tx->segment_oldest; n != tx->segment_next; n++) { /* at most attr.slots */
        struct tx_segment *segment = tx_segment_at(tx, n);
        bool own = segment->active && !segment->sent && segment->message == number;
        if (own && segment->scheme && segment->scheme->deadline)
            withdraw_segment(tx, segment);
    }
}

void sender_end_all(struct tx *tx, int error, lh_time now)
{
    for (uint32_t n = tx->oldest; n != tx->next; n++) { /* at most MESSAGES_MAX */
        struct tx_message *message = tx_message_at(tx, n);
        if (message->state == TX_OPEN || message->state == TX_SENT)
            tx_end_message(tx, message, error, TX_OVER, now);
    }
}

void sender_rest(struct tx *tx)
{
    for (uint32_t n = tx->oldest; n != tx->next; n++) /* at most MESSAGES_MAX */
        tx_message_at(tx, n)->state = TX_OVER;
    tx->canceling = 0;
    tx->ahead = tx->next;
    tx->held_tail = tx->held_head;
    injector_collect_ended(tx);
    tx_retire(tx);
}

/* ---- the peer ---------------------------------------------------------------------------------------- */

static bool is_done(const struct transfer_message *message, uint32_t sequence)
{
    uint32_t above = sequence - message->body.done.below;
    if (sequence == message->body.done.segment || number_before(sequence, message->body.done.below))
        return true;
    return above < TRANSFER_DONE_BITS && (message->body.done.bitmap >> above & 1) != 0;
}

void sender_on_done(struct tx *tx, const struct transfer_message *message, lh_time now)
{
    for (uint32_t n = tx->segment_oldest; n != tx->segment_next; n++) { /* at most attr.slots */
        struct tx_segment *segment = tx_segment_at(tx, n);
        if (segment->active && is_done(message, n))
            tx_end_segment(tx, segment, now);
    }
    tx_retire(tx);
}

void sender_on_to_sender(struct tx *tx, const struct transfer_message *message, lh_time now)
{
    if (!tx->segments)
        return;
    struct tx_segment *segment = tx_segment_at(tx, message->body.to_sender.segment);
    if (!segment->active || segment->sequence != message->body.to_sender.segment || !segment->scheme)
        return; /* late: it has ended */
    struct lh_sender_view view = {.now = now, .path = injector_path_view(tx, now)};
    segment->scheme->sender_on_message(segment->machine, message->body.to_sender.scheme,
                                       message->body.to_sender.scheme_bytes, &view);
    segment->needs_step = true;
}

/* ---- the step ---------------------------------------------------------------------------------------- */

/* On a short path we must not overrun the receiver's socket buffer; on a long one the link itself holds
 * bytes. A controller below knows better. */
static uint64_t window_now(const struct tx *tx)
{
    uint64_t buffer = tx->path->peer_receive_buffer_bytes / 2;
    if (buffer == 0 || tx->path->controlled)
        return tx->attr->window_bytes;
    double link = (double)tx->path->rtt_minimum_ns / (double)LH_NS_PER_S * (LONG_LINK_BPS / BITS_PER_BYTE);
    uint64_t bound = link > (double)buffer ? (uint64_t)link : buffer;
    return bound < tx->attr->window_bytes ? bound : tx->attr->window_bytes;
}

/* Its machine said when to come back in multiples of a round trip that was too long: a clock had jumped. */
static bool is_late(const struct tx *tx, const struct tx_segment *segment)
{
    return tx->path->rtt_ns < segment->rtt_ns / 2;
}

/* Its time is over, but for the wait of the oldest in the queue. */
static bool only_moves(const struct tx *tx, const struct tx_segment *segment, lh_time now)
{
    return segment->next_ns <= now && segment->moves && segment->behind == queue_delay_oldest(&tx->delay);
}

/* 0, or the positive lh_error with which the segment's message is to be aborted. */
static int step_machine(struct tx *tx, struct tx_segment *segment, lh_time now)
{
    bool fed = segment->budget_limited && injector_budget_chunks(tx) > 0;
    bool due = (segment->next_ns <= now && !only_moves(tx, segment, now)) || is_late(tx, segment);
    if (segment->scheme && !tx->blocked && (segment->needs_step || fed || due))
        return injector_run(tx, segment, now);
    return 0;
}

static void step_segment(struct tx *tx, struct tx_segment *segment, lh_time now, lh_time *next)
{
    int error = step_machine(tx, segment, now);
    if (error) {
        cancel_message(tx, tx_message_at(tx, segment->message), error, now);
        return;
    }
    if (segment->leaving && injector_has_left(tx, segment))
        tx_sent_segment(tx, segment, now);
    if (segment->lengths_at <= now)
        to_receiver_lengths(tx, segment, now);
    tx->closed |= segment->budget_limited;
    tx->cts_wanted |= segment->coded.extra_chunks > 0 && !segment->coded.handle && !segment->sent;
    bool moves = only_moves(tx, segment, now);
    tx->timers_move |= moves;
    if (!tx->blocked && !moves) /* else it runs when the queue has moved, which sender_has_work() sees */
        lh_keep_earlier(next, segment->next_ns);
    lh_keep_earlier(next, segment->lengths_at);
}

bool sender_has_work(const struct tx *tx)
{
    struct lh_cts cts;
    if (tx->held_tail != tx->held_head || tx->ending_count > 0 || tx->leaving > 0 ||
        (tx->window_limited && injector_has_room(tx)) || (tx->timers_move && injector_timers_stop(tx)))
        return true;
    return tx->cts_wanted && lh_sdr_cts_peek(tx->qp, &cts) == 0;
}

static void resume(struct tx *tx, lh_time now)
{
    injector_collect(tx, now);
    struct tx_segment *segment = tx->blocked;
    int error = segment ? injector_continue(tx, segment, now) : 0;
    if (error)
        cancel_message(tx, tx_message_at(tx, segment->message), error, now);
}

void sender_step(struct tx *tx, lh_time now, lh_time *next)
{
    tx->window_bytes = window_now(tx);
    tx->cts_wanted = false;
    tx->start_refused = false;
    tx->end_refused = false;
    tx->timers_move = false;
    resume(tx, now);
    uint32_t oldest = queue_delay_oldest(&tx->delay);
    cts_use_parity(tx);
    /* Strictly in order: receivers conclude from a chunk of one segment that all before it were sent whole.
     */
    tx->closed = tx->blocked != NULL;
    /* At most attr.slots. */
    for (uint32_t n = tx->segment_oldest; !tx->effects->failure && n != tx->segment_next; n++) {
        struct tx_segment *segment = tx_segment_at(tx, n);
        if (segment->active)
            step_segment(tx, segment, now, next);
    }
    cts_start_segments(tx, now, next);
    backlog_release(tx, now, next);
    /* What an earlier segment is behind may have left before the machine of a later one ran. */
    if (tx->timers_move && oldest != queue_delay_oldest(&tx->delay))
        lh_keep_earlier(next, now);
    tx->window_limited = tx->closed || tx->blocked;
    tx->window_full = tx->window_limited && injector_window_is_full(tx);
    tx_retire(tx);
}
