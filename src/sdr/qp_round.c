/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/qp_parts.h"

#include <assert.h>

#include "base/min_max.h"
#include "fabric/fabric.h"
#include "sdr/sdr_state.h"

#define OFFER_MORE 4u /* than the fabric took when it last refused some */
/* A worker that is late is waited for that long, then twice as long each time: up to a millisecond. */
#define LATE_NS          LH_NS_PER_US
#define LATE_DOUBLES_MAX 10u
#define WAITS_NS         LH_NS_PER_MS /* a packet, for a worker that sleeps */

/* Mostly one is asked for after many arrivals, and the first of them is one. */
static void note_full(struct sdr_qp *qp, const struct fabric_arrival *arrivals, uint32_t count)
{
    if (atomic_load_explicit(&qp->full_arrived, memory_order_relaxed) == QP_FULL_FOR_ALL)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (arrivals[i].bytes == qp->shape.mtu_bytes) {
            atomic_store_explicit(&qp->full_arrived, QP_FULL_FOR_ALL, memory_order_relaxed);
            return;
        }
}

static void note_arrivals(struct sdr_qp *qp, uint32_t channel, const struct fabric_arrival *arrivals,
                          uint32_t count, lh_time now)
{
    struct qp_arrivals *own = &qp->channels[channel].arrivals;
    uint64_t packets = atomic_load_explicit(&own->packets, memory_order_relaxed);
    own->newest_ns = now;
    own->late = qp_rate_late(qp);
    own->newest_immediate = arrivals[count - 1].immediate;
    own->newest_generation = arrivals[count - 1].generation;
    atomic_store_explicit(&own->packets, packets + count, memory_order_relaxed);
}

static uint64_t cost_of(const struct fabric_arrival *arrivals, uint32_t count)
{
    uint64_t cost = (uint64_t)count * TURNS_PACKET;
    for (uint32_t i = 0; i < count; i++)
        cost += arrivals[i].bytes;
    return cost;
}

static bool receive(struct sdr_qp *qp, uint32_t channel, uint32_t maximum, lh_time now, uint64_t *cost)
{
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    int count = qp->endpoint->fabric->ops->poll(qp->endpoint, channel, arrivals, maximum);
    if (count < 0) {
        qp_fail(qp, -LH_EDEVICE);
        return false;
    }
    if (count == FABRIC_POLL_AGAIN)
        return true;
    if (count == 0) { /* else some may be left behind */
        atomic_store_explicit(&qp->channels[channel].drained_ns, now, memory_order_release);
        return false;
    }
    note_full(qp, arrivals, (uint32_t)count);
    note_arrivals(qp, channel, arrivals, (uint32_t)count, now);
    message_table_on_arrivals(&qp->table, arrivals, (uint32_t)count, &qp->stats);
    *cost += cost_of(arrivals, (uint32_t)count);
    return true;
}

static uint64_t packets_of(struct sdr_qp *qp, uint32_t channel)
{
    return atomic_load_explicit(&qp->channels[channel].arrivals.packets, memory_order_relaxed);
}

/* The packet that was read last waited so long that this host has paused; or when it came is not known. */
static bool waited_long(struct sdr_qp *qp, uint32_t channel, lh_time now)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    lh_time arrived_ns = ops->arrived ? ops->arrived(qp->endpoint, channel) : 0;
    return arrived_ns == 0 || now > arrived_ns + WAITS_NS;
}

/* While the first packets come, whose spacing shows the path's rate, each is read alone and reported with the
 * time when it had reached this host. After a pause, and where that time is unknown, they have no spacing:
 * all that waits is read before a report is written. */
static bool receive_first(struct sdr_qp *qp, uint32_t channel, lh_time now, uint64_t *cost)
{
    struct fabric *fabric = qp->endpoint->fabric;
    uint64_t before = packets_of(qp, channel);
    bool moved = receive(qp, channel, 1, now, cost);
    bool all = packets_of(qp, channel) > before && waited_long(qp, channel, now);
    while (all && packets_of(qp, channel) > before && before < ARRIVAL_REPORT_FIRST) {
        before = packets_of(qp, channel);
        receive(qp, channel, FABRIC_BATCH_MAX, fabric->ops->now(fabric), cost);
    }
    return moved;
}

