/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/qp.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/min_max.h"
#include "fabric/fabric.h"
#include "sdr/sdr_state.h"

void qp_gates_enter(struct sdr_qp *qp)
{
    for (uint32_t c = 0; c < qp->channel_count; c++)
        gate_enter(&qp->channels[c].gate);
}

void qp_gates_leave(struct sdr_qp *qp)
{
    for (uint32_t c = 0; c < qp->channel_count; c++)
        gate_leave(&qp->channels[c].gate);
}

void qp_note_cts(struct sdr_qp *qp)
{
    atomic_store_explicit(&qp->cts_waiting, cts_queue_peek(&qp->cts) != NULL, memory_order_release);
}

struct qp_memory_use qp_memory_use(struct sdr_qp *qp, uint32_t lkey)
{
    struct qp_memory_use use = {0};
    qp_lock(qp);
    for (uint32_t i = 0; qp->table.slots && i < qp->shape.slots; i++)
        use.receives +=
            qp->table.slots[i].open && qp->recvs[i].length_bytes > 0 && qp->recvs[i].lkey == lkey;
    qp_gates_enter(qp);
    for (uint32_t c = 0; c < qp->channel_count; c++)
        use.sends += send_channel_uses(&qp->channels[c].sends, lkey);
    qp_gates_leave(qp);
    qp_unlock(qp);
    return use;
}

/* ---- memory ------------------------------------------------------------------------------------------ */

#define FLIGHT_MIN   16u /* entries */
#define DELAYS_BYTES (DELAY_LOG_BUCKETS * sizeof(uint32_t))

static struct store *store_of(const struct sdr_qp *qp)
{
    return qp->store;
}

static size_t recvs_bytes(const struct sdr_qp *qp)
{
    return qp->shape.slots * (sizeof *qp->recvs + sizeof *qp->free_slots);
}

static size_t slots_bytes(const struct sdr_qp *qp)
{
    return qp->shape.slots * sizeof *qp->table.slots;
}

/* Kept until the QP ends: a program may still ask for a receive that is over. */
static int take_recvs(struct sdr_qp *qp)
{
    qp->recvs = store_take(store_of(qp), recvs_bytes(qp));
    if (!qp->recvs)
        return -LH_ENOMEM;
    qp->free_slots = (struct qp_free_slot *)(void *)(qp->recvs + qp->shape.slots);
    for (uint32_t i = 0; i < qp->shape.slots; i++)
        qp->free_slots[i].slot = (uint16_t)i;
    return 0;
}

static void set_slots(struct sdr_qp *qp, struct message_slot *slots)
{
    qp_gates_enter(qp);
    if (!slots && qp->endpoint->fabric->ops->slots_idle)
        qp->endpoint->fabric->ops->slots_idle(qp->endpoint);
    qp->table.slots = slots;
    qp_gates_leave(qp);
}

static int take_slots(struct sdr_qp *qp)
{
    struct message_slot *slots = store_take(store_of(qp), slots_bytes(qp));
    if (!slots)
        return -LH_ENOMEM;
    for (uint32_t i = 0; i < qp->shape.slots; i++)
        slots[qp->free_slots[i].slot].generation = qp->free_slots[i].generation;
    set_slots(qp, slots);
    return 0;
}

int qp_hold_slots(struct sdr_qp *qp)
{
    int error = qp->recvs ? 0 : take_recvs(qp);
    if (!error && !qp->table.slots)
        error = take_slots(qp);
    return error;
}

/* All are closed, and have no bitmaps. */
static void free_slots(struct sdr_qp *qp)
{
    struct message_slot *slots = qp->table.slots;
    for (uint32_t i = 0; i < qp->shape.slots; i++)
        qp->free_slots[i].generation = slots[qp->free_slots[i].slot].generation;
    set_slots(qp, NULL);
    store_give(store_of(qp), slots, slots_bytes(qp));
}

bool qp_note_unused(struct sdr_qp *qp)
{
    bool at_rest = qp->idle.at == LH_TIME_NEVER;
    idle_note(&qp->idle);
    return at_rest;
}

