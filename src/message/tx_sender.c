/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_sender.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "control/message_control.h"
#include "message/attributes.h"
#include "message/tx_injector.h"
#include "message/tx_messages.h"
#include "message/tx_state.h"

/* ---- cts ------------------------------------------------------------------------------------------- */

#define STARTS_A_STEP 64u /* each sends a few messages, and the SDR layer's queue takes 256 */

static bool ring_is_full(const struct tx *tx)
{
    return tx->segment_next - tx->segment_oldest == tx->attr->slots;
}

/* While the ring is not full: it takes a place, too. */
static void pass_by(struct tx *tx)
{
    assert(!ring_is_full(tx));
    lh_sdr_cts_skip(tx->qp);
    tx->segment_next++;
    if (tx->segment_oldest + 1 == tx->segment_next)
        tx->segment_oldest++;
    backlog_on_place(tx); /* of no place that was passed by: the ring may have no memory yet */
}

/* The first clear-to-send of a message decides how it is cut, for the code decides what fits a segment. */
static void cut_message(struct tx_message *message, uint64_t segment_bytes)
{
    assert(segment_bytes > 0 && message->started == 0);
    message->segment_bytes = segment_bytes;
    if (message->bytes > 0)
        message->segments = (uint32_t)((message->bytes + segment_bytes - 1) / segment_bytes);
}

/* False when the SDR layer has no place for it now. */
static bool start_send(struct tx *tx, struct sdr_send_handle **handle)
{
    struct sdr_send_start_wr wr = {.opcode = SDR_WR_WRITE};
    tx->start_refused = sdr_streaming_send_start(tx->qp, &wr, handle) != SDR_SUCCESS;
    return !tx->start_refused;
}

/* Memory for the state of a sender's machine. False: none for now. */
static bool hold_machine(struct tx *tx, struct tx_segment *segment, const struct lh_scheme *scheme,
                         uint32_t chunks)
{
    tx->start_refused =
        !machine_hold(&segment->machine, &segment->machine_bytes, tx->store, scheme->sender_bytes(chunks));
    return !tx->start_refused;
}

static struct segment_range next_range(const struct tx *tx, const struct tx_message *message)
{
    uint64_t offset = message->started * message->segment_bytes;
    uint64_t bytes = lh_min(message->bytes - offset, message->segment_bytes);
    return (struct segment_range){offset, (uint32_t)bytes, tx->attr->chunk_bytes};
}

/* The segment of a clear-to-send that was checked; NULL when the SDR layer has no place for it now. */
static struct tx_segment *take_segment(struct tx *tx, struct tx_message *message,
                                       const struct lh_scheme *scheme, const struct segment_range *range,
                                       const struct tx_place *place)
{
    struct tx_segment *segment = tx_segment_at(tx, tx->segment_next);
    struct sdr_send_handle *handle = NULL;
    uint32_t chunks = (range->bytes + range->chunk_bytes - 1) / range->chunk_bytes;
    if (!scheme)
        lh_sdr_cts_skip(tx->qp);
    else if (!hold_machine(tx, segment, scheme, chunks) || !start_send(tx, &handle))
        return NULL;
    *segment = (struct tx_segment){
        .active = true,
        .needs_step = true,
        .sequence = tx->segment_next++,
        .message = message->number,
        .scheme = scheme,
        .handle = handle,
        .machine = segment->machine,
        .machine_bytes = segment->machine_bytes,
        .payload = place->payload,
        .bytes = range->bytes,
        .chunks = chunks,
        .lkey = place->lkey,
        .copied = place->copied,
        .pieces = place->pieces,
        .next_ns = LH_TIME_NEVER,
    };
    memory_copy(message, range, segment);
    backlog_on_place(tx);
    backlog_on_segment(tx, message, segment);
    return segment;
}

/* What a segment needs besides its place in the ring. */
struct segment_memory {
    struct tx_place place;
    struct parity_buffer *parity; /* NULL: it needs none */
};

static void give_memory(const struct tx *tx, const struct segment_memory *memory)
{
    if (memory->place.copied)
        parity_give(tx->parity, memory->place.copied);
    if (memory->parity)
        parity_give(tx->parity, memory->parity);
}

