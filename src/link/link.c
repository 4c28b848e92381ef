/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "link/lane.h"

#define BITS_PER_BYTE      8u
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

static void link_slots_rest(struct fabric_endpoint *endpoint)
{
    struct fabric_endpoint *inner = inner_of(endpoint);
    if (inner->fabric->ops->slots_rest != NULL)
        inner->fabric->ops->slots_rest(inner);
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
    .slots_rest = link_slots_rest,
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
    link->ops = link_ops;
    link->ops.name = inner->ops->name;
    link->ops.peer_traits = inner->ops->peer_traits;
    link->ops.outruns_path = inner->ops->outruns_path;
    link->ops.local_is_direct = inner->ops->local_is_direct;
    link->ops.long_control = inner->ops->long_control;
    if (inner->ops->takes_pieces != NULL)
        link->ops.takes_pieces = link_takes_pieces;
    /* Nothing to register stays nothing to register. */
    if (inner->ops->memory_register != NULL) {
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