bool qp_hold(struct sdr_qp *qp, struct ring *ring, uint32_t first, uint32_t count)
{
    idle_note(&qp->idle);
    return ring_hold(ring, store_of(qp), first, count);
}

static void set_slot_memory(struct sdr_qp *qp, uint32_t slot, void *memory, uint32_t chunk_room)
{
    size_t bytes = message_table_bytes(&qp->table, qp->table.slots[slot].chunk_room);
    store_give(store_of(qp), message_slot_set_memory(&qp->table, slot, memory, chunk_room), bytes);
}

int qp_hold_slot(struct sdr_qp *qp, uint32_t slot, uint64_t bytes)
{
    idle_note(&qp->idle);
    uint32_t room = message_table_room(&qp->table, bytes);
    if (room <= qp->table.slots[slot].chunk_room)
        return 0;
    void *memory = store_take(store_of(qp), message_table_bytes(&qp->table, room));
    if (!memory)
        return -LH_ENOMEM;
    set_slot_memory(qp, slot, memory, room);
    return 0;
}

static int add_sends(struct sdr_qp *qp)
{
    struct qp_sends *sends = &qp->sends;
    if (sends->count >= sends->maximum)
        return lh_fail(LH_EAGAIN, "all %u sends are in use: poll them to completion", sends->maximum);
    struct qp_send_block *block = store_take(store_of(qp), sizeof *block);
    if (!block)
        return -LH_ENOMEM;
    block->next = sends->blocks;
    sends->blocks = block;
    sends->count += QP_SENDS_A_BLOCK;
    for (uint32_t i = QP_SENDS_A_BLOCK; i > 0; i--) {
        block->sends[i - 1].qp = qp;
        block->sends[i - 1].next = sends->unused;
        sends->unused = &block->sends[i - 1];
    }
    return 0;
}

int qp_hold_send(struct sdr_qp *qp, struct sdr_send_handle **send)
{
    idle_note(&qp->idle);
    int error = qp->sends.unused ? 0 : add_sends(qp);
    if (!error)
        *send = qp->sends.unused;
    return error;
}

static void free_sends(struct sdr_qp *qp)
{
    struct qp_send_block *next;
    for (struct qp_send_block *block = qp->sends.blocks; block; block = next) {
        next = block->next;
        store_give(store_of(qp), block, sizeof *block);
    }
    qp->sends = (struct qp_sends){.maximum = qp->sends.maximum};
}

static void move_flight(struct sdr_qp *qp, struct flight_entry *ring, uint32_t size)
{
    struct flight *flight = &qp->rate.flight;
    pthread_mutex_lock(&qp->pacer_lock);
    struct flight_entry *before = flight->ring;
    size_t bytes = flight->size * sizeof *before;
    flight_move(flight, ring, size);
    pthread_mutex_unlock(&qp->pacer_lock);
    store_give(store_of(qp), before, bytes);
}

/* Of what was measured, so it stays. NULL: it is measured all the same. */
static void give_delays(struct sdr_qp *qp, uint32_t *buckets)
{
    pthread_mutex_lock(&qp->pacer_lock);
    qp->rate.delays.buckets = buckets;
    pthread_mutex_unlock(&qp->pacer_lock);
}

/* Packets that wait to be injected, at most: the last one of a range may be short. */
static uint64_t packets_waiting(struct sdr_qp *qp)
{
    uint64_t bytes = atomic_load_explicit(&qp->queued_bytes, memory_order_relaxed);
    uint64_t packets = bytes / qp->shape.mtu_bytes;
    for (uint32_t c = 0; c < qp->channel_count; c++)
        packets += send_channel_ranges(&qp->channels[c].sends);
    return packets;
}

/* An entry a packet at most, and as many again of what is over: a packet that comes late is still known.
 * Without memory entries are merged, so that only the first are needed. */
