/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/link.h>

#include "base/error.h"
#include "base/link_spec.h"
#include "base/min_max.h"
#include "fabric/fabric.h"
#include "link/link_timeline.h"
#include "wire/roce_packet.h"

/* ---- held ------------------------------------------------------------------------------------------ */

__extension__ typedef unsigned __int128 uint128;

uint64_t link_held_bytes(const struct lh_link_spec *spec)
{
    if (spec->rate_bps == 0)
        return LINK_HELD_UNLIMITED_BYTES;
    /* A packet that is held back waits for another jitter span, or, without jitter, a quarter of the delay.
     */
    uint128 span_ns = (uint128)spec->delay_ns + 2 * (uint128)spec->jitter_ns + spec->delay_ns / 4;
    uint64_t queue_bytes = lh_link_queue_bytes(spec);
    uint128 bytes = span_ns * spec->rate_bps / (8 * LH_NS_PER_S) + queue_bytes + LINK_HELD_SLACK_BYTES;
    return bytes < LINK_HELD_MAX_BYTES ? (uint64_t)bytes : LINK_HELD_MAX_BYTES;
}

/* -LH_ENOMEM */
static int link_held_create(uint64_t bytes, struct link_held **out)
{
    struct link_held *held = calloc(1, sizeof(*held));
    if (held == NULL || !ring_store_init(&held->store, bytes)) {
        free(held);
        return lh_fail(LH_ENOMEM,
                       "no memory for the %llu bytes in flight on the emulated link (use a shorter delay "
                       "or a lower rate)",
                       (unsigned long long)bytes);
    }
    *out = held;
    return 0;
}

static void destroy(struct link_held *held)
{
    ring_store_free(&held->store);
    free(held);
}

/* Frees it now when it is empty, else with its last packet. NULL is allowed. */
static void link_held_retire(struct link_held *held)
{
    if (held == NULL)
        return;
    assert(!held->retired);
    held->retired = true;
    if (ring_store_oldest(&held->store) == NULL)
        destroy(held);
}

/* NULL when there is no room. */
static struct link_packet *link_packet_take(struct link_held *held, uint32_t payload_bytes)
{
    assert(!held->retired && payload_bytes <= UINT16_MAX);
    struct link_packet *packet =
        ring_store_take(&held->store, (uint32_t)sizeof(struct link_packet) + payload_bytes);
    if (packet != NULL)
        packet->held = held;
    return packet;
}

static void link_packet_give_back(struct link_packet *packet)
{
    struct link_held *held = packet->held;
    ring_store_give_back(&held->store, packet);
    if (held->retired && ring_store_oldest(&held->store) == NULL)
        destroy(held);
}

/* ---- lane ------------------------------------------------------------------------------------------ */

/*
 * What one channel of an endpoint (or its control QP) has on an emulated link.
 *
 * A lane belongs to the owner of its channel; what all lanes of an endpoint share is in struct
 * link_shared.
 *
 * The way of a packet over an emulated link: taken, held, let go.
 *
 * Timers of a lane: the due time of each packet in flight; the end of a refusal (the bottleneck's queue
 * has room again, or the oldest held packet is due); the retry of what the inner fabric did not take.
 */

/* Of one endpoint. */
struct link_shared {
    struct fabric_endpoint *inner;
    const struct link_lane *lanes; /* all of the endpoint */
    uint32_t lane_count;
    struct lh_stats *stats;
    uint32_t ip_udp_bytes;  /* headers below RoCE */
    uint32_t sealed_bytes;  /* ROCE_SEALED_EXTRA, where packets are encrypted */
    _Atomic bool emulating; /* false: the spec is none */
    /* Guards what follows, and the packets' memory. No call of the inner fabric is made with it held. */
    pthread_mutex_t lock;
    struct lh_link_state link;
    struct link_held *held;
    lh_time now_ns; /* the latest time that the link has seen */
};

/* Why the last send did not take everything. */
enum link_refusal {
    LINK_REFUSED_NOT = 0,
    LINK_REFUSED_BY_QUEUE,  /* the bottleneck's queue is full */
    LINK_REFUSED_BY_HELD,   /* no memory for another packet in flight */
    LINK_REFUSED_BY_FABRIC, /* passed straight through; the inner fabric took no more and gives no
                              time for a retry */
};

