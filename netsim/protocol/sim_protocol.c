/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/protocol/protocol.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/prng.h"
#include "netsim/fabric/sim.h"
#include "netsim/protocol/schemes.h"
#include "netsim/protocol/way.h"
#include "netsim/transport/ideal_fct.h"

#define FLOWS_MAX      65536u
#define FLOW_BYTES_MAX ((uint64_t)256 << 20) /* each is kept in memory, and compared */
#define STEPS_MAX      100000u               /* of a connection at one moment: past it, it asks for ever */
#define NO_WAY         UINT32_MAX
/* From when connections are opened to the first flow: a path is known after one, and what is lost of that is
 * retransmitted. */
#define OPENING_RTTS 4u

struct protocol {
    struct netsim *net;
    struct sim_world *world;
    struct message *messages; /* one a flow */
    struct way *ways;
    uint32_t ways_count;
    uint32_t *way_of; /* [source * hosts + destination]; NO_WAY */
    /* End e of way w is number 2 w + e, here and in `timers`. */
    uint32_t *dirty; /* ends that have something to do now */
    bool *is_dirty;
    uint32_t dirty_count;
    lh_time begin_ns; /* no flow starts before */
    struct netsim_event_queue timers;
    void *timers_memory;
    uint8_t *pattern; /* the bytes of messages: see way.h */
    struct scheme_list schemes;
    char name[SIM_WORLD_NAME_MAX];
};

/* ---- life -------------------------------------------------------------------------------------------- */

int protocol_check(const struct netsim_config *config)
{
    const struct netsim_transport_config *transport = &config->transport;
    uint32_t mtu = transport->payload_bytes;
    struct scheme_list list;
    if (mtu < 256 || mtu > 4096 || (mtu & (mtu - 1)) != 0)
        return lh_fail(
            LH_EINVAL,
            "transport.payload is %u bytes: with transport.kind = longhaul it is an MTU (256, 512, "
            "1024, 2048 or 4096)",
            mtu);
    if (transport->congestion.kind != NETSIM_CONGESTION_NONE &&
        lh_congestion_check(way_congestion(transport)) != 0)
        return -LH_EINVAL;
    return scheme_list_parse(config->schemes, &list);
}

static int check_size(const struct netsim *net)
{
    if (net->network.hosts_count > SIM_HOSTS_MAX)
        return lh_fail(
            LH_ERANGE,
            "the topology has %u hosts: at most %u with transport.kind = longhaul (a fat tree of "
            "topology.k = 8)",
            net->network.hosts_count, SIM_HOSTS_MAX);
    if (net->transport.flows_count > FLOWS_MAX)
        return lh_fail(LH_ERANGE,
                       "the workload has %u flows: at most %u with transport.kind = longhaul (make it "
                       "shorter)",
                       net->transport.flows_count, FLOWS_MAX);
    for (uint32_t i = 0; i < net->transport.flows_count; i++)
        if (net->transport.flows[i].bytes > FLOW_BYTES_MAX)
            return lh_fail(LH_ERANGE,
                           "flow %u has %llu bytes: at most %llu with transport.kind = longhaul (make it "
                           "shorter)",
                           i, (unsigned long long)net->transport.flows[i].bytes,
                           (unsigned long long)FLOW_BYTES_MAX);
    return 0;
}

/* Numbers the pairs of hosts that have flows; how many there are. */
static uint32_t number_ways(struct protocol *protocol)
{
    const struct netsim *net = protocol->net;
    uint32_t count = 0;
    memset(protocol->way_of, 0xFF,
           (size_t)net->network.hosts_count * net->network.hosts_count * sizeof *protocol->way_of);
    for (uint32_t i = 0; i < net->transport.flows_count; i++) {
        const struct netsim_sender *sender = &net->transport.flows[i].sender;
        uint32_t *way = &protocol->way_of[sender->source * net->network.hosts_count + sender->destination];
        if (*way == NO_WAY)
            *way = count++;
    }
    return count;
}

static int fill_ways(struct protocol *protocol)
{
    const struct netsim *net = protocol->net;
    for (uint32_t i = 0; i < net->transport.flows_count; i++) {
        const struct netsim_sender *sender = &net->transport.flows[i].sender;
        uint32_t number = protocol->way_of[sender->source * net->network.hosts_count + sender->destination];
        struct way *way = &protocol->ways[number];
        way->source = sender->source;
        way->destination = sender->destination;
        if (net->transport.flows[i].bytes > way->longest_bytes)
            way->longest_bytes = net->transport.flows[i].bytes;
        if (++way->flows > LH_REQUESTS_MAX)
            return lh_fail(
                LH_ERANGE,
                "more than %u flows from host %u to host %u with transport.kind = longhaul (make "
                "the workload shorter)",
                LH_REQUESTS_MAX, way->source, way->destination);
        protocol->messages[i].flow = i;
    }
    return 0;
}