static uint64_t bytes_of(const struct fabric_write *writes, uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += writes[i].bytes;
    return bytes;
}

/* Who reads that they are gone reads when, too. */
static void note_left(struct sdr_qp *qp, uint64_t bytes, lh_time now)
{
    if (bytes == 0)
        return;
    lh_time last_ns = atomic_load_explicit(&qp->sends_left_ns, memory_order_relaxed);
    while (now > last_ns &&
           !atomic_compare_exchange_weak_explicit(&qp->sends_left_ns, &last_ns, now, memory_order_relaxed,
                                                  memory_order_relaxed))
        ; /* until nobody is in between: workers are few */
    atomic_fetch_sub_explicit(&qp->queued_bytes, bytes, memory_order_release);
}

static bool is_paced(const struct sdr_qp *qp)
{
    return rate_control_is_on(&qp->rate) || qp->rate.pacer.rate_bps != 0 ||
           shared_rate_is_on(&qp->context->rate);
}

/* What may leave now, by its own rate and by that of all. Under the pacer's lock. */
static struct rate_room room_of(struct sdr_qp *qp, lh_time now)
{
    struct sdr_context *context = qp->context;
    struct rate_room room = rate_control_room(&qp->rate, now);
    /* No turn is reserved for what may not leave. */
    if (!shared_rate_is_on(&context->rate) || room.bytes == 0 || room.packets == 0)
        return room;
    uint64_t queued = lh_sdr_send_queued_bytes(qp);
    uint64_t first = lh_min(queued, qp->shape.mtu_bytes);
    pthread_mutex_lock(&context->rate_lock);
    uint64_t bytes = shared_rate_room(&context->rate, &qp->rate_turn, queued, first, now);
    pthread_mutex_unlock(&context->rate_lock);
    if (bytes >= room.bytes)
        return room;
    return (struct rate_room){bytes, bytes > 0 ? room.packets : 0, LH_LIMIT_RATE};
}

/* Several workers share what may leave. */
static bool is_shared(const struct sdr_qp *qp)
{
    return qp->context->turns > 1 && qp->channel_count > 1;
}

/* The place of the next packet, where it counts: other workers may send what was posted before it. */
static bool shared_front(const struct sdr_qp *qp, uint32_t channel, struct send_place *front)
{
    return is_shared(qp) &&
           send_channel_front(&qp->channels[channel].sends, &qp->send_shape, channel, front);
}

/* Of others, who send it first. Under the channel's gate and the pacer's lock. */
static uint64_t bytes_ahead(const struct sdr_qp *qp, uint32_t channel)
{
    struct send_place front;
    if (!shared_front(qp, channel, &front))
        return 0;
    int64_t ahead = (int64_t)(front.begin - qp->rate.passed_bytes);
    return ahead > 0 ? (uint64_t)ahead : 0;
}

/* The channel can send no more for that reason. Where others are ahead it looks again when the pace has let
 * theirs out, and waits twice as long each time that their workers are late. Under the channel's gate and the
 * pacer's lock. */
static void hold(struct sdr_qp *qp, uint32_t channel, enum lh_limit limit, lh_time now)
{
    struct qp_channel *own = &qp->channels[channel];
    if (limit != LH_LIMIT_RATE) {
        qp->waiting_channels |= (uint32_t)1 << channel;
        return;
    }
    uint64_t ahead = bytes_ahead(qp, channel);
    lh_time until = rate_control_ready(&qp->rate, limit, now, lh_sdr_send_queued_bytes(qp), ahead);
    until = lh_max(until, qp->rate_turn.at_ns);
    if (ahead > 0) {
        until = lh_max(until, now + (LATE_NS << own->waits));
        own->waits = (uint32_t)lh_min(own->waits + 1, LATE_DOUBLES_MAX);
    }
    qp_note_pace(qp);
    atomic_store_explicit(&own->paced_bps, qp->rate.pacer.rate_bps, memory_order_relaxed);
    atomic_store_explicit(&own->paced_until_ns, until, memory_order_relaxed);
}

static void keep_until_paced(struct sdr_qp *qp, uint32_t channel, enum lh_limit limit, lh_time *next)
{
    if (limit == LH_LIMIT_RATE)
        lh_keep_earlier(next,
                        atomic_load_explicit(&qp->channels[channel].paced_until_ns, memory_order_relaxed));
}