struct link_lane {
    struct timeline in_flight;                 /* of struct link_packet; a duplicate is in it twice */
    uint64_t pushed;                           /* the order in which packets of this lane were taken */
    struct link_packet *due[FABRIC_BATCH_MAX]; /* offered to the inner fabric, in order */
    uint32_t due_count;
    uint32_t channel;        /* or FABRIC_CONTROL */
    _Atomic lh_time head_ns; /* when the first packet that has not left was due; control reads it */
    enum link_refusal refused;
    lh_time retry_ns; /* LINK_REFUSED_BY_FABRIC: when to try again; 0: not set yet */
};

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
    uint32_t pad_bytes = shared->sealed_bytes != 0 ? 0 : roce_pad_bytes(payload_bytes);
    return shared->ip_udp_bytes + header_bytes + payload_bytes + pad_bytes + ROCE_ICRC_BYTES +
           shared->sealed_bytes;
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
static enum link_refusal refusal_of_sub(const struct link_shared *shared, int taken, uint32_t count)
{
    if (shared->inner->fabric->ops->pump != NULL)
        return LINK_REFUSED_NOT;
    return taken >= 0 && (uint32_t)taken < count ? LINK_REFUSED_BY_FABRIC : LINK_REFUSED_NOT;
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

/* Takes what the link takes; returns the number, or the inner fabric's error. */
static int link_lane_post(struct link_lane *lane, struct link_shared *shared,
                          const struct fabric_write *writes, uint32_t count)
{
    assert(!is_control(lane) && count <= FABRIC_BATCH_MAX);
    if (passes_through(shared)) {
        int taken = pass_through(lane, shared, writes, count);
        return end_of_send(lane, shared, refusal_of_sub(shared, taken, count), taken);
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

static int link_lane_send(struct link_lane *lane, struct link_shared *shared,
                          const struct fabric_datagram *datagrams, uint32_t count)
{
    assert(is_control(lane) && count <= FABRIC_BATCH_MAX);
    if (passes_through(shared)) {
        int taken = shared->inner->fabric->ops->control_send(shared->inner, datagrams, count);
        return end_of_send(lane, shared, refusal_of_sub(shared, taken, count), taken);
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
    if (lane->refused == LINK_REFUSED_BY_FABRIC) {
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

/* Lets due packets go; when to call again. */
static lh_time link_lane_pump(struct link_lane *lane, struct link_shared *shared, lh_time now)
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

/* Forgets what is in flight. */
static void link_lane_clear(struct link_lane *lane, struct link_shared *shared)
{
    collect_due(lane, LH_TIME_NEVER);
    while (lane->due_count > 0) {
        let_go(lane, shared, lane->due_count);
        collect_due(lane, LH_TIME_NEVER);
    }
    timeline_clear(&lane->in_flight);
}

/* ---- link ------------------------------------------------------------------------------------------ */

#define IPV4_AND_UDP_BYTES 28u
#define IPV6_AND_UDP_BYTES 48u

struct link_fabric {
    struct fabric base;
    struct fabric_ops ops; /* ours, under the inner fabric's name */
    struct fabric *inner;
    bool owns_inner;
    struct lh_link_spec spec;
    _Atomic uint64_t endpoints_created;
};

struct link_endpoint {
    struct fabric_endpoint base;
    struct link_shared shared;
    uint64_t number;  /* of the fabric's endpoints: each has samples of its own */
    uint64_t side;    /* of the connection: 0 or 1 */
    uint64_t changes; /* of the spec */
    uint32_t channels;
    struct link_lane lanes[]; /* one a channel, then control */
};

static struct link_fabric *link_fabric_of(struct fabric *fabric)
{
    return (struct link_fabric *)fabric;
}

static struct link_endpoint *link_endpoint_of(struct fabric_endpoint *endpoint)
{
    return (struct link_endpoint *)endpoint;
}

static struct fabric_endpoint *inner_of(struct fabric_endpoint *endpoint)
{
    return link_endpoint_of(endpoint)->shared.inner;
}

static struct link_lane *lane_of(struct link_endpoint *endpoint, uint32_t channel)
{
    assert(channel == FABRIC_CONTROL || channel < endpoint->channels);
    return &endpoint->lanes[channel == FABRIC_CONTROL ? endpoint->channels : channel];
}

/* ---- the link of an endpoint ------------------------------------------------------------------------- */

/* Starts (again) with that spec; what waits for the bottleneck still has to pass it. With the lock held, or
 * before anybody else knows the endpoint. */
static void start_link(struct link_endpoint *endpoint, const struct lh_link_spec *spec)
{
    struct link_shared *shared = &endpoint->shared;
    lh_time busy_until_ns = shared->link.bottleneck_free_ns;
    uint64_t direction = (endpoint->number << 32 | endpoint->changes) << 1 | endpoint->side;
    lh_link_state_init(&shared->link, spec, direction);
    shared->link.bottleneck_free_ns = busy_until_ns;
    atomic_store_explicit(&shared->emulating, !lh_link_is_none(spec), memory_order_relaxed);
}

/* Room for what a link of that spec holds. With the lock held, as above. */
static int grow_held(struct link_endpoint *endpoint, const struct lh_link_spec *spec)
{
    struct link_shared *shared = &endpoint->shared;
    if (lh_link_is_none(spec))
        return 0;
    uint64_t bytes = link_held_bytes(spec);
    if (shared->held != NULL && shared->held->store.capacity >= bytes)
        return 0;
    struct link_held *held = NULL;
    int error = link_held_create(bytes, &held);
    if (error != 0)
        return error;
    link_held_retire(shared->held);
    shared->held = held;
    return 0;
}

void fabric_link_set(struct fabric_endpoint *base, const struct lh_link_spec *spec)
{
    struct link_endpoint *endpoint = link_endpoint_of(base);
    pthread_mutex_lock(&endpoint->shared.lock);
    int error = grow_held(endpoint, spec);
    /* Without memory for a longer link the old one goes on: nothing that was asked for happens by halves.
     */
    if (error == 0) {
        endpoint->changes++;
        start_link(endpoint, spec);
    }
    pthread_mutex_unlock(&endpoint->shared.lock);
}

static int link_endpoint_create(struct fabric *fabric, const struct fabric_endpoint_attr *attr,
                                struct fabric_endpoint **out)
{
    struct link_fabric *link = link_fabric_of(fabric);
    size_t lanes = attr->channels + 1;
    struct link_endpoint *endpoint = calloc(1, sizeof(*endpoint) + lanes * sizeof(endpoint->lanes[0]));
    if (endpoint == NULL)
        return lh_fail(LH_ENOMEM, "no memory for an emulated link of %u channels", attr->channels);
    int error = link->inner->ops->endpoint_create(link->inner, attr, &endpoint->shared.inner);
    if (error != 0)
        goto free_endpoint;
    error = grow_held(endpoint, &link->spec);
    if (error != 0)
        goto destroy_inner;
    endpoint->base.fabric = fabric;
    endpoint->base.secret = endpoint->shared.inner->secret;
    endpoint->shared.stats = attr->stats;
    endpoint->shared.ip_udp_bytes = IPV6_AND_UDP_BYTES;
    endpoint->number = atomic_fetch_add(&link->endpoints_created, 1);
    endpoint->channels = attr->channels;
    endpoint->shared.lanes = endpoint->lanes;
    endpoint->shared.lane_count = (uint32_t)lanes;
    for (uint32_t i = 0; i < lanes; i++) {
        endpoint->lanes[i].channel = i < attr->channels ? i : FABRIC_CONTROL;
        atomic_init(&endpoint->lanes[i].head_ns, LH_TIME_NEVER);
    }
    pthread_mutex_init(&endpoint->shared.lock, NULL);
    start_link(endpoint, &link->spec);
    *out = &endpoint->base;
    return 0;

destroy_inner:
    link->inner->ops->endpoint_destroy(endpoint->shared.inner);
free_endpoint:
    free(endpoint);
    return error;
}

static void link_endpoint_destroy(struct fabric_endpoint *base)
{
    struct link_endpoint *endpoint = link_endpoint_of(base);
    for (uint32_t i = 0; i <= endpoint->channels; i++)
        link_lane_clear(&endpoint->lanes[i], &endpoint->shared);
    link_held_retire(endpoint->shared.held);
    endpoint->shared.inner->fabric->ops->endpoint_destroy(endpoint->shared.inner);
    pthread_mutex_destroy(&endpoint->shared.lock);
    free(endpoint);
}

/* Which of two ends this is: both know it without asking, whatever they have in common. */
static uint64_t side_of(const struct qp_info_endpoint *own, const struct qp_info_endpoint *peer)
{
    int order = memcmp(own->address, peer->address, sizeof(own->address));
    return order > 0 || (order == 0 && own->control_port > peer->control_port);
}

static int link_secure(struct fabric_endpoint *base, const struct fabric_secret *secret)
{
    struct link_shared *shared = &link_endpoint_of(base)->shared;
    struct fabric_endpoint *wrapped = shared->inner;
    int error = wrapped->fabric->ops->secure(wrapped, secret);
    if (error == 0)
        shared->sealed_bytes = ROCE_SEALED_EXTRA; /* nothing is sent before it is connected */
    return error;
}

static int link_endpoint_connect(struct fabric_endpoint *base, const struct qp_info_endpoint *peer)
{
    struct link_endpoint *endpoint = link_endpoint_of(base);
    struct link_shared *shared = &endpoint->shared;
    const struct fabric_ops *ops = shared->inner->fabric->ops;
    int error = ops->endpoint_connect(shared->inner, peer);
    if (error != 0)
        return error;
    struct qp_info_endpoint own;
    ops->endpoint_info(shared->inner, &own);
    pthread_mutex_lock(&shared->lock);
    shared->ip_udp_bytes = peer->family == 4 ? IPV4_AND_UDP_BYTES : IPV6_AND_UDP_BYTES;
    endpoint->side = side_of(&own, peer);
    struct lh_link_spec spec = shared->link.spec;
    start_link(endpoint, &spec);
    pthread_mutex_unlock(&shared->lock);
    return 0;
}

static int link_post_writes(struct fabric_endpoint *base, uint32_t channel,
                            const struct fabric_write *writes, uint32_t count)
{
    struct link_endpoint *endpoint = link_endpoint_of(base);
    return link_lane_post(lane_of(endpoint, channel), &endpoint->shared, writes, count);
}

static int link_control_send(struct fabric_endpoint *base, const struct fabric_datagram *datagrams,
                             uint32_t count)
{
    struct link_endpoint *endpoint = link_endpoint_of(base);
    return link_lane_send(lane_of(endpoint, FABRIC_CONTROL), &endpoint->shared, datagrams, count);
}

static lh_time link_pump(struct fabric_endpoint *base, uint32_t channel, lh_time now)
{
    struct link_endpoint *endpoint = link_endpoint_of(base);
    return link_lane_pump(lane_of(endpoint, channel), &endpoint->shared, now);
}

/* ---- what the inner fabric does as it is ------------------------------------------------------------- */

static lh_time link_now(struct fabric *fabric)
{
    struct fabric *inner = link_fabric_of(fabric)->inner;
    return inner->ops->now(inner);
}

static void link_endpoint_info(struct fabric_endpoint *endpoint, struct qp_info_endpoint *info)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    inner->fabric->ops->endpoint_info(inner, info);
}

static int link_slot_bind(struct fabric_endpoint *endpoint, uint32_t slot, const struct fabric_slot *what,
                          struct fabric_slot_key *key)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    return inner->fabric->ops->slot_bind(inner, slot, what, key);
}

static void link_slot_unbind(struct fabric_endpoint *endpoint, uint32_t slot)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    inner->fabric->ops->slot_unbind(inner, slot);
}

static void link_slots_idle(struct fabric_endpoint *endpoint)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    if (inner->fabric->ops->slots_idle != NULL)
        inner->fabric->ops->slots_idle(inner);
}

static int link_poll(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
                     uint32_t count)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    return inner->fabric->ops->poll(inner, channel, arrivals, count);
}

static int link_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                             uint32_t count)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    return inner->fabric->ops->control_poll(inner, arrivals, count);
}

