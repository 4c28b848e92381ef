/*
 * Random lives of a network: topology, faults, switches, flow control, transport and workload are drawn. What
 * must hold holds in the middle and at the end, all flows end, and slices change nothing.
 *
 * usage: test_netsim_stress [SEED [COUNT]]: from that seed on, and says what was drawn.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "netsim/config/config_keys.h"
#include "netsim/flowcontrol/link_rules.h"
#include "support/netsim_world.h"
#include "support/sanitized.h"

#define SEEDS (SANITIZED ? 500u : 1500u)

static uint64_t first_seed = 1;
static uint64_t seeds = SEEDS;
static bool loud;

static uint64_t pick(struct lh_prng *prng, const uint64_t *from, size_t count)
{
    return from[lh_prng_below(prng, count)];
}
#define PICK(prng, ...)                                                                                    \
    pick(prng, (const uint64_t[]){__VA_ARGS__}, sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))

static bool coin(struct lh_prng *prng, double chance)
{
    return lh_prng_chance(prng, chance);
}

static bool has_sites(const struct netsim_topology_config *topology)
{
    return topology->kind == NETSIM_TWO_DATACENTERS || topology->kind == NETSIM_DATACENTERS;
}

static void draw_topology(struct lh_prng *prng, struct netsim_topology_config *topology)
{
    static const uint64_t gbit = 1000000000;
    topology->kind =
        (enum netsim_topology_kind)PICK(prng, NETSIM_TWO_HOSTS, NETSIM_DUMBBELL, NETSIM_LEAF_SPINE,
                                        NETSIM_FAT_TREE, NETSIM_TWO_DATACENTERS, NETSIM_DATACENTERS);
    topology->hosts = (uint32_t)lh_prng_below(prng, 4) + 1;
    topology->leaves = (uint32_t)lh_prng_below(prng, 3) + 2;
    topology->spines = (uint32_t)lh_prng_below(prng, 4) + 1;
    topology->k = (uint32_t)PICK(prng, 2, 4, 4, 6);
    topology->rate_bps = PICK(prng, 100 * gbit, 100 * gbit, 400 * gbit, 10 * gbit, 33333333333, gbit);
    topology->core_rate_bps = coin(prng, 0.5) ? 0 : topology->rate_bps / 4 * (1 + lh_prng_below(prng, 8));
    topology->delay_ps = PICK(prng, 0, 1000, 600000, 1000000, 1000000, 50000000);
    topology->core_delay_ps = coin(prng, 0.5) ? NETSIM_NEVER : PICK(prng, 0, 3000000, 100000000);
    topology->long_delay_ps = PICK(prng, 0, 10000000, 1000000000);
    topology->long_rate_bps = coin(prng, 0.5) ? 0 : topology->rate_bps;
    if (has_sites(topology))
        topology->hosts = (uint32_t)lh_prng_below(prng, 3) + 1;
    if (topology->kind == NETSIM_DATACENTERS) {
        topology->k = 2;
        topology->sites = (uint32_t)lh_prng_below(prng, 3) + 2;
    }
}

static void draw_faults(struct lh_prng *prng, struct lh_link_spec *faults)
{
    if (coin(prng, 0.4))
        return;
    if (coin(prng, 0.5))
        faults->loss = 0.1 * lh_prng_double(prng);
    if (coin(prng, 0.3))
        faults->burst_packets = 1 + 10 * lh_prng_double(prng);
    if (coin(prng, 0.3))
        faults->corrupt = 0.05 * lh_prng_double(prng);
    if (coin(prng, 0.3))
        faults->duplicate = 0.2 * lh_prng_double(prng);
    if (coin(prng, 0.3))
        faults->jitter_ns = lh_prng_below(prng, 5000);
    if (coin(prng, 0.3))
        faults->reorder = 0.1 * lh_prng_double(prng);
}

static void draw_switches(struct lh_prng *prng, struct netsim_switch_config *switches, uint32_t frame)
{
    switches->buffer_bytes = frame * (uint64_t)PICK(prng, 4, 10, 50, 300, 5000);
    switches->queue_bytes = coin(prng, 0.5) ? 0 : frame * (1 + lh_prng_below(prng, 40));
    switches->alpha = coin(prng, 0.5) ? 0 : 0.5 + 4 * lh_prng_double(prng);
    switches->spray = coin(prng, 0.3);
    if (coin(prng, 0.5)) {
        switches->ecn_min_bytes = lh_prng_below(prng, 20) * frame;
        switches->ecn_max_bytes = switches->ecn_min_bytes + 1 + lh_prng_below(prng, 100000);
        switches->ecn_probability = lh_prng_double(prng);
    }
    switches->pfc = coin(prng, 0.5);
    switches->pfc_xoff_bytes = 1 + lh_prng_below(prng, switches->buffer_bytes);
    switches->pfc_xon_bytes = lh_prng_below(prng, switches->pfc_xoff_bytes + 1);
    /* One packet must fit in what alpha gives it of an empty buffer. */
    if (switches->alpha * (double)switches->buffer_bytes < 2.0 * frame)
        switches->alpha = 0;
}