/* Where workers share a pace, a window or credits, one of them might take all of it, and what was posted
 * earlier to the channel of another would fall behind until it is taken for lost: each sends only as far as
 * the room reaches. Under the channel's gate and the pacer's lock. */
static bool is_beyond(const struct sdr_qp *qp, uint32_t channel, uint64_t reach)
{
    struct send_place front;
    return shared_front(qp, channel, &front) && (int64_t)(front.end - reach) > 0;
}

/* Of a QP that is paced: nothing may leave now, so no packet need be made. *limit says why, *next until when.
 * Else *reach how far the room reaches. */
static bool is_held(struct sdr_qp *qp, uint32_t channel, lh_time now, lh_time *next, enum lh_limit *limit,
                    uint64_t *reach)
{
    struct rate_room room = {0, 0, LH_LIMIT_RATE};
    bool held = true;
    if (!qp_is_paced_until(qp, channel, now)) {
        pthread_mutex_lock(&qp->pacer_lock);
        room = room_of(qp, now);
        *reach = rate_control_reach(&qp->rate, &room);
        limits_late(&qp->channels[channel].limits, rate_control_full(&qp->rate), now);
        held = room.bytes == 0 || room.packets == 0 || is_beyond(qp, channel, *reach);
        if (held)
            hold(qp, channel, room.limit, now);
        pthread_mutex_unlock(&qp->pacer_lock);
    }
    if (!held)
        return false;
    *limit = room.limit;
    keep_until_paced(qp, channel, room.limit, next);
    return true;
}

/* How many of these packets may leave now; if not all: *limit says why. */
static uint32_t pace(struct sdr_qp *qp, uint32_t channel, const struct fabric_write *writes, uint32_t count,
                     lh_time now, enum lh_limit *limit)
{
    if (!is_paced(qp))
        return count;
    pthread_mutex_lock(&qp->pacer_lock);
    struct rate_room room = room_of(qp, now);
    uint32_t passed = 0;
    uint64_t bytes = 0;
    while (passed < count && passed < room.packets && bytes + writes[passed].bytes <= room.bytes)
        bytes += writes[passed++].bytes;
    rate_control_reserve(&qp->rate, passed, bytes, now);
    if (shared_rate_is_on(&qp->context->rate))
        shared_rate_on_sent(&qp->rate_turn, bytes);
    if (passed > 0)
        qp->channels[channel].waits = 0;
    if (passed < count) {
        *limit = room.limit;
        hold(qp, channel, room.limit, now);
    }
    pthread_mutex_unlock(&qp->pacer_lock);
    return passed;
}

static uint64_t key_of(const struct sdr_qp *qp, const struct fabric_write *write)
{
    return qp_packet_key(qp, write->immediate, write->generation);
}

/* Runs of packets whose keys follow each other. */
static void note_runs(struct sdr_qp *qp, const struct fabric_write *writes, uint32_t count, lh_time now)
{
    for (uint32_t first = 0, next; first < count; first = next) {
        uint64_t key = key_of(qp, &writes[first]);
        for (next = first + 1; next < count && key_of(qp, &writes[next]) == key + (next - first);)
            next++;
        rate_control_on_run(&qp->rate, key, next - first, bytes_of(writes + first, next - first), now);
    }
}

/* What became of the packets that were let out. After they were taken off the queue. */
static void note_taken(struct sdr_qp *qp, const struct fabric_write *writes, uint32_t count, uint32_t taken,
                       lh_time now)
{
    bool controlled = rate_control_is_on(&qp->rate);
    if (!controlled && (!is_paced(qp) || taken == count))
        return;
    pthread_mutex_lock(&qp->pacer_lock);
    if (taken < count) {
        uint64_t refused = bytes_of(writes + taken, count - taken);
        rate_control_on_refused(&qp->rate, count - taken, refused);
        if (shared_rate_is_on(&qp->context->rate))
            qp->rate_turn.bytes += refused;
    }
    if (controlled && taken > 0) {
        note_runs(qp, writes, taken, now);
        rate_control_on_sent(&qp->rate, bytes_of(writes, taken), lh_sdr_send_queued_bytes(qp), now);
        qp_note_pace(qp);
    }
    pthread_mutex_unlock(&qp->pacer_lock);
}