static bool create_timers(struct protocol *protocol)
{
    struct netsim_arena arena = {0};
    uint32_t ends = 2 * protocol->ways_count;
    netsim_event_queue_init(&protocol->timers, &arena, ends, NETSIM_PS_PER_US);
    size_t bytes = (arena.used_bytes + 63) & ~(size_t)63;
    protocol->timers_memory = aligned_alloc(64, bytes);
    if (protocol->timers_memory == NULL)
        return false;
    memset(protocol->timers_memory, 0, bytes);
    arena = (struct netsim_arena){.base = protocol->timers_memory, .capacity_bytes = bytes};
    netsim_event_queue_init(&protocol->timers, &arena, ends, NETSIM_PS_PER_US);
    return true;
}

static bool create_pattern(struct protocol *protocol, uint64_t seed)
{
    struct lh_prng prng;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < protocol->ways_count; i++)
        if (protocol->ways[i].longest_bytes > bytes)
            bytes = protocol->ways[i].longest_bytes;
    bytes = (bytes + WAY_PATTERN_SHIFTS + 7) / 8 * 8;
    protocol->pattern = malloc(bytes);
    if (protocol->pattern == NULL)
        return false;
    lh_prng_seed(&prng, seed);
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t next = lh_prng_next(&prng);
        memcpy(protocol->pattern + i, &next, 8);
    }
    return true;
}

static int build(struct protocol *protocol)
{
    const struct netsim *net = protocol->net;
    size_t hosts = net->network.hosts_count;
    protocol->way_of = malloc(hosts * hosts * sizeof *protocol->way_of);
    if (protocol->way_of == NULL)
        return -LH_ENOMEM;
    protocol->ways_count = number_ways(protocol);
    size_t ways = protocol->ways_count + 1; /* there may be none */
    protocol->ways = calloc(ways, sizeof *protocol->ways);
    protocol->messages = calloc(net->transport.flows_count + 1, sizeof *protocol->messages);
    protocol->dirty = calloc(2 * ways, sizeof *protocol->dirty);
    protocol->is_dirty = calloc(2 * ways, sizeof *protocol->is_dirty);
    if (protocol->ways == NULL || protocol->messages == NULL || protocol->dirty == NULL ||
        protocol->is_dirty == NULL || !create_timers(protocol))
        return -LH_ENOMEM;
    return fill_ways(protocol);
}

static void mark(struct protocol *protocol, uint32_t end)
{
    if (protocol->ways[end / 2].ends[0] == NULL || protocol->is_dirty[end])
        return;
    protocol->is_dirty[end] = true;
    protocol->dirty[protocol->dirty_count++] = end;
}

static void mark_both(struct protocol *protocol, const struct way *way)
{
    uint32_t place = (uint32_t)(way - protocol->ways);
    mark(protocol, 2 * place);
    mark(protocol, 2 * place + 1);
}

/* A packet arrived: at the receiving end of one way, or at the sending end of the other. */
static void on_arrival(void *context, const struct sim_datagram *datagram, enum sim_arrival arrival)
{
    struct protocol *protocol = context;
    uint32_t hosts = protocol->net->network.hosts_count;
    uint32_t there = protocol->way_of[datagram->from * hosts + datagram->to];
    uint32_t back = protocol->way_of[datagram->to * hosts + datagram->from];
    if (arrival != SIM_DELIVERED)
        return;
    if (there != NO_WAY)
        mark(protocol, 2 * there + 1);
    if (back != NO_WAY)
        mark(protocol, 2 * back);
}

/* Names of worlds are unique in a process. */
static int create_world(struct protocol *protocol, uint64_t seed)
{
    static _Atomic unsigned worlds;
    snprintf(protocol->name, sizeof protocol->name, "netsim-%u", atomic_fetch_add(&worlds, 1));
    int result =
        sim_world_open(protocol->name, protocol->net->network.hosts_count, seed, NULL, &protocol->world);
    if (result != 0)
        return result;
    sim_world_set_network(protocol->world, protocol->net);
    sim_world_watch(protocol->world, on_arrival, protocol);
    return 0;
}

