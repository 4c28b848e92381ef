/*
 * The control half of a QP: messages from the peer, and messages to it. Runs on the control worker.
 *
 * Timers: ping and its interval (qp_path.h), of those that need one; retransmission of clear-to-send
 * (send_queue.h); probes of the path's MTU (qp_path.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/qp_parts.h"

#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "sdr/sdr_state.h"

#define CLOSE_COPIES  3u /* a CLOSE may be lost; none is acknowledged */
#define BUNDLE_COPIES 3u /* likewise */
/* Datagrams that one call sends at first, and twice as many with each further one: the peer is at work on the
 * first while the others are made. */
#define FIRST_BATCH 2u
/* On longer paths messages of the layer above are lost by themselves: some repeat what others say. */
#define BUNDLE_RTT_MAX_NS (500 * LH_NS_PER_US)

/* ---- the layer above's messages ---- */

static bool is_full(const struct qp_upper_queue *queue)
{
    return queue->head - queue->tail == QP_MESSAGES_WAITING;
}

/* Room for a message of that many bytes in each entry. False: no memory. */
static bool queue_widen(struct sdr_qp *qp, struct qp_upper_queue *queue, uint32_t bytes)
{
    struct ring wide, *ring = &queue->ring;
    assert(CONTROL_HEADER_BYTES + bytes <= qp->upper_max);
    if (sizeof(struct qp_upper_message) + CONTROL_HEADER_BYTES + bytes <= ring->entry_bytes)
        return true;
    ring_init(&wide, sizeof(struct qp_upper_message) + qp->upper_max, QP_MESSAGES_WAITING);
    if (queue->head != queue->tail && !qp_hold(qp, &wide, queue->tail, queue->head - queue->tail))
        return false;
    for (uint32_t n = queue->tail; n != queue->head; n++) /* QP_MESSAGES_WAITING */
        memcpy(ring_at(&wide, n), ring_at(ring, n), ring->entry_bytes);
    ring_free(ring, qp->store);
    *ring = wide;
    return true;
}

/* False: no memory. It is not full. */
static bool queue_push(struct sdr_qp *qp, struct qp_upper_queue *queue, const void *data, uint32_t bytes)
{
    if (!queue_widen(qp, queue, bytes) ||
        !qp_hold(qp, &queue->ring, queue->tail, queue->head - queue->tail + 1))
        return false;
    struct qp_upper_message *message = ring_at(&queue->ring, queue->head++);
    message->bytes = bytes;
    message->type = CONTROL_UPPER;
    memcpy(qp_upper_body(message), data, bytes);
    return true;
}

static struct qp_upper_message *queue_front(struct qp_upper_queue *queue)
{
    return queue->head == queue->tail ? NULL : ring_at(&queue->ring, queue->tail);
}

static bool may_bundle(const struct sdr_qp *qp)
{
    return qp->bundles && qp->endpoint->fabric->ops->bundles_control &&
           qp->path.rtt.minimum_ns <= BUNDLE_RTT_MAX_NS;
}

/* Of the body, that a packet of the path carries. */
static uint32_t body_room(const struct sdr_qp *qp)
{
    return (uint32_t)lh_min(sdr_qp_packet_bytes(qp), CONTROL_MESSAGE_MAX) - CONTROL_HEADER_BYTES;
}

/* Puts the message beside the last one that waits. False: it gets a datagram of its own. */
static bool bundle(struct sdr_qp *qp, const void *data, uint32_t bytes)
{
    if (!queue_front(&qp->outbox) || !may_bundle(qp))
        return false;
    struct qp_upper_message *last = ring_at(&qp->outbox.ring, qp->outbox.head - 1);
    bool several = last->type == CONTROL_UPPERS;
    uint32_t room = body_room(qp);
    if (last->type == CONTROL_PART || last->bytes > room || bytes > room)
        return false;
    uint8_t *body = qp_upper_body(last);
    uint32_t used = several ? last->bytes : control_uppers_begin(body, room, last->bytes, bytes);
    uint32_t all = used > 0 ? control_uppers_add(body, room, used, data, bytes) : 0;
    if (all == 0)
        return false;
    last->type = CONTROL_UPPERS;
    last->bytes = all;
    return true;
}