/* What the other channels must not overtake, unless they need not heed it. Under the channel's gate. */
static void note_front(const struct sdr_qp *qp, uint32_t channel, bool heeded, struct channel_order *order)
{
    struct send_place front = {0, 0};
    bool waiting =
        heeded && send_channel_front(&qp->channels[channel].sends, &qp->send_shape, channel, &front);
    channel_order_set(order, channel, waiting, front.begin);
}

/* How many pieces of that packet the fabric has. */
static uint32_t begun_pieces(const struct qp_cut *begun, const struct fabric_write *write, uint32_t pieces)
{
    bool is_it = begun->pieces == pieces && begun->va == write->va && begun->rkey == write->rkey;
    return is_it ? begun->taken : 0;
}

/* Cuts the next packets into pieces, at most a batch; the first without those that the fabric has. Returns
 * how many packets; ends[i]: the pieces of all up to packet i. */
static uint32_t cut_packets(const struct sdr_qp *qp, const struct qp_cut *begun,
                            const struct fabric_write *writes, uint32_t count, uint32_t pieces,
                            struct fabric_write cut[FABRIC_BATCH_MAX], uint32_t ends[FABRIC_BATCH_MAX])
{
    const struct packet_receiver peer = {qp->peer.slots * qp->peer.slot_bytes, qp->shape.mtu_bytes};
    struct fabric_write of[PACKET_PIECES_MAX];
    uint32_t packets = 0, used = 0;
    for (; packets < count && used + pieces <= FABRIC_BATCH_MAX; packets++) {
        uint32_t all = packet_cut(&peer, &writes[packets], pieces, of);
        for (uint32_t i = packets == 0 ? begun_pieces(begun, writes, pieces) : 0; i < all; i++)
            cut[used++] = of[i];
        ends[packets] = used;
    }
    return packets;
}

/* The path does not take whole packets. Returns how many of these the fabric took; of the next one it may
 * have taken some pieces: then it is not offered those again, or a full queue that always has room for a few
 * would never get the rest. Negative: the device is gone. */
static int post_pieces(struct sdr_qp *qp, uint32_t channel, const struct fabric_write *writes,
                       uint32_t count, uint32_t pieces)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    struct qp_cut *begun = &qp->channels[channel].begun;
    struct fabric_write cut[FABRIC_BATCH_MAX];
    uint32_t ends[FABRIC_BATCH_MAX];
    uint32_t taken = 0;
    while (taken < count) { /* takes a packet or more */
        uint32_t packets = cut_packets(qp, begun, writes + taken, count - taken, pieces, cut, ends);
        int posted = ops->post_writes(qp->endpoint, channel, cut, ends[packets - 1]);
        if (posted < 0)
            return taken > 0 ? (int)taken : posted;
        fabric_count(&qp->stats, tx_pieces, posted);
        uint32_t whole = 0, before = 0;
        for (; whole < packets && ends[whole] <= (uint32_t)posted; whole++)
            before = ends[whole];
        taken += whole;
        uint32_t kept = whole == 0 ? begun_pieces(begun, &writes[taken], pieces) : 0;
        *begun = (struct qp_cut){0};
        if (whole == packets)
            continue;
        *begun =
            (struct qp_cut){writes[taken].va, writes[taken].rkey, pieces, kept + (uint32_t)posted - before};
        break;
    }
    return (int)taken;
}

static int post(struct sdr_qp *qp, uint32_t channel, const struct fabric_write *writes, uint32_t count)
{
    uint32_t pieces = atomic_load_explicit(&qp->pieces, memory_order_relaxed);
    if (pieces > 1)
        return post_pieces(qp, channel, writes, count, pieces);
    return qp->endpoint->fabric->ops->post_writes(qp->endpoint, channel, writes, count);
}

/* Offers the fabric up to `room` of the next packets that no other channel's go before; returns how many it
 * took. *limit: why not all; unchanged when it took all. */