/* scheme: NULL: no chunks are sent. False when there is no memory now, or the message has ended. */
static bool take_memory(struct tx *tx, struct tx_message *message, const struct lh_scheme *scheme,
                        const struct transfer_cts *cts, const struct segment_range *range,
                        struct segment_memory *memory, lh_time now)
{
    const struct lh_scheme_coding *coding = scheme ? scheme->coding : NULL;
    uint32_t chunks = (range->bytes + tx->attr->chunk_bytes - 1) / tx->attr->chunk_bytes;
    size_t bytes = coding ? (size_t)coding->extra_chunks(cts->params, chunks) * tx->attr->chunk_bytes : 0;
    *memory = (struct segment_memory){0};
    if (scheme && !memory_place(tx, message, range, bytes > 0, &memory->place, now))
        return false;
    if (memory_take(tx, message, bytes, 0, &memory->parity, now))
        return true;
    give_memory(tx, memory);
    return false;
}

static void start_coding(const struct tx *tx, struct tx_segment *segment, const struct transfer_cts *cts,
                         struct parity_buffer *buffer)
{
    struct coded_tx *coded = &segment->coded;
    coded->buffer = buffer;
    coded->extra_chunks = segment->scheme->coding->extra_chunks(cts->params, segment->chunks);
    coded->coding = (struct lh_coding){
        .chunks = segment->chunks,
        .chunk_bytes = tx->attr->chunk_bytes,
        .bytes = segment->bytes,
        .message = segment->payload,
        .extra = buffer->chunks,
    };
    memcpy(coded->coding.params, cts->params, sizeof coded->coding.params);
}

static void start_segment(struct tx *tx, struct tx_message *message, const struct transfer_cts *cts,
                          lh_time now)
{
    bool fits = message->bytes <= cts->room;
    const struct lh_scheme *scheme = scheme_find(tx->attr->scheme, cts->scheme);
    const struct lh_scheme *used = fits && message->bytes > 0 ? scheme : NULL;
    const struct segment_range range = next_range(tx, message);
    struct segment_memory memory;
    if (!take_memory(tx, message, used, cts, &range, &memory, now))
        return;
    struct tx_segment *segment = take_segment(tx, message, used, &range, &memory.place);
    if (!segment) {
        give_memory(tx, &memory);
        return;
    }
    /* Of one that is too long only the lengths are announced: the receiver refuses it. */
    message->started = fits ? message->started + 1 : message->segments;
    if (!fits)
        backlog_on_message_over(tx, message);
    if (!message->injected)
        message->request->result.started_ns = now;
    message->injected = true;
    to_receiver_lengths(tx, segment, now);
    if (!segment->scheme)
        return;
    if (memory.parity)
        start_coding(tx, segment, cts, memory.parity);
    struct lh_transfer transfer = {
        .chunks = segment->chunks, .chunk_bytes = tx->attr->chunk_bytes, .stats = tx->stats};
    memcpy(transfer.params, cts->params, sizeof transfer.params);
    scheme->sender_start(segment->machine, &transfer, now);
    int error = injector_run(tx, segment, now);
    if (error)
        cancel_message(tx, message, error, now);
}

/* 0: not even one group of chunks and its parity fits; or the scheme is not known. */
static uint64_t segment_bytes_of(const struct tx *tx, const struct lh_scheme *scheme,
                                 const struct transfer_cts *cts)
{
    struct scheme_choice choice = {.scheme = scheme};
    if (!scheme || !scheme->params_valid(cts->params))
        return 0;
    memcpy(choice.params, cts->params, sizeof choice.params);
    return scheme_segment_bytes(&choice, tx->attr);
}