/* One that no packet of the path carries, for a peer that puts parts together. */
static int push_parts(struct sdr_qp *qp, const uint8_t *data, uint32_t bytes)
{
    uint8_t body[CONTROL_PAYLOAD_MAX];
    const uint32_t maximum = body_room(qp) - CONTROL_PART_BYTES;
    struct control_part part = {.number = qp->parts_sent++, .whole = bytes};
    if (QP_MESSAGES_WAITING - (qp->outbox.head - qp->outbox.tail) < (bytes + maximum - 1) / maximum)
        return lh_fail(LH_EAGAIN, "too many messages are waiting to be sent");
    for (; part.offset < bytes; part.offset += part.bytes) { /* takes a byte or more */
        part.data = data + part.offset;
        part.bytes = (uint32_t)lh_min(bytes - part.offset, maximum);
        if (!queue_push(qp, &qp->outbox, body, control_part_write(&part, body)))
            return -LH_ENOMEM;
        struct qp_upper_message *last = ring_at(&qp->outbox.ring, qp->outbox.head - 1);
        last->type = CONTROL_PART;
    }
    return 0;
}

static int push_upper(struct sdr_qp *qp, const void *data, size_t bytes)
{
    bool is_long = bytes > CONTROL_PAYLOAD_MAX && qp->path_mtu.shift == 0; /* and has a packet of its own */
    if (qp->takes_parts && !is_long && bytes > body_room(qp) && body_room(qp) > CONTROL_PART_BYTES)
        return push_parts(qp, data, (uint32_t)bytes);
    if (bundle(qp, data, (uint32_t)bytes))
        return 0;
    if (is_full(&qp->outbox))
        return lh_fail(LH_EAGAIN, "%u messages are waiting to be sent", QP_MESSAGES_WAITING);
    return queue_push(qp, &qp->outbox, data, (uint32_t)bytes) ? 0 : -LH_ENOMEM;
}

int lh_sdr_message_send(struct sdr_qp *qp, const void *data, size_t bytes)
{
    uint32_t maximum = qp->upper_max - CONTROL_HEADER_BYTES;
    if (bytes == 0 || bytes > maximum)
        return lh_fail(LH_ERANGE, "message of %zu bytes: out of range (1 to %u)", bytes, maximum);
    int error = qp_usable(qp);
    if (error)
        return error;
    qp_lock(qp);
    error = push_upper(qp, data, bytes);
    qp_unlock(qp);
    if (!error)
        sdr_qp_driver_kick(qp);
    return error;
}

uint32_t sdr_qp_messages_room(struct sdr_qp *qp)
{
    qp_lock(qp);
    uint32_t room = QP_MESSAGES_WAITING - (qp->outbox.head - qp->outbox.tail);
    qp_unlock(qp);
    return room;
}

int lh_sdr_message_recv(struct sdr_qp *qp, void *buffer, size_t *bytes)
{
    bool kick = false;
    qp_lock(qp);
    struct qp_upper_message *message = queue_front(&qp->inbox);
    if (message) {
        memcpy(buffer, qp_upper_body(message), message->bytes);
        *bytes = message->bytes;
        qp->inbox.tail++;
        kick = qp_note_unused(qp);
    }
    qp_unlock(qp);
    if (kick)
        sdr_qp_driver_kick(qp);
    return message ? 0 : -LH_EAGAIN;
}

/* Without the lock: nobody but the control worker, who runs the step, puts messages there. */
const uint8_t *sdr_qp_message_peek(struct sdr_qp *qp, uint32_t index, size_t *bytes)
{
    if (index >= qp->inbox.head - qp->inbox.tail)
        return NULL;
    struct qp_upper_message *message = ring_at(&qp->inbox.ring, qp->inbox.tail + index);
    *bytes = message->bytes;
    return qp_upper_body(message);
}

void sdr_qp_messages_drop(struct sdr_qp *qp, uint32_t count)
{
    qp_lock(qp);
    qp->inbox.tail += count;
    idle_note(&qp->idle);
    qp_unlock(qp);
}

/* ---- to the peer ---- */