static uint32_t offer(struct sdr_qp *qp, uint32_t channel, uint32_t room, const struct channel_order *order,
                      lh_time now, lh_time *next, enum lh_limit *limit)
{
    struct send_channel *sends = &qp->channels[channel].sends;
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    struct fabric_write writes[FABRIC_BATCH_MAX];
    assert(room > 0 && room <= FABRIC_BATCH_MAX);
    bool paced = is_paced(qp), shared = paced && is_shared(qp);
    uint64_t reach = 0, bound;
    if (paced && is_held(qp, channel, now, next, limit, &reach))
        return 0;
    bool bounded = channel_order_bound(order, channel, &bound);
    if (shared && (!bounded || (int64_t)(reach - bound) < 0))
        bound = reach;
    bounded |= shared;
    uint32_t ready =
        send_channel_peek(sends, &qp->send_shape, channel, bounded ? &bound : NULL, writes, room);
    uint32_t count = pace(qp, channel, writes, ready, now, limit);
    int taken = count ? post(qp, channel, writes, count) : 0;
    if (taken < 0) {
        qp_fail(qp, -LH_EDEVICE);
        taken = 0;
    }
    uint64_t bytes = send_channel_take(sends, &qp->send_shape, channel, (uint32_t)taken);
    note_left(qp, bytes, now);
    if (count > 0)
        note_taken(qp, writes, count, (uint32_t)taken, now);
    fabric_count(&qp->stats, tx_packets, taken);
    fabric_count(&qp->stats, tx_bytes, bytes);
    /* When the fabric took less than the pace allows, the fabric decides when to go on. */
    if ((uint32_t)taken < count)
        *limit = LH_LIMIT_FABRIC;
    else if (count < ready)
        keep_until_paced(qp, channel, *limit, next);
    else if (bounded && ready < room && !send_channel_empty(sends))
        *limit = LH_LIMIT_RATE;
    if (*limit == LH_LIMIT_FABRIC && !ops->pump)
        lh_keep_earlier(next, now + QP_BLOCKED_RETRY_NS);
    return (uint32_t)taken;
}

/* A batch at most. A fabric that took few the last time will hardly take many now, and the packets that it
 * refuses were made for nothing: it is offered a few first, and the rest of the batch when it takes them. */
static bool inject(struct sdr_qp *qp, uint32_t channel, struct channel_order *order, lh_time now,
                   lh_time *next)
{
    struct qp_channel *own = &qp->channels[channel];
    if (send_channel_empty(&own->sends)) {
        bool more = atomic_load_explicit(&qp->user_window, memory_order_relaxed);
        limits_note(&own->limits, more ? LH_LIMIT_USER_WINDOW : LH_LIMIT_IDLE, now);
        return false; /* nor did anything wait when the order was made */
    }
    uint64_t dropped = send_channel_drop_aborted(&own->sends, &qp->send_shape, channel);
    if (dropped > 0) {
        note_left(qp, dropped, now);
        qp_rate_on_dropped(qp, dropped, now);
    }
    enum lh_limit limit = LH_LIMIT_HOST;
    uint32_t first = FABRIC_BATCH_MAX - own->held_back;
    uint32_t taken = offer(qp, channel, first, order, now, next, &limit);
    if (taken == first && own->held_back > 0)
        taken += offer(qp, channel, own->held_back, order, now, next, &limit);
    limits_note(&own->limits, limit, now);
    if (order->waiting != 0)
        note_front(qp, channel, limit != LH_LIMIT_FABRIC, order);
    uint32_t likely = taken + OFFER_MORE;
    own->held_back = limit == LH_LIMIT_FABRIC && likely < FABRIC_BATCH_MAX ? FABRIC_BATCH_MAX - likely : 0;
    return taken > 0 || dropped > 0;
}

/* Sends whose payload the fabric reads no more are complete. */
static bool release(struct sdr_qp *qp, uint32_t channel)
{
    struct send_channel *sends = &qp->channels[channel].sends;
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    uint64_t released = ops->released != NULL ? ops->released(qp->endpoint, channel) : sends->taken;
    return send_channel_release(sends, released);
}

/* Nobody takes what a QP that has ended still has to send; without this its sends would never complete. */
static bool give_up(struct sdr_qp *qp, uint32_t channel)
{
    struct send_channel *sends = &qp->channels[channel].sends;
    if (send_channel_empty(sends))
        return false;
    uint64_t dropped = send_channel_abort_all(sends, &qp->send_shape, channel);
    atomic_fetch_sub_explicit(&qp->queued_bytes, dropped, memory_order_relaxed);
    return true;
}