static uint32_t link_poll_fds(struct fabric_endpoint *endpoint, uint32_t channel, int *fds)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    return inner->fabric->ops->poll_fds(inner, channel, fds);
}

static void link_punch(struct fabric_endpoint *endpoint, uint32_t proof)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    if (inner->fabric->ops->punch != NULL)
        inner->fabric->ops->punch(inner, proof);
}

static void link_control_proven(struct fabric_endpoint *endpoint,
                                const struct fabric_control_arrival *arrival)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    if (inner->fabric->ops->control_proven != NULL)
        inner->fabric->ops->control_proven(inner, arrival);
}

static bool link_takes_pieces(struct fabric_endpoint *endpoint)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    return inner->fabric->ops->takes_pieces(inner);
}

static lh_time link_arrived(struct fabric_endpoint *endpoint, uint32_t channel)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    return inner->fabric->ops->arrived != NULL ? inner->fabric->ops->arrived(inner, channel) : 0;
}

static void link_count_drops(struct fabric_endpoint *endpoint)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    if (inner->fabric->ops->count_drops != NULL)
        inner->fabric->ops->count_drops(inner);
}

static int link_memory_register(struct fabric *fabric, void *address, size_t bytes, uint32_t *lkey,
                                void **handle)
{
    struct fabric *inner = link_fabric_of(fabric)->inner;
    return inner->ops->memory_register(inner, address, bytes, lkey, handle);
}