int protocol_create(struct netsim *net, const char *schemes, uint64_t seed, struct protocol **out)
{
    int result = check_size(net);
    if (result != 0)
        return result;
    struct protocol *protocol = calloc(1, sizeof *protocol);
    if (protocol != NULL) {
        protocol->net = net;
        result = build(protocol);
    }
    if (protocol == NULL || (result == 0 && !create_pattern(protocol, seed)) || result == -LH_ENOMEM)
        result =
            lh_fail(LH_ENOMEM, "no memory for the connections of %u flows", net->transport.flows_count);
    if (result == 0)
        result = scheme_list_parse(schemes, &protocol->schemes);
    if (result == 0)
        result = create_world(protocol, seed);
    if (result != 0) {
        protocol_destroy(protocol);
        return result;
    }
    *out = protocol;
    return 0;
}

void protocol_destroy(struct protocol *protocol)
{
    if (protocol == NULL)
        return;
    for (uint32_t i = 0; protocol->ways != NULL && i < protocol->ways_count; i++)
        way_close(&protocol->ways[i]);
    if (protocol->world != NULL)
        sim_world_destroy(protocol->world);
    free(protocol->ways);
    free(protocol->messages);
    free(protocol->way_of);
    free(protocol->dirty);
    free(protocol->is_dirty);
    free(protocol->timers_memory);
    free(protocol->pattern);
    free(protocol);
}

/* ---- a run ------------------------------------------------------------------------------------------- */

static int open_way(struct protocol *protocol, struct way *way, netsim_time rtt_ps)
{
    const char *scheme = scheme_list_of(&protocol->schemes, way->destination);
    return way_open(way, protocol->net, rtt_ps, protocol->name, scheme);
}

static struct way *way_of_flow(struct protocol *protocol, uint32_t number)
{
    const struct netsim *net = protocol->net;
    const struct netsim_sender *sender = &net->transport.flows[number].sender;
    return &protocol
                ->ways[protocol->way_of[sender->source * net->network.hosts_count + sender->destination]];
}

/* Ranks of a group are connected before anything is sent: flows start when paths are known, and the receives
 * that are posted ahead, too. */
static int open_ahead(struct protocol *protocol)
{
    struct netsim *net = protocol->net;
    netsim_time longest_ps = 0;
    for (uint32_t i = 0; i < net->transport.flows_count; i++) {
        struct netsim_flow *flow = &net->transport.flows[i];
        struct way *way = way_of_flow(protocol, i);
        netsim_time slowest_ps = 0;
        if (way->ends[0] != NULL)
            continue;
        way->is_ahead = strncmp(scheme_list_of(&protocol->schemes, way->destination), "bounded", 7) != 0;
        netsim_ideal_fct(&net->transport, i, &flow->ideal_ps, &flow->sender.base_rtt_ps, &slowest_ps);
        int result = open_way(protocol, way, flow->sender.base_rtt_ps);
        if (result != 0)
            return result;
        if (flow->sender.base_rtt_ps > longest_ps)
            longest_ps = flow->sender.base_rtt_ps;
        mark_both(protocol, way);
    }
    protocol->begin_ns = OPENING_RTTS * longest_ps / NETSIM_PS_PER_NS;
    return 0;
}

static int start_flow(struct protocol *protocol, uint32_t number)
{
    struct netsim *net = protocol->net;
    struct netsim_flow *flow = &net->transport.flows[number];
    netsim_time slowest_ps = 0;
    struct way *way = way_of_flow(protocol, number);
    net->network.totals.flows_started++;
    if (number < net->transport.starts.list->dependents)
        flow->start_ps = sim_world_now(protocol->world) * NETSIM_PS_PER_NS;
    netsim_ideal_fct(&net->transport, number, &flow->ideal_ps, &flow->sender.base_rtt_ps, &slowest_ps);
    if (way->ends[0] == NULL) {
        int result = open_way(protocol, way, flow->sender.base_rtt_ps);
        if (result != 0)
            return result;
    }
    mark_both(protocol, way);
    return way_start(way, net, &protocol->messages[number], protocol->pattern);
}

/* In nanoseconds, rounded up: worlds know no shorter times. */
static lh_time start_ns(const struct protocol *protocol)
{
    netsim_time next_ps = netsim_starts_next_ps(&protocol->net->transport.starts);
    if (next_ps == NETSIM_NEVER)
        return LH_TIME_NEVER;
    lh_time next = (next_ps + NETSIM_PS_PER_NS - 1) / NETSIM_PS_PER_NS;
    return next > protocol->begin_ns ? next : protocol->begin_ns;
}