/* The driver reads bitmaps, and reports what arrived; the control worker that runs it may be asleep. */
static void kick_driver(struct sdr_qp *qp, uint32_t channel)
{
    uint32_t workers = qp->context->turns;
    if (workers > 1 && channel % workers != 0 &&
        (atomic_load_explicit(&qp->driven, memory_order_relaxed) || qp->peer.wants_feedback))
        sdr_qp_driver_kick(qp);
}

/* Further ones while they are full. Returns whether anything left. */
static bool inject_batches(struct sdr_qp *qp, uint32_t channel, struct channel_order *order,
                           uint32_t batches, lh_time now, lh_time *next)
{
    const struct send_channel *sends = &qp->channels[channel].sends;
    bool injected = false;
    for (uint32_t i = 0; i < batches; i++) {
        uint64_t before = sends->taken;
        injected |= inject(qp, channel, order, now, next);
        if (sends->taken - before < FABRIC_BATCH_MAX)
            break;
    }
    return injected;
}

void qp_order_channels(const struct sdr_qp *qp, uint32_t index, uint32_t count, struct channel_order *order)
{
    uint32_t channels = 0;
    for (uint32_t c = index; c < qp->channel_count; c += count)
        channels |= (uint32_t)1 << c;
    channel_order_init(order, channels);
    if (index + count >= qp->channel_count || !is_paced(qp) ||
        !atomic_load_explicit(&qp->connected, memory_order_acquire))
        return;
    for (uint32_t c = index; c < qp->channel_count; c += count) {
        gate_enter_round(&qp->channels[c].gate); /* the queue's memory may change */
        note_front(qp, c, true, order);
        gate_leave(&qp->channels[c].gate);
    }
}

/* Of what left since `before`. */
static uint64_t cost_since(const struct send_channel *sends, uint64_t before_packets, uint64_t before_bytes)
{
    return (sends->taken - before_packets) * TURNS_PACKET + (sends->taken_bytes - before_bytes);
}

static bool poll_arrivals(struct sdr_qp *qp, uint32_t channel, lh_time now, uint64_t *cost)
{
    bool first = qp->peer.wants_feedback && packets_of(qp, channel) < ARRIVAL_REPORT_FIRST;
    return first ? receive_first(qp, channel, now, cost)
                 : receive(qp, channel, FABRIC_BATCH_MAX, now, cost);
}

/* Under the channel's gate. */
static bool poll_channel(struct sdr_qp *qp, uint32_t channel, lh_time now, uint64_t *cost)
{
    bool arrived = !qp_device_gone(qp) && poll_arrivals(qp, channel, now, cost);
    if (arrived)
        kick_driver(qp, channel);
    return arrived;
}

bool qp_channel_poll(struct sdr_qp *qp, uint32_t channel, lh_time now, uint64_t *cost)
{
    if (!atomic_load_explicit(&qp->connected, memory_order_acquire))
        return false;
    gate_enter_round(&qp->channels[channel].gate);
    bool arrived = poll_channel(qp, channel, now, cost);
    gate_leave(&qp->channels[channel].gate);
    return arrived;
}

bool qp_channel_round(struct sdr_qp *qp, uint32_t channel, struct channel_order *order, uint32_t batches,
                      lh_time now, lh_time *next, uint64_t *cost)
{
    if (!atomic_load_explicit(&qp->connected, memory_order_acquire))
        return false;
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    const struct send_channel *sends = &qp->channels[channel].sends;
    uint64_t packets = sends->taken, bytes = sends->taken_bytes;
    gate_enter_round(&qp->channels[channel].gate);
    bool moved = poll_channel(qp, channel, now, cost), left = false;
    if (atomic_load(&qp->error))
        left = give_up(qp, channel);
    else if (atomic_load_explicit(&qp->proven, memory_order_relaxed))
        left = inject_batches(qp, channel, order, batches, now, next);
    left |= release(qp, channel);
    /* With a controller little waits in the queues: the layer above is asked for more in time. What it waits
     * for is free before, or it would look too early, and nobody would tell it again. */
    if (left && rate_control_is_on(&qp->rate))
        kick_driver(qp, channel);
    moved |= left;
    *cost += cost_since(sends, packets, bytes);
    if (ops->pump && !qp_device_gone(qp))
        lh_keep_earlier(next, ops->pump(qp->endpoint, channel, now));
    gate_leave(&qp->channels[channel].gate);
    return moved;
}