static void draw_transport(struct lh_prng *prng, struct netsim_transport_config *transport)
{
    transport->payload_bytes = (uint32_t)PICK(prng, 4096, 4096, 1000, 256, 9000, 65000);
    transport->header_bytes = (uint32_t)PICK(prng, 78, 78, 0, 500);
    transport->ack_bytes = (uint32_t)PICK(prng, 64, 64, 64, 1, transport->payload_bytes, 0);
    transport->window_bytes = PICK(prng, 0, NETSIM_WINDOW_BDP, NETSIM_WINDOW_BDP, 1, 50000);
    transport->rto = 1 + 5 * lh_prng_double(prng);
    transport->reorder_packets = (uint32_t)PICK(prng, 0, 3, 3, 100);
    transport->rate_bps = PICK(prng, 0, 0, 0, 1000000000, 50000000000);
    transport->data_priority = (uint8_t)lh_prng_below(prng, 8);
    /* Below the data, acknowledgements can starve behind packets that are repeated for want of them. */
    unsigned data = transport->data_priority;
    transport->ack_priority = (uint8_t)(data + lh_prng_below(prng, 8 - data));
}

/* From a generator of its own, so that what else a seed draws stays the same. Fixed timeouts are longer than
 * any queue here lasts. */
static void draw_kind(uint64_t seed, struct netsim_config *config)
{
    struct netsim_transport_config *transport = &config->transport;
    struct lh_prng prng;
    lh_prng_seed(&prng, ~seed);
    transport->kind = (enum netsim_transport_kind)PICK(&prng, NETSIM_SR, NETSIM_SR, NETSIM_IRN, NETSIM_GBN);
    transport->rto_low_ps = PICK(&prng, 1, 2) * NETSIM_PS_PER_S;
    transport->rto_high_ps = 2 * NETSIM_PS_PER_S;
    transport->rto_low_packets = (uint32_t)PICK(&prng, 0, 3, 1000);
    /* Thousands of flows that go back together through a buffer of a few packets, with timers that are all
     * alike, may bring nobody on. */
    if (transport->kind == NETSIM_GBN && config->workload.kind == NETSIM_ALL_TO_ALL)
        transport->kind = NETSIM_SR;
    if (transport->kind == NETSIM_GBN)
        transport->window_bytes = PICK(&prng, NETSIM_WINDOW_BDP, 200000);
    transport->nack_ps = PICK(&prng, 0, 50 * NETSIM_PS_PER_US);
    transport->cnp_ps = PICK(&prng, 0, 0, 50 * NETSIM_PS_PER_US);
    if (transport->ack_bytes != 0 && coin(&prng, 0.5))
        transport->congestion.kind = NETSIM_CONGESTION_DCQCN;
    transport->dcqcn.increase_ps = PICK(&prng, 1, 55, 900) * NETSIM_PS_PER_US;
    transport->dcqcn.increase_bytes = PICK(&prng, 0, 1000, 100000);
    transport->dcqcn.clamp = coin(&prng, 0.5);
    transport->one_queue_pair = transport->ack_bytes != 0 &&
                                transport->congestion.kind == NETSIM_CONGESTION_NONE && coin(&prng, 0.5);
}