/* Not the time at which the round began: what passed since would be missing from every round trip. */
static lh_time fresh_now(struct sdr_qp *qp)
{
    return qp->endpoint->fabric->ops->now(qp->endpoint->fabric);
}

static struct fabric_datagram encode(struct sdr_qp *qp, struct control_message *message, lh_time now,
                                     uint8_t *out)
{
    message->header.token = qp->peer.token;
    path_stamp(&qp->path, now, &message->header);
    return (struct fabric_datagram){.data = out, .bytes = (uint32_t)control_encode(message, out)};
}

/* How many of them the fabric takes. */
static uint32_t send_datagrams(struct sdr_qp *qp, const struct fabric_datagram *datagrams, uint32_t count)
{
    int taken = qp->endpoint->fabric->ops->control_send(qp->endpoint, datagrams, count);
    if (taken < 0)
        qp_fail(qp, -LH_EDEVICE);
    if (taken <= 0)
        return 0;
    fabric_count(&qp->stats, tx_control, taken);
    return (uint32_t)taken;
}

/* False when the fabric takes no more for now: the message may be made again later. */
static bool send_control(struct sdr_qp *qp, struct control_message *message)
{
    uint8_t bytes[CONTROL_MESSAGE_MAX];
    struct fabric_datagram datagram = encode(qp, message, fresh_now(qp), bytes);
    return send_datagrams(qp, &datagram, 1) == 1;
}

/* ---- the path's MTU ---- */

/* What the fabric does not take counts as lost. */
static void send_probes(struct sdr_qp *qp)
{
    uint8_t bytes[CONTROL_PROBE_MAX];
    struct control_message message = {.header.type = CONTROL_PROBE};
    while (qp_path_mtu_take_probe(qp, &message.body.probe)) { /* PATH_MTU_LENGTHS */
        struct fabric_datagram datagram = encode(qp, &message, fresh_now(qp), bytes);
        fabric_count(&qp->stats, path_mtu_probes, send_datagrams(qp, &datagram, 1));
    }
}

static lh_time probe_path_mtu(struct sdr_qp *qp, lh_time now)
{
    lh_time next = qp_path_mtu_round(qp, now);
    if (qp->path_mtu.due != 0)
        send_probes(qp);
    return next;
}

/* Answered at once. A sender of pieces must find memory for them. */
static bool on_probe(struct sdr_qp *qp, const struct control_probe *probe, lh_time now)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    struct control_message answer = {.header.type = CONTROL_PROBED, .body.probe.id = probe->id};
    uint32_t shift = qp_path_mtu_probed(qp, probe, now);
    if (shift >= qp->path_mtu.lengths)
        return false;
    if (!qp->path.proven || qp_is_over(qp) || (shift > 0 && !ops->takes_pieces(qp->endpoint)))
        return true;
    answer.body.probe.full = qp_take_full(qp, QP_FULL_FOR_PROBE);
    send_control(qp, &answer);
    return true;
}

/* ---- arrivals ---- */

/* Without memory it counts as lost: it is not acknowledged, so the peer sends it again. */
static void add_cts(struct sdr_qp *qp, const struct control_cts *entry)
{
    uint32_t places = cts_queue_places(&qp->cts, entry->sequence);
    if (places > 0 && qp_hold(qp, &qp->cts.ring, qp->cts.next_use, places))
        cts_queue_add(&qp->cts, entry);
}

/* False when an entry cannot be: nothing of the message is used then. */
static bool on_cts(struct sdr_qp *qp, const struct control_message *message)
{
    for (uint32_t i = 0; i < message->body.cts.count; i++) {
        const struct control_cts *cts = &message->body.cts.entries[i];
        if (!qp->send_enable || cts->slot >= qp->peer.slots || cts->generation >= qp->shape.generations ||
            cts->length_bytes > qp->peer.slot_bytes)
            return false;
    }
    for (uint32_t i = 0; i < message->body.cts.count; i++)
        add_cts(qp, &message->body.cts.entries[i]);
    qp_note_cts(qp);
    qp->cts_ack_wanted = true;
    return true;
}

static void add_to_inbox(struct sdr_qp *qp, const uint8_t *data, uint32_t bytes)
{
    if (is_full(&qp->inbox) || !queue_push(qp, &qp->inbox, data, bytes))
        fabric_count(&qp->stats, rx_inbox_overflow, 1);
}