static void link_memory_deregister(struct fabric *fabric, void *handle)
{
    struct fabric *inner = link_fabric_of(fabric)->inner;
    inner->ops->memory_deregister(inner, handle);
}

/* ---- the fabric -------------------------------------------------------------------------------------- */

static const char *link_warning(struct fabric *fabric)
{
    return fabric_warning(link_fabric_of(fabric)->inner);
}

static void link_close(struct fabric *fabric)
{
    struct link_fabric *link = link_fabric_of(fabric);
    if (link->owns_inner)
        link->inner->ops->close(link->inner);
    free(link);
}

static const struct fabric_ops link_ops = {
    .close = link_close,
    .now = link_now,
    .endpoint_create = link_endpoint_create,
    .endpoint_destroy = link_endpoint_destroy,
    .endpoint_info = link_endpoint_info,
    .endpoint_connect = link_endpoint_connect,
    .slot_bind = link_slot_bind,
    .slot_unbind = link_slot_unbind,
    .slots_idle = link_slots_idle,
    .post_writes = link_post_writes,
    .poll = link_poll,
    .control_send = link_control_send,
    .control_poll = link_control_poll,
    .control_proven = link_control_proven,
    .poll_fds = link_poll_fds,
    .punch = link_punch,
    .arrived = link_arrived,
    .count_drops = link_count_drops,
    .pump = link_pump,
    .warning = link_warning,
};