static void draw_workload(struct lh_prng *prng, struct netsim_config *config)
{
    struct netsim_workload_config *workload = &config->workload;
    workload->kind = (enum netsim_workload_kind)PICK(prng, NETSIM_PERMUTATION, NETSIM_PERMUTATION,
                                                     NETSIM_INCAST, NETSIM_ALL_TO_ALL);
    if (workload->kind == NETSIM_ALL_TO_ALL && config->topology.k > 4)
        workload->kind = NETSIM_PERMUTATION; /* so many flows would take too long */
    workload->bytes = 1 + lh_prng_below(prng, PICK(prng, 1, 5000, 100000, 300000));
    if (workload->bytes > 30 * config->transport.payload_bytes)
        workload->bytes = 30 * config->transport.payload_bytes + 1;
    workload->rounds = 1 + (uint32_t)lh_prng_below(prng, 2);
    workload->gap_ps = lh_prng_below(prng, 20 * NETSIM_PS_PER_US);
    workload->jitter_ps = coin(prng, 0.5) ? 0 : lh_prng_below(prng, 50 * NETSIM_PS_PER_US);
}

/* Credits in place of PFC, and ways of flow control on the long link; from a generator of its own, too. */
static void draw_control(uint64_t seed, struct netsim_config *config, uint32_t frame)
{
    struct netsim_long_config *longs = &config->longs;
    struct lh_prng prng;
    lh_prng_seed(&prng, seed ^ 0x5851F42D4C957F2Du);
    if (coin(&prng, 0.2)) {
        config->switches.pfc = false;
        config->switches.credit_bytes = (uint64_t)frame * PICK(&prng, 1, 3, 20, 300) + LH_CBFC_BLOCK_BYTES;
    } else if (coin(&prng, 0.3)) {
        config->switches.pfc_alpha = lh_prng_double(&prng);
    }
    if (!has_sites(&config->topology) || config->topology.long_delay_ps == 0 || coin(&prng, 0.3))
        return;
    longs->control = (enum netsim_long_control)PICK(
        &prng, NETSIM_LONG_NONE, NETSIM_LONG_PFC, NETSIM_LONG_BIFROST, NETSIM_LONG_CBFC, NETSIM_LONG_SWING);
    longs->slot_ps = PICK(&prng, 1, 5) * NETSIM_PS_PER_US;
    longs->leak_slots = (uint32_t)PICK(&prng, 1, 10);
    longs->port_bytes = coin(&prng, 0.5) ? 0 : config->switches.pfc_xoff_bytes + frame * PICK(&prng, 2, 20);
    longs->by_arrivals = coin(&prng, 0.5);
    longs->credits_12bit = coin(&prng, 0.5) && frame <= LH_CBFC_BLOCKS_12BIT * LH_CBFC_BLOCK_BYTES / 2;
    longs->relay_threshold = coin(&prng, 0.5);
    longs->even_grants = (seed & 1) != 0;
    config->topology.relays = longs->control == NETSIM_LONG_SWING;
    if (config->topology.relays) {
        config->switches.pfc = true;
        config->switches.credit_bytes = 0;
    }
}