static int hold_flight(struct sdr_qp *qp, uint32_t packets)
{
    const struct flight *flight = &qp->rate.flight;
    if (!rate_control_is_on(&qp->rate) || flight->size == RATE_FLIGHT_ENTRIES)
        return 0;
    uint64_t waiting = packets_waiting(qp) + packets;
    pthread_mutex_lock(&qp->pacer_lock);
    uint64_t wanted = 2 * (waiting + (flight->head - flight->tail));
    pthread_mutex_unlock(&qp->pacer_lock);
    uint32_t size = FLIGHT_MIN;
    while (size < wanted && size < RATE_FLIGHT_ENTRIES)
        size *= 2;
    if (size <= flight->size)
        return 0;
    if (!qp->rate.delays.buckets)
        give_delays(qp, store_take(store_of(qp), DELAYS_BYTES));
    struct flight_entry *ring = store_take_aligned(store_of(qp), size * sizeof *ring);
    if (!ring)
        return flight->size > 0 ? 0 : -LH_ENOMEM;
    move_flight(qp, ring, size);
    return 0;
}

/* Nothing waits to be sent. */
static void free_flight(struct sdr_qp *qp)
{
    pthread_mutex_lock(&qp->pacer_lock);
    bool over = flight_is_settled(&qp->rate.flight);
    pthread_mutex_unlock(&qp->pacer_lock);
    if (over)
        move_flight(qp, NULL, 0);
}

static bool hold_channel(struct sdr_qp *qp, struct qp_channel *channel, uint32_t ranges)
{
    struct send_channel *sends = &channel->sends;
    if (send_channel_ranges(sends) + ranges <= sends->ring.size)
        return true;
    gate_enter(&channel->gate);
    uint32_t tail = atomic_load_explicit(&sends->tail, memory_order_relaxed);
    bool holds = ring_hold(&sends->ring, store_of(qp), tail, send_channel_ranges(sends) + ranges);
    gate_leave(&channel->gate);
    return holds;
}

int qp_hold_ranges(struct sdr_qp *qp, uint32_t ranges, uint32_t packets)
{
    idle_note(&qp->idle);
    for (uint32_t c = 0; c < qp->channel_count; c++) {
        if (!send_channel_has_room(&qp->channels[c].sends, ranges))
            return lh_fail(LH_EAGAIN, "the injection queue is full");
        if (!hold_channel(qp, &qp->channels[c], ranges)) /* what it has may become free */
            return qp->channels[c].sends.ring.size >= ranges ? -LH_EAGAIN : -LH_ENOMEM;
    }
    return hold_flight(qp, packets);
}

static void free_channels(struct sdr_qp *qp)
{
    for (uint32_t c = 0; c < qp->channel_count; c++) {
        struct qp_channel *channel = &qp->channels[c];
        gate_enter(&channel->gate);
        assert(send_channel_ranges(&channel->sends) == 0);
        ring_free(&channel->sends.ring, store_of(qp));
        gate_leave(&channel->gate);
    }
}

/* What is not in use now. */
static void give_back(struct sdr_qp *qp)
{
    for (uint32_t i = 0; qp->table.slots && i < qp->shape.slots; i++)
        if (!qp->table.slots[i].open)
            set_slot_memory(qp, i, NULL, 0);
    if (qp->table.slots && qp->free_count == qp->shape.slots)
        free_slots(qp);
    if (qp_is_over(qp) || qp->announcer.acked == qp->announcer.next)
        ring_free(&qp->announcer.ring, store_of(qp));
    if (cts_queue_is_empty(&qp->cts))
        ring_free(&qp->cts.ring, store_of(qp));
    if (qp->outbox.head == qp->outbox.tail)
        ring_free(&qp->outbox.ring, store_of(qp));
    if (qp->inbox.head == qp->inbox.tail)
        ring_free(&qp->inbox.ring, store_of(qp));
    store_give(store_of(qp), qp->parts, sizeof *qp->parts);
    qp->parts = NULL;
    if (qp->sends.in_use > 0)
        return;
    free_sends(qp);
    free_channels(qp);
    free_flight(qp);
}

lh_time qp_memory_round(struct sdr_qp *qp, lh_time now)
{
    if (qp_is_over(qp)) { /* it is not used again, and what was in flight is not heard of */
        if (qp->idle.at != LH_TIME_NEVER)
            give_back(qp);
        idle_init(&qp->idle);
        return LH_TIME_NEVER;
    }
    if (!idle_is_over(&qp->idle, now))
        return qp->idle.at;
    give_back(qp);
    if (qp->sends.in_use == 0 && qp->rate.flight.size > 0)
        idle_note(&qp->idle); /* what is in flight is settled by time alone */
    return qp->idle.at == 0 ? now : qp->idle.at;
}