static bool on_upper(struct sdr_qp *qp, const struct control_message *message)
{
    if (CONTROL_HEADER_BYTES + message->body.upper.bytes > qp->upper_max)
        return false;
    add_to_inbox(qp, message->body.upper.data, message->body.upper.bytes);
    return true;
}

static bool on_uppers(struct sdr_qp *qp, const struct control_message *message)
{
    struct control_message rest = *message;
    const uint8_t *data;
    uint32_t bytes;
    while ((bytes = control_uppers_take(&rest, &data)) > 0) /* bounded by the datagram */
        add_to_inbox(qp, data, bytes);
    qp->bundles = true;
    return true;
}

/* Without memory it counts as lost. */
static bool on_part(struct sdr_qp *qp, const struct control_message *message)
{
    struct control_part part = control_part_read(message);
    if (CONTROL_HEADER_BYTES + part.whole > qp->upper_max)
        return false;
    if (!qp->parts)
        qp->parts = store_take(qp->store, sizeof *qp->parts);
    const struct control_parts_message *whole = qp->parts ? control_parts_add(qp->parts, &part) : NULL;
    if (whole)
        add_to_inbox(qp, whole->data, whole->whole);
    return true;
}

/* At once, and no longer than the question; what does not leave counts as lost. */
static void answer_for_others(struct sdr_qp *qp, const struct control_message *question, lh_time now)
{
    struct control_message answer = {.header.type = CONTROL_ALIVE};
    if (!qp->path.proven || qp_is_over(qp))
        return;
    answer.body.alive.count = keepalive_table_answer(
        &qp->context->keepalive_table, &qp->keepalive_member, question->body.alive.tokens,
        question->body.alive.count, now, answer.body.alive.tokens);
    if (answer.body.alive.count > 0)
        send_control(qp, &answer);
}

static bool on_message(struct sdr_qp *qp, const struct control_message *message, lh_time now)
{
    switch (message->header.type) {
    case CONTROL_PING:
        qp->pong_wanted = true;
        return true;
    case CONTROL_PONG:
        return true;
    case CONTROL_CTS:
        return on_cts(qp, message);
    case CONTROL_CTS_HEARD:
        if (!qp_is_over(qp) &&
            cts_on_ack(&qp->announcer, message->body.cts_heard_next, now, lh_rtt_overdue_ns(&qp->path.rtt)))
            idle_note(&qp->idle);
        return true;
    case CONTROL_UPPER:
        return on_upper(qp, message);
    case CONTROL_UPPERS:
        return on_uppers(qp, message);
    case CONTROL_PART:
        return on_part(qp, message);
    case CONTROL_CLOSE:
        qp_fail(qp, -LH_ECLOSED);
        return true;
    case CONTROL_FEEDBACK:
        return qp_rate_on_feedback(qp, &message->body.feedback,
                                   message->header.sent_ns >= qp->path.newest_ns, now);
    case CONTROL_KEEPALIVE:
        answer_for_others(qp, message, now);
        return true;
    case CONTROL_ALIVE:
        keepalive_table_on_alive(&qp->context->keepalive_table, &qp->keepalive_member,
                                 message->body.alive.tokens, message->body.alive.count, now);
        return true;
    case CONTROL_PROBE:
        return on_probe(qp, &message->body.probe, now);
    case CONTROL_PROBED:
        qp_path_mtu_on_answer(qp, &message->body.probe, now);
        return true;
    }
    return false;
}

/* What was queued before waits for it. */
static void note_proof(struct sdr_qp *qp, lh_time now)
{
    if (!qp->path.proven || atomic_load_explicit(&qp->proven, memory_order_relaxed))
        return;
    store_give(qp->store, qp->path.challenges, PATH_CHALLENGES_BYTES);
    qp->path.challenges = NULL;
    qp_rate_start(qp, now);
    qp->bundles_unannounced = qp->endpoint->fabric->ops->bundles_control ? BUNDLE_COPIES : 0;
    atomic_store_explicit(&qp->proven, true, memory_order_relaxed);
    qp_wake_all(qp);
}