static struct netsim_config draw(uint64_t seed)
{
    struct netsim_config config = netsim_world_config(NETSIM_TWO_HOSTS);
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    draw_topology(&prng, &config.topology);
    draw_faults(&prng, &config.topology.faults);
    draw_transport(&prng, &config.transport);
    uint32_t frame = config.transport.payload_bytes + config.transport.header_bytes;
    if (config.transport.ack_bytes > frame)
        config.transport.ack_bytes = frame;
    draw_switches(&prng, &config.switches, frame);
    draw_workload(&prng, &config);
    draw_kind(seed, &config);
    draw_control(seed, &config, frame);
    bool credits = config.switches.credit_bytes != 0 || config.longs.control == NETSIM_LONG_CBFC;
    if (credits && config.transport.ack_priority == config.transport.data_priority) {
        config.transport.data_priority %= 7;
        config.transport.ack_priority = (uint8_t)(config.transport.data_priority + 1);
    }
    config.packets_max = 1 << 18;
    assert_int_equal(netsim_config_check(&config), 0);
    return config;
}

static void tell(uint64_t seed, const struct netsim_world *world)
{
    const struct netsim_config *config = &world->config;
    printf("seed %llu: topology %d, %u hosts; workload %d, %llu bytes; transport %d, congestion %d, "
           "payload %u, "
           "ack %u, window %lld, rto %.2f; buffer %llu, queue %llu, pfc %d (%llu, %llu), spray %d; loss "
           "%g, jitter %llu ns; long %d, credits %llu\n",
           (unsigned long long)seed, config->topology.kind, world->graph.hosts, config->workload.kind,
           (unsigned long long)config->workload.bytes, config->transport.kind,
           config->transport.congestion.kind, config->transport.payload_bytes, config->transport.ack_bytes,
           (long long)config->transport.window_bytes, config->transport.rto,
           (unsigned long long)config->switches.buffer_bytes,
           (unsigned long long)config->switches.queue_bytes, config->switches.pfc,
           (unsigned long long)config->switches.pfc_xoff_bytes,
           (unsigned long long)config->switches.pfc_xon_bytes, config->switches.spray,
           config->topology.faults.loss, (unsigned long long)config->topology.faults.jitter_ns,
           (int)config->longs.control, (unsigned long long)config->switches.credit_bytes);
}

/* Returns the hash of the run. Datagrams may be lost; everything else must arrive in time. */
static uint64_t live(uint64_t seed, netsim_time step_ps)
{
    static struct netsim_world world;
    struct netsim_config config = draw(seed);
    netsim_world_open(&world, &config, NULL, 0, seed);
    if (netsim_control_check(&config, &world.graph) != 0)
        fail_msg("seed %llu: %s", (unsigned long long)seed, lh_last_error());
    netsim_world_watch(&world);
    if (loud)
        tell(seed, &world);
    int result = 0;
    while (result == 0 && world.net.network.now_ps < 100000 * NETSIM_PS_PER_S) {
        result = netsim_run(&world.net, world.net.network.now_ps + step_ps, UINT64_MAX);
        netsim_world_check(&world);
        step_ps += step_ps / 16;
    }
    if (result != 1) {
        tell(seed, &world);
        fail_msg("seed %llu: result %d, %llu of %llu flows are done", (unsigned long long)seed, result,
                 (unsigned long long)world.net.network.totals.flows_done,
                 (unsigned long long)world.net.network.totals.flows);
    }
    netsim_world_check_end(&world);
    if (config.transport.ack_bytes != 0)
        netsim_world_check_done(&world);
    uint64_t hash = world.seen.hash;
    netsim_world_close(&world);
    return hash;
}

static void random_lives(void **state)
{
    (void)state;
    printf("seeds %llu to %llu\n", (unsigned long long)first_seed,
           (unsigned long long)(first_seed + seeds - 1));
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        uint64_t hash = live(seed, seed % 2 == 0 ? 3 * NETSIM_PS_PER_US : NETSIM_PS_PER_MS);
        if (seed % 8 == 0)
            assert_true(live(seed, NETSIM_PS_PER_S) == hash);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_lives)};
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        setvbuf(stdout, NULL, _IONBF, 0);
        seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
        loud = true;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
