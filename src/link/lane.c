/*
 * lane.c - the way of a packet over an emulated link: taken, held, let go.
 *
 * Timers of a lane: the due time of each packet in flight; the end of a refusal (the bottleneck's queue
 * has room again, or the oldest held packet is due); the retry of what the inner fabric did not take.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "link/lane.h"

#include <assert.h>
#include <string.h>

#include "base/earlier.h"
#include "link/link.h"
#include "wire/roce.h"

#define BITS_PER_BYTE 8u

static bool is_control(const struct link_lane *lane)
{
    return lane->channel == FABRIC_CONTROL;
}

/* ---- taken ------------------------------------------------------------------------------------------- */

/* A packet on the wire, from the IP header on. */
static uint32_t wire_bytes(const struct link_lane *lane, const struct link_shared *shared,
                           uint32_t payload_bytes)
{
    uint32_t header_bytes = is_control(lane) ? ROCE_SEND_HEADER_BYTES : ROCE_WRITE_IMM_HEADER_BYTES;
    return shared->ip_udp_bytes + header_bytes + payload_bytes + roce_pad_bytes(payload_bytes) +
           ROCE_ICRC_BYTES;
}

static void count_dropped(const struct link_lane *lane, struct link_shared *shared, uint32_t bytes)
{
    fabric_count(shared->stats, link_dropped, 1);
    /* The inner fabric counts what it sends; this was on the wire before it got lost. */
    if (!is_control(lane))
        fabric_count(shared->stats, tx_wire_bytes, bytes);
}

/* Puts a packet in flight, once for each copy. False: no memory for it, and it is gone. */
static bool hold(struct link_lane *lane, struct link_shared *shared, struct link_packet *packet,
                 const struct lh_link_fate *fate)
{
    packet->due_ns = fate->arrive_ns[0];
    if (!timeline_push(&lane->in_flight, fate->arrive_ns[0], lane->pushed++, packet)) {
        link_packet_give_back(packet);
        return false;
    }
    if (fate->reordered)
        fabric_count(shared->stats, link_reordered, 1);
    if (fate->corrupted)
        fabric_count(shared->stats, link_corrupted, 1);
    if (fate->copies < 2)
        return true;
    fabric_count(shared->stats, link_duplicated, 1);
    if (timeline_push(&lane->in_flight, fate->arrive_ns[1], lane->pushed++, packet)) {
        ring_store_share(packet);
        if (fate->arrive_ns[1] > packet->due_ns)
            packet->due_ns = fate->arrive_ns[1];
    }
    return true;
}

/* With the lock held. Only a packet that is not taken is refused; one that is lost is taken. */
static enum link_refusal take(struct link_lane *lane, struct link_shared *shared,
                              const struct fabric_write *write)
{
    const uint32_t packet_bytes = (uint32_t)sizeof(struct link_packet) + write->bytes;
    if (!ring_store_fits(&shared->held->store, packet_bytes))
        return LINK_REFUSED_BY_HELD;
    uint32_t bytes = wire_bytes(lane, shared, write->bytes);
    struct lh_link_fate fate = is_control(lane)
                                   ? lh_link_decide_control(&shared->link, shared->now_ns, bytes)
                                   : lh_link_decide(&shared->link, shared->now_ns, bytes);
    if (!fate.accepted)
        return LINK_REFUSED_BY_QUEUE;
    if (fate.dropped) {
        count_dropped(lane, shared, bytes);
        return LINK_REFUSED_NOT;
    }
    struct link_packet *packet = link_packet_take(shared->held, write->bytes);
    assert(packet != NULL);
    packet->va = write->va;
    packet->rkey = write->rkey;
    packet->immediate = write->immediate;
    packet->generation = write->generation;
    packet->bytes = (uint16_t)write->bytes;
    packet->corrupt_bit = write->corrupt_bit;
    if (fate.corrupted)
        packet->corrupt_bit = 1 + fate.corrupt_bit % (bytes * BITS_PER_BYTE);
    if (write->bytes > 0)
        memcpy(packet->payload, write->payload, write->bytes);
    if (!hold(lane, shared, packet, &fate))
        count_dropped(lane, shared, bytes);
    return LINK_REFUSED_NOT;
}

/* Time for the link never goes back, although each channel's owner reads the clock for himself. */
static void link_time(struct link_shared *shared)
{
    struct fabric *fabric = shared->inner->fabric;
    lh_time now = fabric->ops->now(fabric);
    if (now > shared->now_ns)
        shared->now_ns = now;
}

static int end_of_send(struct link_lane *lane, struct link_shared *shared, enum link_refusal refused,
                       int taken)
{
    lane->refused = refused;
    lane->retry_ns = 0;
    if (refused == LINK_REFUSED_BY_QUEUE || refused == LINK_REFUSED_BY_HELD)
        fabric_count(shared->stats, tx_backpressure, 1);
    return taken;
}

static bool passes_through(struct link_shared *shared)
{
    return !atomic_load_explicit(&shared->emulating, memory_order_relaxed);
}