int fabric_link_over(struct fabric *inner, const struct lh_link_spec *spec, struct fabric **fabric)
{
    struct link_fabric *link = calloc(1, sizeof(*link));
    if (link == NULL)
        return lh_fail(LH_ENOMEM, "no memory for link emulation");
    const struct fabric_ops *wrapped = inner->ops;
    link->ops = link_ops;
    link->ops.name = wrapped->name;
    link->ops.peer_traits = wrapped->peer_traits;
    link->ops.outruns_path = wrapped->outruns_path;
    link->ops.local_is_direct = wrapped->local_is_direct;
    link->ops.long_control = wrapped->long_control;
    link->ops.secure = wrapped->secure != NULL ? link_secure : NULL;
    if (wrapped->takes_pieces != NULL)
        link->ops.takes_pieces = link_takes_pieces;
    /* Nothing to register stays nothing to register. */
    if (wrapped->memory_register != NULL) {
        link->ops.memory_register = link_memory_register;
        link->ops.memory_deregister = link_memory_deregister;
    }
    link->base.ops = &link->ops;
    link->inner = inner;
    link->spec = *spec;
    *fabric = &link->base;
    return 0;
}

int fabric_link_open(struct fabric *inner, const struct lh_link_spec *spec, struct fabric **fabric)
{
    int error = fabric_link_over(inner, spec, fabric);
    if (!error)
        link_fabric_of(*fabric)->owns_inner = true;
    return error;
}