void qp_memory_free(struct sdr_qp *qp)
{
    for (uint32_t i = 0; qp->table.slots && i < qp->shape.slots; i++)
        store_give(store_of(qp), (void *)qp->table.slots[i].packets,
                   message_table_bytes(&qp->table, qp->table.slots[i].chunk_room));
    store_give(store_of(qp), qp->table.slots, slots_bytes(qp));
    store_give(store_of(qp), qp->recvs, recvs_bytes(qp));
    ring_free(&qp->announcer.ring, store_of(qp));
    ring_free(&qp->cts.ring, store_of(qp));
    ring_free(&qp->outbox.ring, store_of(qp));
    ring_free(&qp->inbox.ring, store_of(qp));
    store_give(store_of(qp), qp->parts, sizeof *qp->parts);
    free_sends(qp);
    store_give(store_of(qp), qp->rate.delays.buckets, DELAYS_BYTES);
    store_give(store_of(qp), qp->path.challenges, PATH_CHALLENGES_BYTES);
    for (uint32_t c = 0; qp->channels && c < qp->channel_count; c++)
        ring_free(&qp->channels[c].sends.ring, store_of(qp));
    store_give(store_of(qp), qp->rate.flight.ring, qp->rate.flight.size * sizeof *qp->rate.flight.ring);
}

/* ---- state ------------------------------------------------------------------------------------------- */

const char *qp_error_reason(const struct sdr_qp *qp, int error)
{
    return error == -LH_EDEVICE && qp->device_reason ? qp->device_reason : lh_strerror(error);
}

int qp_usable(struct sdr_qp *qp)
{
    int error = atomic_load(&qp->error);
    if (error)
        return lh_fail((enum lh_error) - error, "QP has ended: %s", qp_error_reason(qp, error));
    if (!atomic_load(&qp->connected))
        return lh_fail(LH_ESTATE, "QP is not connected yet");
    return 0;
}

/* ---- wake-ups ---------------------------------------------------------------------------------------- */

uint32_t qp_workers(const struct sdr_qp *qp)
{
    uint32_t turns = qp->context->turns;
    return turns < qp->channel_count ? turns : qp->channel_count;
}

static void mark(struct sdr_qp *qp, uint32_t worker)
{
    run_queue_mark(&qp->context->workers[worker].queue, &qp->channels[worker].run);
}

void qp_wake_all(struct sdr_qp *qp)
{
    struct sdr_context *context = qp->context;
    for (uint32_t i = 0; i < qp_workers(qp); i++) {
        mark(qp, i);
        waker_wake(&context->workers[context->worker_count > 0 ? i : 0].waker);
    }
}

void qp_watch_again(struct sdr_qp *qp)
{
    for (uint32_t i = 0; i < qp_workers(qp); i++)
        atomic_store(&qp->channels[i].run.fds_changed, true);
    qp_wake_all(qp);
}

static void wake_worker(struct sdr_qp *qp, uint32_t worker)
{
    mark(qp, worker);
    if (qp->context->worker_count > 0)
        waker_wake(&qp->context->workers[worker].waker);
}

void qp_wake_channel(void *context, uint32_t channel)
{
    struct sdr_qp *qp = context;
    if (channel == FABRIC_FDS_CHANGED)
        qp_watch_again(qp);
    else
        wake_worker(qp, channel == FABRIC_CONTROL ? 0 : channel % qp->context->turns);
}

/* ---- the way to the peer ----------------------------------------------------------------------------- */

struct sdr_qp *qp_of_keepalive_member(struct keepalive_member *member)
{
    return (struct sdr_qp *)((char *)member - offsetof(struct sdr_qp, keepalive_member));
}