/* Whether the peer may ask for this. Ends the connection when it may not. */
static bool check_cts(struct tx *tx, const struct tx_message *message, const struct lh_cts *raw,
                      const struct transfer_cts *cts)
{
    const struct lh_scheme *scheme = scheme_find(tx->attr->scheme, cts->scheme);
    uint64_t segment_bytes = segment_bytes_of(tx, scheme, cts);
    uint64_t left = message->bytes - message->started * segment_bytes;
    uint64_t bytes = left < segment_bytes ? left : segment_bytes;
    char reason[REASON_MAX / 2];
    if (!scheme)
        snprintf(reason, sizeof reason,
                 "peer chose reliability scheme %u: unknown here (pass it as lh_attr.scheme)", cts->scheme);
    else if (!scheme->params_valid(cts->params))
        snprintf(reason, sizeof reason, "peer chose %s with invalid parameters", scheme->name);
    else if (segment_bytes == 0)
        snprintf(reason, sizeof reason, "peer chose %s: its parity exceeds a slot", scheme->name);
    else if (message->bytes / segment_bytes >= INT32_MAX)
        snprintf(reason, sizeof reason, "peer cut message %u into more than %d segments", cts->message,
                 INT32_MAX);
    else if (message->started > 0 && segment_bytes != message->segment_bytes)
        snprintf(reason, sizeof reason, "peer changed the segment size within message %u", cts->message);
    else if (cts->segment != message->started)
        snprintf(reason, sizeof reason, "peer cleared segment %u of message %u (expected %u)", cts->segment,
                 cts->message, message->started);
    else if (message->bytes <= cts->room && raw->length_bytes < bytes)
        snprintf(reason, sizeof reason, "peer cleared %u bytes for a segment of %llu bytes",
                 raw->length_bytes, (unsigned long long)bytes);
    else
        return true;
    effects_fail(tx->effects, LH_EPROTOCOL, reason);
    return false;
}

static void start_message_segment(struct tx *tx, struct tx_message *message, const struct transfer_cts *cts,
                                  lh_time now)
{
    outgoing_on_receive(&tx->outgoing, message->number);
    if (message->started == 0)
        cut_message(message, segment_bytes_of(tx, scheme_find(tx->attr->scheme, cts->scheme), cts));
    start_segment(tx, message, cts, now);
}

/* False when the SDR layer has no place for it now. */
static bool open_parity(struct tx *tx, struct tx_segment *segment, const struct lh_cts *raw)
{
    if (raw->length_bytes < (uint64_t)segment->coded.extra_chunks * tx->attr->chunk_bytes) {
        effects_fail(tx->effects, LH_EPROTOCOL,
                     "peer cleared less than the parity of a segment to be sent");
        return false;
    }
    if (!start_send(tx, &segment->coded.handle))
        return false;
    tx->segment_next++;
    backlog_on_place(tx);
    segment->needs_step = true;
    return true;
}

bool cts_use_parity(struct tx *tx)
{
    bool any = false;
    /* Each turn takes a place of the ring. */
    while (!ring_is_full(tx) && tx->ending_count < tx->attr->slots) {
        struct lh_cts raw;
        struct transfer_cts cts;
        if (lh_sdr_cts_peek(tx->qp, &raw) != 0 || transfer_cts_decode(raw.upper, &cts) != 0 || !cts.extra)
            return any;
        uint32_t before = tx->segment_next - 1;
        struct tx_segment *segment = tx->segments ? tx_segment_at(tx, before) : NULL;
        bool lives =
            segment && segment->active && segment->sequence == before && segment->message == cts.message;
        if (!lives || segment->coded.extra_chunks == 0 || segment->leaving || segment->sent)
            pass_by(tx);
        else if (!open_parity(tx, segment, &raw))
            return any;
        any = true;
    }
    return any;
}

/* The message whose segments are started next, or NULL. */
static struct tx_message *current_message(struct tx *tx)
{
    for (; tx->current != tx->next; tx->current++) { /* at most MESSAGES_MAX */
        struct tx_message *message = tx_message_at(tx, tx->current);
        if (message->state == TX_OPEN && message->started < message->segments)
            return message;
    }
    return NULL;
}

/* Where receives choose their messages, clear-to-sends name them in any order. The message of the next one,
 * or NULL: there is none, or no place, for now. */