static void on_datagram(struct sdr_qp *qp, const struct fabric_control_arrival *arrival, lh_time now)
{
    struct control_message message;
    if (control_decode(arrival->data, arrival->bytes, &message)) {
        fabric_count(&qp->stats, bad_control, 1);
        return;
    }
    if (message.header.token != qp->token) {
        fabric_count(&qp->stats, bad_token, 1);
        return;
    }
    if (qp->endpoint->fabric->ops->control_proven)
        qp->endpoint->fabric->ops->control_proven(qp->endpoint, arrival);
    if (!on_message(qp, &message, now)) {
        fabric_count(&qp->stats, bad_control, 1);
        return;
    }
    /* A peer that still sends has not received the CLOSE, and would take any answer for a sign of life. */
    if (qp->closing && qp->close_copies == 0 && message.header.type != CONTROL_CLOSE)
        qp->close_copies = 1;
    path_on_control(&qp->path, &message.header, now);
    note_proof(qp, now);
    fabric_count(&qp->stats, rx_control, 1);
}

static bool receive_control(struct sdr_qp *qp)
{
    struct fabric_control_arrival arrivals[QP_CONTROL_BATCH];
    int count = qp->endpoint->fabric->ops->control_poll(qp->endpoint, arrivals, QP_CONTROL_BATCH);
    lh_time now = count > 0 ? fresh_now(qp) : 0;
    if (count < 0)
        qp_fail(qp, -LH_EDEVICE);
    for (int i = 0; i < count; i++)
        on_datagram(qp, &arrivals[i], now);
    return count > 0;
}

/* ---- sending ---- */

/* A body is long, and a type uses a few bytes of it: clears what a message without one has. */
static void message_begin(struct control_message *message, enum control_type type)
{
    message->header = (struct control_header){.type = type};
    message->body.upper.data = NULL;
    message->body.upper.bytes = 0;
}

static bool send_simple(struct sdr_qp *qp, enum control_type type)
{
    struct control_message message;
    message_begin(&message, type);
    if (type == CONTROL_CTS_HEARD)
        message.body.cts_heard_next = qp->cts.received;
    if (type == CONTROL_CLOSE)
        message.body.close_reason = qp->close_reason;
    return send_control(qp, &message);
}

/* One in any case: the shortest packets carry none. */
static uint32_t cts_room(const struct sdr_qp *qp)
{
    uint64_t entries = lh_min(body_room(qp) / CONTROL_CTS_BYTES, CONTROL_CTS_MAX);
    return (uint32_t)lh_max(entries, 1);
}

static void send_cts(struct sdr_qp *qp, lh_time now)
{
    struct control_message message;
    uint32_t repeated;
    lh_time overdue_ns = lh_rtt_overdue_ns(&qp->path.rtt);
    qp->cts_refused = false;
    message_begin(&message, CONTROL_CTS);
    /* Bounded by the announcer's window. */
    while ((message.body.cts.count = cts_collect(&qp->announcer, now, overdue_ns, message.body.cts.entries,
                                                 cts_room(qp), &repeated)) > 0) {
        if (!send_control(qp, &message)) {
            cts_on_refused(&qp->announcer, message.body.cts.count, repeated, now);
            qp->cts_refused = true;
            return;
        }
        fabric_count(&qp->stats, cts_sent, message.body.cts.count);
        fabric_count(&qp->stats, cts_repeated, repeated);
    }
}

/* Sends the first `most` of those that wait, with one call of the fabric. False: it did not take all. */
static bool send_batch(struct sdr_qp *qp, uint32_t maximum)
{
    struct fabric_datagram datagrams[FABRIC_BATCH_MAX];
    struct qp_upper_queue *outbox = &qp->outbox;
    uint32_t count = (uint32_t)lh_min(outbox->head - outbox->tail, maximum);
    lh_time now = fresh_now(qp);
    for (uint32_t i = 0; i < count; i++) {
        struct qp_upper_message *waiting = ring_at(&outbox->ring, outbox->tail + i);
        struct control_message message;
        message_begin(&message, waiting->type);
        message.body.upper.data = qp_upper_body(waiting);
        message.body.upper.bytes = waiting->bytes;
        datagrams[i] = encode(qp, &message, now, waiting->datagram);
    }
    uint32_t taken = send_datagrams(qp, datagrams, count);
    for (uint32_t i = 0; i < taken; i++)
        if (datagrams[i].bytes > CONTROL_MESSAGE_MAX)
            qp->long_bytes += datagrams[i].bytes;
    outbox->tail += taken;
    if (taken > 0)
        idle_note(&qp->idle);
    return taken == count;
}

