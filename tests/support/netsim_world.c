/*
 * netsim_world.c - see netsim_world.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/netsim_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "netsim/engine/network.h"
#include "support/netsim_build.h"

struct netsim_config netsim_world_config(enum netsim_topology_kind kind)
{
    struct netsim_config config = {
        .topology = topology_config(kind),
        .switches = {.buffer_bytes = 16 << 20, .pfc_xoff_bytes = 128 << 10, .pfc_xon_bytes = 96 << 10},
        .transport = {.payload_bytes = 4096,
                      .header_bytes = 78,
                      .ack_bytes = 64,
                      .rto = 3,
                      .reorder_packets = 3,
                      .rto_low_ps = 100 * NETSIM_PS_PER_US,
                      .rto_high_ps = 320 * NETSIM_PS_PER_US,
                      .rto_low_packets = 3,
                      .dcqcn = {.alpha_ps = NETSIM_PS_PER_US,
                                .decrease_ps = 4 * NETSIM_PS_PER_US,
                                .increase_ps = 900 * NETSIM_PS_PER_US,
                                .additive_bps = DCQCN_ADDITIVE_BPS,
                                .hyper_bps = DCQCN_HYPER_BPS,
                                .min_bps = DCQCN_MIN_BPS,
                                .gain = DCQCN_GAIN,
                                .recovery_stages = DCQCN_RECOVERY_STAGES},
                      .data_priority = 3,
                      .ack_priority = 6},
        .workload = {.kind = NETSIM_PERMUTATION, .bytes = 1 << 20, .receiver = UINT32_MAX, .rounds = 1},
        .packets_max = 1 << 20,
    };
    config.topology.hosts = 4;
    config.topology.leaves = 4;
    config.topology.spines = 4;
    config.topology.k = 4;
    return config;
}

/* calloc leaves the pages of a large pool alone until they are used; the arena wants 64 bytes' alignment. */
static struct netsim_arena real_arena(const struct netsim_arena *counted, void **memory)
{
    assert_true(counted->used_bytes != SIZE_MAX);
    *memory = calloc(counted->used_bytes + 64, 1);
    assert_non_null(*memory);
    unsigned char *base = (unsigned char *)*memory;
    base += (64 - (uintptr_t)base % 64) % 64;
    return (struct netsim_arena){.base = base, .capacity_bytes = counted->used_bytes};
}

static void copy_flows(struct netsim_world *world, const struct netsim_flow_request *flows, uint32_t count)
{
    world->list.count = count;
    world->list.flows = calloc(count + 1, sizeof *flows);
    assert_non_null(world->list.flows);
    memcpy(world->list.flows, flows, count * sizeof *flows);
    world->memory[1] = world->list.flows;
}

void netsim_world_open(struct netsim_world *world, const struct netsim_config *config,
                       const struct netsim_flow_request *flows, uint32_t count, uint64_t seed)
{
    struct netsim_arena counting = {0};
    struct lh_prng prng;
    memset(world, 0, sizeof *world);
    world->config = *config;
    lh_prng_seed(&prng, seed);
    assert_int_equal(build_topology(&config->topology, &world->graph, &world->memory[0]), 0);
    if (flows != NULL)
        copy_flows(world, flows, count);
    else
        assert_int_equal(
            build_workload(&config->workload, &world->graph, seed, &world->list, &world->memory[1]), 0);
    netsim_setup(&world->net, config, &world->graph, &world->list, &prng, &counting);
    struct netsim_arena arena = real_arena(&counting, &world->memory[2]);
    netsim_setup(&world->net, config, &world->graph, &world->list, &prng, &arena);
    assert_int_equal(arena.used_bytes, counting.used_bytes);
}

void netsim_world_close(struct netsim_world *world)
{
    for (size_t i = 0; i < sizeof world->memory / sizeof world->memory[0]; i++)
        free(world->memory[i]);
}

/* ---- by hand ----------------------------------------------------------------------------------------- */

void netsim_world_kick(struct netsim_world *world, uint32_t port)
{
    struct netsim_network *network = &world->net.network;
    netsim_time free_ps = network->ports[port].free_ps;
    if (!netsim_event_pending(&network->events, 2 * port))
        netsim_event_schedule(&network->events, 2 * port,
                              free_ps > network->now_ps ? free_ps : network->now_ps);
}

void netsim_world_pause(struct netsim_world *world, uint32_t port, uint8_t priority, bool pause)
{
    if (pause) {
        netsim_queue_pause(&world->net.network, port, priority);
        return;
    }
    netsim_queue_resume(&world->net.network, port, priority);
    netsim_world_kick(world, port);
}