static struct tx_message *cleared_message(struct tx *tx)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    for (uint32_t i = 0; i < STARTS_A_STEP; i++) {
        if (ring_is_full(tx))
            return NULL; /* those of messages that are over wait for the oldest segment, too */
        if (lh_sdr_cts_peek(tx->qp, &raw) != 0)
            break;
        if (transfer_cts_decode(raw.upper, &cts) != 0 || !number_before(cts.message, tx->next)) {
            effects_fail(tx->effects, LH_EPROTOCOL, "clear-to-send of no message from the peer");
            return NULL;
        }
        if (cts.extra) /* cts_use_parity() had no place for it, and tries again */
            break;
        bool known = cts.message - tx->oldest < tx->next - tx->oldest;
        struct tx_message *message = known ? tx_message_at(tx, cts.message) : NULL;
        if (message && message->state == TX_OPEN && message->started < message->segments)
            return message;
        pass_by(tx);
    }
    tx->cts_wanted = tx->oldest != tx->next;
    return NULL;
}

static struct tx_message *next_message(struct tx *tx)
{
    return tx->outgoing.matched ? cleared_message(tx) : current_message(tx);
}

/* Uses one clear-to-send. False when there is none for now. */
static bool use_cts(struct tx *tx, struct tx_message *message, lh_time now)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    uint32_t before = tx->segment_next;
    if (lh_sdr_cts_peek(tx->qp, &raw) != 0) {
        tx->cts_wanted = true;
        return false;
    }
    assert(raw.sequence == before);
    if (transfer_cts_decode(raw.upper, &cts) != 0) {
        effects_fail(tx->effects, LH_EPROTOCOL, "malformed clear-to-send from the peer");
        return false;
    }
    if (cts.extra) { /* cts_use_parity() had no place for it, and tries again */
        tx->cts_wanted = true;
        return false;
    }
    if (number_before(cts.message, message->number))
        pass_by(tx);
    else if (cts.message == message->number && check_cts(tx, message, &raw, &cts))
        start_message_segment(tx, message, &cts, now);
    return !tx->effects->failure && tx->segment_next != before;
}

/* Of the newest clear-to-send, unless it was passed by. */
static void note_started(struct tx *tx, lh_time *next)
{
    struct tx_segment *segment = tx_segment_at(tx, tx->segment_next - 1);
    if (!segment->active || segment->sequence != tx->segment_next - 1)
        return;
    tx->closed |= segment->budget_limited;
    lh_keep_earlier(next, segment->next_ns);
    lh_keep_earlier(next, segment->lengths_at);
}

/* Those of messages that were sent without: no message waits for one. */
static void pass_by_small(struct tx *tx)
{
    struct lh_cts raw;
    struct transfer_cts cts;
    for (uint32_t i = 0; i < STARTS_A_STEP && !tx->effects->failure; i++) {
        cts_use_parity(tx);
        if (ring_is_full(tx) || lh_sdr_cts_peek(tx->qp, &raw) != 0 ||
            transfer_cts_decode(raw.upper, &cts) != 0 || cts.extra || !number_before(cts.message, tx->next))
            return;
        pass_by(tx);
    }
}

void cts_start_segments(struct tx *tx, lh_time now, lh_time *next)
{
    struct tx_message *message;
    struct lh_cts raw;
    for (uint32_t i = 0; !tx->effects->failure && !tx->blocked && (message = next_message(tx)) != NULL;
         i++) {
        /* The oldest must arrive first: its place is wanted. And what was aborted must leave the queue. */
        if (ring_is_full(tx) || tx->ending_count >= tx->attr->slots)
            return;
        if (i == STARTS_A_STEP) {
            lh_keep_earlier(next, now); /* the engine steps again at once */
            return;
        }
        tx->closed |= injector_budget_chunks(tx) == 0;
        if (tx->closed)
            return;
        bool cleared = lh_sdr_cts_peek(tx->qp, &raw) == 0;
        bool used = use_cts(tx, message, now);
        tx->start_waits = cleared && !used;
        if (!used)
            return;
        note_started(tx, next);
        if (cts_use_parity(tx))
            lh_keep_earlier(next, now);
    }
    if (tx->eager && !tx->outgoing.matched && tx->current == tx->next)
        pass_by_small(tx);
}

/* ---- sender ---------------------------------------------------------------------------------------- */

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
    queue_delay_pause(&tx->delay);
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

void sender_quiesce(struct tx *tx)
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