/* At first `most` in a call. Whether any left. */
static bool send_upper(struct sdr_qp *qp, uint32_t maximum)
{
    uint32_t before = qp->outbox.tail;
    while (queue_front(&qp->outbox) && send_batch(qp, maximum)) /* bounded by the queue */
        maximum = 2 * maximum < FABRIC_BATCH_MAX ? 2 * maximum : FABRIC_BATCH_MAX;
    return qp->outbox.tail != before;
}

/* With other control messages only: an idle QP sends none for it. */
static void announce_bundles(struct sdr_qp *qp)
{
    if (qp->bundles_unannounced > 0 && send_simple(qp, CONTROL_UPPERS))
        qp->bundles_unannounced--;
}

static bool send_report(struct sdr_qp *qp, lh_time now)
{
    qp->report_refused = false;
    if (!qp_rate_report_due(qp, now))
        return false;
    lh_time fresh_ns = fresh_now(qp);
    struct control_message message;
    message_begin(&message, CONTROL_FEEDBACK);
    message.body.feedback = qp_rate_report(qp, fresh_ns);
    qp->report_refused = !send_control(qp, &message);
    if (!qp->report_refused)
        qp_rate_on_reported(qp, &message.body.feedback, now);
    return !qp->report_refused;
}

/* ---- keepalive ---- */

/* Something is under way: its silence may be worth a ping sooner than the representative's. */
static bool is_waiting(const struct sdr_qp *qp)
{
    return qp->keepalive_member.waits || qp->posted_bytes > 0 ||
           atomic_load_explicit(&qp->queued_bytes, memory_order_relaxed) > 0;
}

/* Others ping where this one need not. */
static bool is_pinging(const struct sdr_qp *qp)
{
    if (!qp->path.proven || qp->path.rtt.samples == 0 || qp->punches ||
        atomic_load(&qp->keepalive_member.keeps))
        return true;
    bool is_soon = qp->path.ping_span < qp->path.keepalive_ns;
    return is_waiting(qp) && (is_soon || keepalive_member_is_alone(&qp->keepalive_member));
}

static lh_time ping_at(const struct sdr_qp *qp)
{
    if (!is_pinging(qp))
        return LH_TIME_NEVER;
    bool is_quiet =
        qp->path.ping_span >= qp->path.keepalive_ns && !atomic_load(&qp->keepalive_member.keeps);
    return is_quiet ? lh_max(qp->path.ping_at, qp->keepalive_member.ping_from) : qp->path.ping_at;
}

static lh_time ask_at(const struct sdr_qp *qp)
{
    return atomic_load(&qp->keepalive_member.keeps) ? qp->keepalive_member.ask_at : LH_TIME_NEVER;
}

/* That a packet of the path carries. */
static uint32_t tokens_room(const struct sdr_qp *qp)
{
    return body_room(qp) / 4;
}

/* What is not sent now counts as lost: those that it names are alone then. */
static void ask_for_others(struct sdr_qp *qp, lh_time now)
{
    bool sends = qp->path.proven && qp->keepalive_member.asked_for;
    struct keepalive_table *keepalive_table = &qp->context->keepalive_table;
    struct keepalive_query question = keepalive_table_query(keepalive_table, &qp->keepalive_member, now);
    struct control_message message = {.header.type = CONTROL_KEEPALIVE};
    while ((message.body.alive.count =
                keepalive_table_fill_query(keepalive_table, &question, message.body.alive.tokens,
                                           tokens_room(qp))) > 0) /* bounded by the QPs */
        sends = sends && send_control(qp, &message);
    for (struct keepalive_member *alone = question.alone; alone; alone = alone->next_alone)
        sdr_qp_driver_kick(qp_of_keepalive_member(alone));
}