void netsim_world_set_timers(struct netsim_world *world)
{
    struct netsim_effects *effects = &world->net.control.effects;
    for (uint32_t i = 0; i < effects->count; i++) {
        assert_int_equal(effects->list[i].kind, NETSIM_EFFECT_TIMER);
        netsim_event_schedule(&world->net.network.events, effects->list[i].number, effects->list[i].value);
    }
    effects->count = 0;
}

/* ---- watching ---------------------------------------------------------------------------------------- */

static void mix(uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * 0x9E3779B97F4A7C15u;
    *hash ^= *hash >> 29;
}

static void on_packet(void *context, const struct lh_netsim_packet *packet)
{
    struct netsim_world *world = context;
    struct netsim_seen *seen = &world->seen;
    mix(&seen->hash, packet->at_ps);
    mix(&seen->hash, (uint64_t)packet->link << 32 | packet->flow);
    mix(&seen->hash, (uint64_t)packet->sequence << 32 | packet->wire_bytes);
    mix(&seen->hash, (uint64_t)packet->source << 32 | packet->destination);
    mix(&seen->hash,
        (uint64_t)(packet->kind | packet->priority << 8 | packet->marked << 16 | packet->repeated << 17));
    seen->packets++;
    seen->to_hosts[packet->kind] += world->net.network.ports[packet->link].far < world->graph.hosts;
    seen->from_hosts[packet->kind] += world->net.network.ports[packet->link].owner < world->graph.hosts;
}

void netsim_world_watch(struct netsim_world *world)
{
    world->net.network.watcher = on_packet;
    world->net.network.watcher_context = world;
    for (uint32_t p = 0; p < world->net.network.ports_count; p++)
        world->net.network.ports[p].flags |= NETSIM_PORT_WATCHED;
}

/* ---- running ----------------------------------------------------------------------------------------- */

void netsim_world_finish(struct netsim_world *world)
{
    assert_int_equal(netsim_run(&world->net, NETSIM_NEVER, UINT64_MAX), 1);
}

void netsim_world_finish_in_steps(struct netsim_world *world, netsim_time step_ps)
{
    int result = 0;
    while (result == 0) {
        result = netsim_run(&world->net, world->net.network.now_ps + step_ps, UINT64_MAX);
        netsim_world_check(world);
    }
    assert_int_equal(result, 1);
}

/* ---- checking ---------------------------------------------------------------------------------------- */

static void check_port(const struct netsim_world *world, const struct netsim_port *port)
{
    const struct netsim_switch_config *switches = &world->config.switches;
    uint64_t queued = 0;
    for (unsigned p = 0; p < NETSIM_PRIORITIES; p++) {
        bool lossless = (world->net.network.lossless >> p & 1) != 0;
        queued += port->queue_bytes[p];
        assert_int_equal((port->ready >> p & 1) != 0, port->queue_bytes[p] != 0);
        assert_int_equal(port->first[p] == NETSIM_NO_PACKET, port->queue_bytes[p] == 0);
        if (port->owner >= world->graph.hosts && !lossless && switches->queue_bytes != 0)
            assert_true(port->queue_bytes[p] <= switches->queue_bytes);
    }
    assert_true(port->queued_bytes == queued && port->queued_max_bytes >= queued);
}

void netsim_world_check(const struct netsim_world *world)
{
    const struct netsim_network *net = &world->net.network;
    uint32_t switches = world->graph.nodes_count - world->graph.hosts;
    uint64_t *used = calloc(3 * (size_t)switches + 1, sizeof *used);
    uint64_t *held = used + switches;
    uint64_t *own = held + switches;
    assert_non_null(used);
    for (uint32_t p = 0; p < net->ports_count; p++) {
        const struct netsim_port *port = &net->ports[p];
        check_port(world, port);
        if (port->owner >= world->graph.hosts)
            used[port->owner - world->graph.hosts] += port->queued_bytes;
        for (unsigned i = 0; i < NETSIM_PRIORITIES && port->far >= world->graph.hosts; i++) {
            held[port->far - world->graph.hosts] += port->held_bytes[i];
            if (port->own_bytes != 0) {
                own[port->far - world->graph.hosts] += port->held_bytes[i];
                assert_true(port->held_bytes[i] <= port->own_bytes);
            }
            assert_true(port->held_bytes[i] <= port->held_max_bytes);
        }
    }
    for (uint32_t s = 0; s < switches; s++) {
        assert_true(net->switches[s].used_bytes + own[s] == used[s] && held[s] == used[s]);
        assert_true(net->switches[s].used_bytes <= world->config.switches.buffer_bytes);
    }
    assert_true(net->pool.alive <= net->pool.alive_max && net->pool.alive_max <= net->pool.capacity);
    free(used);
}