/* An inner fabric that pumps knows by itself when it will take more. */
static enum link_refusal refusal_of_inner(const struct link_shared *shared, int taken, uint32_t count)
{
    if (shared->inner->fabric->ops->pump != NULL)
        return LINK_REFUSED_NOT;
    return taken >= 0 && (uint32_t)taken < count ? LINK_REFUSED_BY_INNER : LINK_REFUSED_NOT;
}

/* Tells the control lane what this one still has to let go. */
static void publish_head(struct link_lane *lane)
{
    if (lane->due_count > 0)
        return; /* the first of those is what was published before */
    atomic_store_explicit(&lane->head_ns, timeline_next_ns(&lane->in_flight), memory_order_release);
}

/* All that a link takes it releases at once, so what passes through is only borrowed. */
static int pass_through(const struct link_lane *lane, const struct link_shared *shared,
                        const struct fabric_write *writes, uint32_t count)
{
    const struct fabric_ops *ops = shared->inner->fabric->ops;
    struct fabric_write borrowed[FABRIC_BATCH_MAX];
    if (ops->released == NULL)
        return ops->post_writes(shared->inner, lane->channel, writes, count);
    for (uint32_t i = 0; i < count; i++) {
        borrowed[i] = writes[i];
        borrowed[i].borrowed = true;
    }
    return ops->post_writes(shared->inner, lane->channel, borrowed, count);
}

int link_lane_post(struct link_lane *lane, struct link_shared *shared, const struct fabric_write *writes,
                   uint32_t count)
{
    assert(!is_control(lane) && count <= FABRIC_BATCH_MAX);
    if (passes_through(shared)) {
        int taken = pass_through(lane, shared, writes, count);
        return end_of_send(lane, shared, refusal_of_inner(shared, taken, count), taken);
    }
    enum link_refusal refused = LINK_REFUSED_NOT;
    uint32_t taken = 0;
    pthread_mutex_lock(&shared->lock);
    link_time(shared);
    while (taken < count && (refused = take(lane, shared, &writes[taken])) == LINK_REFUSED_NOT)
        taken++;
    publish_head(lane);
    pthread_mutex_unlock(&shared->lock);
    return end_of_send(lane, shared, refused, (int)taken);
}

int link_lane_send(struct link_lane *lane, struct link_shared *shared,
                   const struct fabric_datagram *datagrams, uint32_t count)
{
    assert(is_control(lane) && count <= FABRIC_BATCH_MAX);
    if (passes_through(shared)) {
        int taken = shared->inner->fabric->ops->control_send(shared->inner, datagrams, count);
        return end_of_send(lane, shared, refusal_of_inner(shared, taken, count), taken);
    }
    enum link_refusal refused = LINK_REFUSED_NOT;
    uint32_t taken = 0;
    pthread_mutex_lock(&shared->lock);
    link_time(shared);
    for (; taken < count; taken++) {
        const struct fabric_write write = {
            .payload = datagrams[taken].data,
            .bytes = datagrams[taken].bytes,
            .corrupt_bit = datagrams[taken].corrupt_bit,
        };
        refused = take(lane, shared, &write);
        if (refused != LINK_REFUSED_NOT)
            break;
    }
    publish_head(lane);
    pthread_mutex_unlock(&shared->lock);
    return end_of_send(lane, shared, refused, (int)taken);
}

/* ---- let go ------------------------------------------------------------------------------------------ */

static int give_writes(const struct link_lane *lane, const struct link_shared *shared)
{
    struct fabric_write writes[FABRIC_BATCH_MAX];
    for (uint32_t i = 0; i < lane->due_count; i++) {
        const struct link_packet *packet = lane->due[i];
        writes[i] = (struct fabric_write){
            .payload = packet->payload,
            .bytes = packet->bytes,
            .va = packet->va,
            .rkey = packet->rkey,
            .immediate = packet->immediate,
            .corrupt_bit = packet->corrupt_bit,
            .generation = packet->generation,
            .borrowed = true, /* its place is given back at once */
        };
    }
    return shared->inner->fabric->ops->post_writes(shared->inner, lane->channel, writes, lane->due_count);
}

static int give_datagrams(const struct link_lane *lane, const struct link_shared *shared)
{
    struct fabric_datagram datagrams[FABRIC_BATCH_MAX];
    for (uint32_t i = 0; i < lane->due_count; i++) {
        const struct link_packet *packet = lane->due[i];
        datagrams[i] = (struct fabric_datagram){
            .data = packet->payload, .bytes = packet->bytes, .corrupt_bit = packet->corrupt_bit};
    }
    return shared->inner->fabric->ops->control_send(shared->inner, datagrams, lane->due_count);
}

/* Takes the first `count` due packets off the lane for good. */
static void let_go(struct link_lane *lane, struct link_shared *shared, uint32_t count)
{
    assert(count <= lane->due_count);
    pthread_mutex_lock(&shared->lock);
    for (uint32_t i = 0; i < count; i++)
        link_packet_give_back(lane->due[i]);
    pthread_mutex_unlock(&shared->lock);
    lane->due_count -= count;
    memmove(lane->due, lane->due + count, lane->due_count * sizeof(lane->due[0]));
}