/* All that an address gets before it is proven: an answer for each ping that came from there, and a few
 * pings. */
static bool challenge(struct sdr_qp *qp, lh_time now)
{
    bool sent = qp->pong_wanted && send_simple(qp, qp->closing ? CONTROL_CLOSE : CONTROL_PONG);
    if (sent)
        qp->pong_wanted = false;
    if (!qp->closing && path_ping_due(&qp->path, now))
        send_simple(qp, CONTROL_PING);
    return sent;
}

static bool send_due(struct sdr_qp *qp, lh_time now)
{
    bool sent = false;
    if (ask_at(qp) <= now && !qp_is_over(qp))
        ask_for_others(qp, now);
    if (!qp->path.proven)
        return !atomic_load(&qp->error) && challenge(qp, now);
    if (qp->closing) {
        /* What was queued before the CLOSE goes out before it. */
        sent = send_upper(qp, FIRST_BATCH);
        for (; !queue_front(&qp->outbox) && qp->close_copies > 0 && send_simple(qp, CONTROL_CLOSE);
             qp->close_copies--)
            sent = true;
        return sent;
    }
    if (atomic_load(&qp->error))
        return false;
    if (qp->pong_wanted && send_simple(qp, CONTROL_PONG))
        qp->pong_wanted = false, sent = true;
    if (qp->cts_ack_wanted && send_simple(qp, CONTROL_CTS_HEARD))
        qp->cts_ack_wanted = false, sent = true;
    send_cts(qp, now);
    sent |= send_report(qp, now);
    sent |= send_upper(qp, FIRST_BATCH);
    if (sent)
        announce_bundles(qp);
    if (ping_at(qp) <= now && path_ping_due(&qp->path, now))
        send_simple(qp, CONTROL_PING);
    return sent;
}

/* Data is a sign of life too. */
static void note_traffic(struct sdr_qp *qp, lh_time now)
{
    uint64_t packets = __atomic_load_n(&qp->stats.rx_packets, __ATOMIC_RELAXED);
    if (packets != qp->packets_noted)
        path_on_traffic(&qp->path, now);
    qp->packets_noted = packets;
    uint64_t buffer =
        qp->receive_buffer_bytes ? qp->receive_buffer_bytes / qp->shape.mtu_bytes : UINT32_MAX;
    lh_time coalesce_ns = coalesce_span(&qp->coalesce, packets, qp->path.rtt.minimum_ns, buffer, now);
    atomic_store_explicit(&qp->coalesce_ns, coalesce_ns, memory_order_relaxed);
}

static lh_time run_driver(struct sdr_qp *qp, lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    pthread_mutex_lock(&qp->driver_lock);
    if (qp->driver)
        next = qp->driver(qp->driver_context, now);
    pthread_mutex_unlock(&qp->driver_lock);
    return next;
}

/* Whether the fabric refused something that send_due() would send now. */
static bool was_refused(struct sdr_qp *qp)
{
    if (!qp->path.proven)
        return qp->pong_wanted && !atomic_load(&qp->error);
    if (qp->closing)
        return qp->close_copies > 0 || queue_front(&qp->outbox);
    return !atomic_load(&qp->error) && (qp->pong_wanted || qp->cts_ack_wanted || qp->cts_refused ||
                                        qp->report_refused || queue_front(&qp->outbox));
}

bool qp_control_poll(struct sdr_qp *qp, lh_time now)
{
    if (!atomic_load_explicit(&qp->connected, memory_order_acquire) || qp_device_gone(qp))
        return false;
    gate_enter(&qp->lock);
    note_traffic(qp, now);
    bool received = receive_control(qp);
    gate_leave(&qp->lock);
    return received;
}