/* Where the peer's control port is its QP's own, it says nothing about the context. */
void qp_join_keepalive_group(struct sdr_qp *qp)
{
    const struct qp_peer *peer = &qp->peer;
    uint16_t port = peer->traits.shares_control_port ? peer->control_port : 0;
    /* An encrypted QP's peer is not asked for in clear text, where anyone could answer. */
    uint8_t kind = (uint8_t)(qp->translated | qp->encrypted << 1);
    uint8_t key[KEEPALIVE_KEY_BYTES] = {peer->family, (uint8_t)(port >> 8), (uint8_t)port, kind};
    memcpy(key + 4, peer->address, sizeof peer->address);
    memcpy(key + 4 + sizeof peer->address, qp->seen_address, sizeof qp->seen_address);
    atomic_store(&qp->keepalive_member.interval_ns, qp->path.keepalive_ns);
    qp->keepalive_member.token = qp->token;
    qp->keepalive_member.peer_token = qp->peer.token;
    keepalive_table_add(&qp->context->keepalive_table, &qp->keepalive_member, key);
}

void qp_leave_keepalive_group(struct sdr_qp *qp)
{
    struct keepalive_member *successor =
        keepalive_table_remove(&qp->context->keepalive_table, &qp->keepalive_member);
    if (successor)
        sdr_qp_driver_kick(qp_of_keepalive_member(successor));
}

void sdr_qp_keepalive_set(struct sdr_qp *qp, lh_time interval_ns)
{
    qp_lock(qp);
    path_keepalive_set(&qp->path, interval_ns);
    atomic_store(&qp->keepalive_member.interval_ns, interval_ns);
    qp_unlock(qp);
    sdr_qp_driver_kick(qp);
}

void sdr_qp_keepalive_asked_for(struct sdr_qp *qp)
{
    qp->keepalive_member.asked_for = true;
}

void sdr_qp_takes_parts(struct sdr_qp *qp)
{
    qp->takes_parts = true;
}

bool sdr_qp_can_take_long(const struct sdr_qp *qp)
{
    const struct fabric *fabric = qp->own_link ? qp->own_link : qp->context->fabric;
    return fabric->ops->long_control && qp->shape.mtu_bytes > CONTROL_MESSAGE_MAX;
}

uint32_t sdr_qp_takes_long(struct sdr_qp *qp)
{
    assert(sdr_qp_can_take_long(qp) && !atomic_load(&qp->connected));
    qp->upper_max = (uint32_t)lh_min(qp->shape.mtu_bytes, CONTROL_LONG_MAX);
    return qp->upper_max - CONTROL_HEADER_BYTES;
}

bool sdr_qp_keepalive_want(struct sdr_qp *qp, bool wanted, lh_time now)
{
    keepalive_member_wait(&qp->keepalive_member, wanted, now);
    return !keepalive_member_is_alone(&qp->keepalive_member);
}

/* ---- failure ----------------------------------------------------------------------------------------- */

/* The first thread's reason stays. Whoever sees the error finds it. */
static void fail_by_device(struct sdr_qp *qp)
{
    char text[DEVICE_REASON_MAX]; /* which a lack of memory would replace */
    snprintf(text, sizeof text, "%s", lh_last_error());
    pthread_mutex_lock(&qp->pacer_lock);
    if (atomic_load(&qp->error) != -LH_EDEVICE) {
        qp->device_reason = store_try(qp->store, sizeof text);
        if (qp->device_reason)
            memcpy(qp->device_reason, text, sizeof text);
        atomic_store(&qp->error, -LH_EDEVICE);
    }
    pthread_mutex_unlock(&qp->pacer_lock);
}

void qp_fail(struct sdr_qp *qp, int error)
{
    int none = 0;
    if (error == -LH_EDEVICE)
        fail_by_device(qp);
    else
        atomic_compare_exchange_strong(&qp->error, &none, error);
    for (uint32_t i = 0; i < qp_workers(qp); i++)
        wake_worker(qp, i);
}

int sdr_qp_driver_set(struct sdr_qp *qp, sdr_driver_step *step, void *context)
{
    pthread_mutex_lock(&qp->driver_lock);
    qp->driver = step;
    qp->driver_context = context;
    atomic_store_explicit(&qp->driven, step != NULL, memory_order_relaxed);
    pthread_mutex_unlock(&qp->driver_lock);
    sdr_qp_driver_kick(qp);
    return 0;
}

void sdr_qp_driver_kick(struct sdr_qp *qp)
{
    wake_worker(qp, 0);
}