static void collect_due(struct link_lane *lane, lh_time now)
{
    while (lane->due_count < FABRIC_BATCH_MAX) {
        struct link_packet *packet = timeline_pop_due(&lane->in_flight, now);
        if (packet == NULL)
            break;
        lane->due[lane->due_count++] = packet;
    }
}

/* How far this lane may let packets go. Control waits for data that fell due before it: else, after a pause
 * of the host, it would pass a backlog, which no link does. Channels do not wait for each other: their
 * packets go different ways in any network. */
static lh_time limit_of(const struct link_lane *lane, const struct link_shared *shared, lh_time now)
{
    lh_time limit = now;
    for (uint32_t i = 0; is_control(lane) && i < shared->lane_count; i++)
        if (&shared->lanes[i] != lane)
            limit =
                lh_earlier(limit, atomic_load_explicit(&shared->lanes[i].head_ns, memory_order_acquire));
    return limit;
}

/* Gives one batch of due packets to the inner fabric. Whether it took all of them (and there were any). */
static bool give_batch(struct link_lane *lane, struct link_shared *shared, lh_time now)
{
    collect_due(lane, limit_of(lane, shared, now));
    if (lane->due_count == 0)
        return false;
    int given = is_control(lane) ? give_datagrams(lane, shared) : give_writes(lane, shared);
    /* The device is gone: poll reports it to its owner. The packets are as lost as those of a host that
     * crashed. */
    uint32_t count = given < 0 ? lane->due_count : (uint32_t)given;
    if (count > 0)
        let_go(lane, shared, count);
    return lane->due_count == 0;
}

/* Until the oldest packet that any channel has in flight is due. With the lock held. */
static lh_time held_ends_ns(const struct link_shared *shared, lh_time now)
{
    const struct link_packet *oldest = ring_store_oldest(&shared->held->store);
    if (oldest == NULL)
        return now;
    /* Due already, but its channel has not been pumped yet. */
    return oldest->due_ns > now ? oldest->due_ns : now + LINK_RETRY_NS;
}

/* When what refused the last send will take more. */
static lh_time refusal_ends_ns(struct link_lane *lane, struct link_shared *shared, lh_time now)
{
    if (lane->refused == LINK_REFUSED_BY_INNER) {
        if (lane->retry_ns == 0)
            lane->retry_ns = now + LINK_RETRY_NS;
        return lane->retry_ns;
    }
    pthread_mutex_lock(&shared->lock);
    bool queue = lane->refused == LINK_REFUSED_BY_QUEUE;
    lh_time ends_ns = queue ? lh_link_ready_ns(&shared->link, now) : held_ends_ns(shared, now);
    pthread_mutex_unlock(&shared->lock);
    return ends_ns;
}

/* Said once when it is over: an owner who does not want to send any more is not asked for ever. */
static lh_time pump_refusal(struct link_lane *lane, struct link_shared *shared, lh_time now)
{
    if (lane->refused == LINK_REFUSED_NOT)
        return LH_TIME_NEVER;
    lh_time ends_ns = refusal_ends_ns(lane, shared, now);
    if (ends_ns > now)
        return ends_ns;
    lane->refused = LINK_REFUSED_NOT;
    return now;
}

/* The inner fabric's own demands. What it did not take of the due packets is offered again, even if it
 * names no time. */
static lh_time pump_inner(const struct link_lane *lane, const struct link_shared *shared, lh_time now)
{
    const struct fabric_ops *ops = shared->inner->fabric->ops;
    lh_time next_ns = ops->pump != NULL ? ops->pump(shared->inner, lane->channel, now) : LH_TIME_NEVER;
    return lane->due_count > 0 && next_ns == LH_TIME_NEVER ? now + LINK_RETRY_NS : next_ns;
}

lh_time link_lane_pump(struct link_lane *lane, struct link_shared *shared, lh_time now)
{
    bool emptied = true;
    for (uint32_t batch = 0; batch < LINK_PUMP_BATCHES && emptied; batch++)
        emptied = give_batch(lane, shared, now);
    publish_head(lane);
    lh_time next_ns = pump_inner(lane, shared, now);
    next_ns = lh_earlier(next_ns, pump_refusal(lane, shared, now));
    if (lane->due_count > 0)
        return next_ns; /* the others wait behind these */
    lh_time due_ns = timeline_next_ns(&lane->in_flight);
    return lh_earlier(next_ns, due_ns > now ? due_ns : now);
}

void link_lane_clear(struct link_lane *lane, struct link_shared *shared)
{
    collect_due(lane, LH_TIME_NEVER);
    while (lane->due_count > 0) {
        let_go(lane, shared, lane->due_count);
        collect_due(lane, LH_TIME_NEVER);
    }
    timeline_clear(&lane->in_flight);
}