/* What the driver's step has left to send, and when that is due. Under the lock. */
static bool send_control_due(struct sdr_qp *qp, lh_time now, lh_time *next)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    bool sent = send_due(qp, now);
    if (ops->pump)
        lh_keep_earlier(next, ops->pump(qp->endpoint, FABRIC_CONTROL, now));
    else if (was_refused(qp))
        lh_keep_earlier(next, now + QP_BLOCKED_RETRY_NS);
    /* After a CLOSE nothing else is sent, so none of it is due. */
    if (qp_is_over(qp)) {
        qp_leave_keepalive_group(qp);
    } else {
        if (!qp->cts_refused && qp->path.proven) /* else the fabric decides when to go on */
            lh_keep_earlier(next, cts_announcer_next(&qp->announcer));
        if (!qp->report_refused && qp->path.proven)
            lh_keep_earlier(next, qp_rate_report_next(qp));
        lh_keep_earlier(next, qp_rate_round(qp, now));
        if (qp->path.proven)
            lh_keep_earlier(next, probe_path_mtu(qp, now));
        lh_keep_earlier(next, ping_at(qp));
        lh_keep_earlier(next, ask_at(qp));
    }
    lh_keep_earlier(next, qp_memory_round(qp, now));
    return sent;
}

bool qp_control_deliver(struct sdr_qp *qp, lh_time now)
{
    return run_driver(qp, now) <= now;
}

bool qp_control_act(struct sdr_qp *qp, lh_time now, lh_time *next)
{
    bool connected = atomic_load_explicit(&qp->connected, memory_order_acquire);
    bool sent = false;
    /* Between receiving and sending, so that an answer leaves in the round in which its question came. */
    lh_keep_earlier(next, run_driver(qp, now));
    if (!connected)
        return false;
    gate_enter(&qp->lock);
    if (qp_device_gone(qp)) /* it can ping for nobody */
        qp_leave_keepalive_group(qp);
    else
        sent = send_control_due(qp, now, next);
    gate_leave(&qp->lock);
    return sent;
}

int lh_sdr_goodbye(struct sdr_qp *qp, enum lh_error reason)
{
    int error = qp_usable(qp);
    if (error)
        return error;
    qp_lock(qp);
    if (!qp->closing)
        qp->close_reason = reason;
    qp->closing = true;
    qp->close_copies = CLOSE_COPIES;
    qp_unlock(qp);
    sdr_qp_driver_kick(qp);
    return 0;
}

void sdr_qp_messages_flush(struct sdr_qp *qp)
{
    /* Called while a connection closes, too, whose reason stays the last error. */
    if (atomic_load(&qp->error) || !atomic_load(&qp->connected) ||
        !atomic_load_explicit(&qp->proven, memory_order_relaxed))
        return;
    qp_lock(qp);
    if (!qp->closing)
        send_upper(qp, FABRIC_BATCH_MAX);
    qp_unlock(qp);
}

void qp_close_flush(struct sdr_qp *qp)
{
    if (!atomic_load(&qp->connected) || qp_device_gone(qp))
        return;
    qp_lock(qp);
    if (qp->closing) /* what does not leave now is lost, like any packet may be */
        send_due(qp, qp->endpoint->fabric->ops->now(qp->endpoint->fabric));
    qp_unlock(qp);
}

/* Its own, or that of all QPs of the context; 0: none. */
static uint64_t pace_of(const struct sdr_qp *qp)
{
    uint64_t own_bps = atomic_load_explicit(&qp->pace_bps, memory_order_relaxed);
    uint64_t all_bps = qp->context->rate.pacer.rate_bps;
    return own_bps != 0 && (all_bps == 0 || own_bps < all_bps) ? own_bps : all_bps;
}

int lh_sdr_path(struct sdr_qp *qp, struct lh_sdr_path *path)
{
    qp_lock(qp);
    *path = (struct lh_sdr_path){
        .rtt_ns = qp->path.rtt.smoothed_ns,
        .rtt_variance_ns = qp->path.rtt.variance_ns,
        .rtt_minimum_ns = qp->path.rtt.minimum_ns,
        .overdue_ns = lh_rtt_overdue_ns(&qp->path.rtt),
        .reorder_window_ns = lh_rtt_reorder_window_ns(&qp->path.rtt),
        .last_heard_ns = lh_max(qp->path.last_received_ns, atomic_load(&qp->keepalive_member.alive_ns)),
        .peer_receive_buffer_bytes = qp->peer.receive_buffer_bytes,
        .controlled = rate_control_is_on(&qp->rate),
        .pace_bps = pace_of(qp),
        .packet_bytes = sdr_qp_packet_bytes(qp),
    };
    qp_unlock(qp);
    return 0;
}