lh_time sdr_qp_caught_up(struct sdr_qp *qp)
{
    lh_time oldest = LH_TIME_NEVER;
    for (uint32_t c = 0; c < qp->channel_count; c++) {
        lh_time drained = atomic_load_explicit(&qp->channels[c].drained_ns, memory_order_acquire);
        oldest = drained < oldest ? drained : oldest;
    }
    return oldest;
}

void sdr_qp_catch_up(struct sdr_qp *qp, lh_time since)
{
    for (uint32_t c = 0; c < qp->channel_count; c++)
        if (atomic_load_explicit(&qp->channels[c].drained_ns, memory_order_acquire) < since)
            qp_wake_channel(qp, c);
}

void sdr_qp_user_window(struct sdr_qp *qp, bool binds)
{
    if (binds == atomic_load_explicit(&qp->user_window, memory_order_relaxed))
        return;
    atomic_store_explicit(&qp->user_window, binds, memory_order_relaxed);
    for (uint32_t i = 0; i < qp_workers(qp); i++)
        wake_worker(qp, i); /* their limits are another now */
}

struct lh_stats *sdr_qp_stats(struct sdr_qp *qp)
{
    return &qp->stats;
}

uint64_t sdr_qp_rx_bytes(const struct sdr_qp *qp)
{
    return __atomic_load_n(&qp->stats.rx_bytes, __ATOMIC_RELAXED);
}

uint64_t sdr_qp_rx_packets(const struct sdr_qp *qp)
{
    return __atomic_load_n(&qp->stats.rx_packets, __ATOMIC_RELAXED);
}

uint64_t sdr_qp_rx_new_packets(const struct sdr_qp *qp)
{
    return sdr_qp_rx_packets(qp) - __atomic_load_n(&qp->stats.rx_duplicate_packets, __ATOMIC_RELAXED);
}

/* A packet that arrives meanwhile may be forgotten: others follow. */
bool qp_take_full(struct sdr_qp *qp, uint8_t who)
{
    return (atomic_fetch_and_explicit(&qp->full_arrived, (uint8_t)~who, memory_order_relaxed) & who) != 0;
}

bool sdr_qp_full_arrived(struct sdr_qp *qp)
{
    return qp_take_full(qp, QP_FULL_FOR_UPPER);
}

bool sdr_qp_can_take_pieces(const struct sdr_qp *qp)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    return ops->takes_pieces != NULL && ops->released == NULL && packet_lengths(qp->shape.mtu_bytes) > 1;
}

static_assert(PACKET_LENGTHS == PATH_MTU_LENGTHS, "each is probed");

void sdr_qp_takes_pieces(struct sdr_qp *qp)
{
    assert(sdr_qp_can_take_pieces(qp) && !atomic_load(&qp->connected));
    path_mtu_start(&qp->path_mtu, packet_lengths(qp->shape.mtu_bytes));
}

uint32_t sdr_qp_packet_bytes(const struct sdr_qp *qp)
{
    return qp->shape.mtu_bytes / atomic_load_explicit(&qp->pieces, memory_order_relaxed);
}

uint32_t sdr_qp_probed(struct sdr_qp *qp, lh_time since)
{
    uint32_t bytes = 0;
    qp_lock(qp);
    for (uint32_t s = 0; s < PATH_MTU_LENGTHS && bytes == 0; s++)
        if (qp->probed_ns[s] != 0 && qp->probed_ns[s] >= since)
            bytes = qp->shape.mtu_bytes >> s;
    qp_unlock(qp);
    return bytes;
}

int lh_sdr_error(struct sdr_qp *qp)
{
    int error = atomic_load(&qp->error);
    return error == -LH_EDEVICE ? lh_fail(LH_EDEVICE, "%s", qp_error_reason(qp, error)) : error;
}

int lh_sdr_stats(struct sdr_qp *qp, struct lh_stats *stats)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    if (ops->count_drops)
        ops->count_drops(qp->endpoint);
    const uint64_t *from = (const uint64_t *)&qp->stats;
    uint64_t *to = (uint64_t *)stats;
    for (size_t i = 0; i < sizeof *stats / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    return 0;
}