static void check_counts(const struct netsim_world *world)
{
    const struct lh_netsim_totals *totals = &world->net.network.totals;
    uint64_t dropped = 0;
    uint64_t lost = 0;
    uint64_t marked = 0;
    uint64_t pauses = 0;
    uint64_t hops = 0;
    for (uint32_t p = 0; p < world->net.network.ports_count; p++) {
        const struct netsim_port_more *more = &world->net.network.more[p];
        dropped += more->dropped_packets;
        lost += more->lost_packets;
        marked += more->marked_packets;
        pauses += more->pauses;
        hops += world->net.network.ports[p].sent_packets;
    }
    assert_true(totals->dropped_packets == dropped && totals->lost_packets == lost);
    assert_true(totals->marked_packets == marked);
    if (world->config.longs.control != NETSIM_LONG_BIFROST) /* whose last pauses nobody waits for */
        assert_true(totals->pauses >= pauses && totals->pauses - pauses <= totals->signals_lost);
    if (world->net.network.watcher != on_packet)
        return;
    const struct netsim_seen *seen = &world->seen;
    assert_true(hops == seen->packets && seen->from_hosts[LH_NETSIM_DATA] == totals->data_packets);
    if (world->config.topology.kind == NETSIM_TWO_HOSTS)
        return; /* its faults are on the links to the hosts, behind where they are watched */
    uint64_t data = seen->to_hosts[LH_NETSIM_DATA];
    uint64_t arrived = data + seen->to_hosts[LH_NETSIM_ACK];
    uint64_t sent = totals->data_packets + totals->ack_packets + totals->duplicated_packets;
    uint64_t gone = dropped + lost + totals->corrupted_packets + totals->unroutable_packets;
    bool pauses_vanish =
        (world->config.longs.control == NETSIM_LONG_BIFROST || world->net.control.refreshing) &&
        !lh_link_is_none(&world->config.topology.faults);
    assert_true(arrived + gone == sent || pauses_vanish);
    /* With go-back-N what comes behind a gap is not answered. */
    bool each = world->config.transport.kind != NETSIM_GBN;
    /* A receiver that gives credit tells of it in between, too. */
    bool only = world->net.transport.controllers.receiver_bytes == 0;
    if (world->config.transport.ack_bytes != 0 && only)
        assert_true(each ? totals->ack_packets == data : totals->ack_packets <= data);
}

void netsim_world_check_end(const struct netsim_world *world)
{
    const struct netsim_network *net = &world->net.network;
    netsim_world_check(world);
    assert_int_equal(net->pool.alive, 0);
    for (uint32_t p = 0; p < net->ports_count; p++) {
        const struct netsim_port *port = &net->ports[p];
        assert_true(port->queued_bytes == 0 && port->ready == 0);
        assert_true(port->wire_first == NETSIM_NO_PACKET && port->urgent_first == NETSIM_NO_PACKET);
        /* A pause of Bifrost may still be running. */
        assert_true(port->stopped == 0 && (port->paused == 0 || port->control == NETSIM_CONTROL_BIFROST));
    }
    if (world->config.longs.control != NETSIM_LONG_BIFROST && !world->net.control.refreshing)
        assert_true(net->totals.pauses == net->totals.resumes);
    check_counts(world);
}

void netsim_world_check_done(const struct netsim_world *world)
{
    uint64_t bytes = 0;
    uint64_t packets = 0;
    uint64_t repeated = 0;
    /* Sprayed packets share several links, and a short one that overtakes is acknowledged sooner: a flow may
     * then be faster than its ideal. */
    const struct lh_link_spec *faults = &world->config.topology.faults;
    bool in_order = !world->config.switches.spray && faults->jitter_ns == 0 && !(faults->reorder > 0);
    for (uint32_t f = 0; f < world->net.transport.flows_count; f++) {
        const struct netsim_flow *flow = &world->net.transport.flows[f];
        assert_true(flow->received_ps != NETSIM_NEVER && flow->done_ps != NETSIM_NEVER);
        if (in_order)
            assert_true(flow->start_ps + flow->ideal_ps <= flow->done_ps);
        assert_true(flow->received_ps <= flow->done_ps);
        assert_true(flow->sender.sent_packets == flow->sender.packets + flow->sender.repeated_packets);
        bytes += flow->bytes;
        packets += flow->sender.sent_packets;
        repeated += flow->sender.repeated_packets;
    }
    const struct lh_netsim_totals *totals = &world->net.network.totals;
    assert_true(totals->flows_done == totals->flows && totals->flows_started == totals->flows);
    assert_true(totals->delivered_bytes == bytes && totals->data_packets == packets);
    assert_true(totals->repeated_packets == repeated);
}

uint32_t netsim_world_link(const struct netsim_world *world, uint32_t from, uint32_t to)
{
    for (uint32_t p = 0; p < world->net.network.ports_count; p++) {
        if (world->net.network.ports[p].owner == from && world->net.network.ports[p].far == to)
            return p;
    }
    fail_msg("no link from node %u to node %u", from, to);
    return UINT32_MAX;
}