/* Lets one end do what is due, and notes when it wants to be called again. */
static int step(struct protocol *protocol, uint32_t end)
{
    struct way *way = &protocol->ways[end / 2];
    lh_time now = sim_world_now(protocol->world);
    lh_time next = now;
    for (uint32_t steps = 0; next <= now; steps++) {
        if (steps == STEPS_MAX)
            return lh_fail(LH_ESTATE, "hosts %u and %u: a connection has something due at %llu ns for ever",
                           way->source, way->destination, (unsigned long long)now);
        next = LH_TIME_NEVER;
        if (lh_progress(way->ends[end % 2], &next) != 0)
            next = LH_TIME_NEVER; /* it has ended, and its requests tell */
    }
    if (netsim_event_pending(&protocol->timers, end))
        netsim_event_cancel(&protocol->timers, end);
    if (next < NETSIM_TIME_MAX / NETSIM_PS_PER_NS)
        netsim_event_schedule(&protocol->timers, end, next * NETSIM_PS_PER_NS);
    return way_settle(way, protocol->net, protocol->pattern);
}

/* All that starts now. */
static int start_due(struct protocol *protocol, lh_time now)
{
    struct netsim *net = protocol->net;
    struct netsim_starts *starts = &net->transport.starts;
    netsim_time now_ps = now * NETSIM_PS_PER_NS;
    int result = 0;
    if (now < protocol->begin_ns)
        return 0;
    for (uint32_t node; result == 0 && (node = netsim_starts_take(starts, now_ps)) != NETSIM_NO_NODE;) {
        if (netsim_starts_is_task(starts, node))
            netsim_starts_release(starts, node, now_ps);
        else
            result = start_flow(protocol, node);
    }
    return result;
}

/* Everything that is due now. */
static int work(struct protocol *protocol)
{
    lh_time now = sim_world_now(protocol->world);
    netsim_time at_ps = 0;
    uint32_t end;
    int result = start_due(protocol, now);
    while ((end = netsim_event_next(&protocol->timers, now * NETSIM_PS_PER_NS, &at_ps)) != NETSIM_NO_EVENT)
        mark(protocol, end);
    for (uint32_t i = 0; result == 0 && i < protocol->dirty_count; i++) {
        protocol->is_dirty[protocol->dirty[i]] = false;
        result = step(protocol, protocol->dirty[i]);
    }
    protocol->dirty_count = 0;
    return result;
}

static lh_time next_ns(struct protocol *protocol)
{
    lh_time next = sim_world_next_event(protocol->world);
    lh_time start = start_ns(protocol);
    netsim_time timer_ps = netsim_event_peek(&protocol->timers);
    lh_time timer = timer_ps >= NETSIM_TIME_MAX ? LH_TIME_NEVER : timer_ps / NETSIM_PS_PER_NS;
    next = start < next ? start : next;
    return timer < next ? timer : next;
}

int protocol_run(struct protocol *protocol, uint64_t until_ps, uint64_t events_max)
{
    struct netsim *net = protocol->net;
    uint64_t first_event = net->network.totals.events;
    /* The world's time is in nanoseconds: it goes on to the end of one. */
    lh_time until_ns = until_ps / NETSIM_PS_PER_NS + (until_ps % NETSIM_PS_PER_NS != 0);
    if (net->network.out_of_packets)
        return netsim_used_up(net);
    if (net->transport.starts.list->in_order && protocol->begin_ns == 0) {
        int result = open_ahead(protocol);
        if (result != 0)
            return result;
    }
    while (net->network.totals.events - first_event < events_max) {
        int result = work(protocol);
        if (result != 0)
            return result;
        if (net->transport.unfinished == 0)
            return 1;
        lh_time next = next_ns(protocol);
        if (next == LH_TIME_NEVER)
            return 1;
        if (next > until_ns) {
            /* The world may be later already: the network's time stays behind when only a timer ended. */
            if (until_ns > sim_world_now(protocol->world))
                (void)sim_world_advance(protocol->world, until_ns); /* nothing is due, so nothing fails */
            netsim_settle(net, until_ns * NETSIM_PS_PER_NS);
            return 0;
        }
        net->network.totals.events++;
        result = sim_world_advance(protocol->world, next);
        if (result != 0)
            return result;
    }
    return 0;
}
