/*
 * The simulator beside results that are known: waiting at a link with random arrivals (M/D/1), fair shares of
 * a bottleneck, chance of flows to meet on a path, a lone flow.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "netsim/engine/switch.h"
#include "support/netsim_world.h"

/* ---- M/D/1: Poisson arrivals, one length ---- */

#define SERVICE_PS 80000 /* 1,000 bytes at 100 Gbit/s */

/* Takes what has arrived; its time in the queue is what is left without the wire. The cookie is the time of
 * sending. */
static double take_waits(struct netsim_world *world, uint64_t *count)
{
    struct netsim_raw raw;
    double sum_ps = 0;
    while (netsim_raw_take(&world->net, &raw)) {
        sum_ps += (double)(raw.arrive_ps - raw.cookie - SERVICE_PS - NETSIM_PS_PER_US);
        (*count)++;
    }
    return sum_ps;
}

static double mean_wait_ps(double load, uint32_t packets, uint64_t seed)
{
    static struct netsim_world world;
    struct netsim_config config = netsim_world_config(NETSIM_TWO_HOSTS);
    struct lh_prng prng;
    double at_ps = 0;
    double sum_ps = 0;
    uint64_t count = 0;
    lh_prng_seed(&prng, seed);
    netsim_world_open(&world, &config, (struct netsim_flow_request[]){{0}}, 0, 1);
    world.net.runs_on = true;
    for (uint32_t i = 0; i < packets; i++) {
        at_ps -= log(1 - lh_prng_double(&prng)) * SERVICE_PS / load;
        netsim_run(&world.net, (netsim_time)at_ps, UINT64_MAX);
        sum_ps += take_waits(&world, &count);
        struct netsim_raw raw = {
            .cookie = world.net.network.now_ps, .source = 0, .destination = 1, .wire_bytes = 1000};
        assert_true(netsim_raw_send(&world.net, &raw, 0, 3));
    }
    netsim_world_finish(&world);
    sum_ps += take_waits(&world, &count);
    assert_true(count == packets);
    netsim_world_check_end(&world);
    netsim_world_close(&world);
    return sum_ps / packets;
}

/* Pollaczek and Khinchine: load x service / (2 (1 - load)). */
static void random_arrivals_wait_as_md1_says(void **state)
{
    (void)state;
    static const struct {
        double load;
        uint32_t packets;
    } cases[] = {{0.3, 1000000}, {0.5, 1000000}, {0.7, 2000000}};
    for (size_t i = 0; i < 3; i++) {
        double load = cases[i].load;
        double expected_ps = load * SERVICE_PS / (2 * (1 - load));
        double wait_ps = mean_wait_ps(load, cases[i].packets, i + 1);
        if (fabs(wait_ps / expected_ps - 1) > 0.01)
            fail_msg("load %.1f: %.1f ps, not %.1f", load, wait_ps, expected_ps);
    }
}

/* ---- fair shares of a dumbbell's middle ---- */

#define SHARES     4u
#define SHARE_SIZE (UINT64_C(1000) * 4096)

static void check_shares(const struct netsim_config *config, uint32_t apart_packets)
{
    static struct netsim_world world;
    struct netsim_flow_request flows[SHARES];
    double sum = 0;
    double squares = 0;
    netsim_time first_ps = NETSIM_NEVER;
    netsim_time last_ps = 0;
    for (uint32_t i = 0; i < SHARES; i++)
        flows[i] = (struct netsim_flow_request){SHARE_SIZE, 0, i, SHARES + i};
    netsim_world_open(&world, config, flows, SHARES, 1);
    netsim_world_finish(&world);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    assert_true(world.net.network.totals.dropped_packets == 0 &&
                world.net.network.totals.repeated_packets == 0);
    for (uint32_t i = 0; i < SHARES; i++) {
        netsim_time done_ps = world.net.transport.flows[i].done_ps;
        double rate = (double)SHARE_SIZE / (double)done_ps;
        sum += rate;
        squares += rate * rate;
        first_ps = done_ps < first_ps ? done_ps : first_ps;
        last_ps = done_ps > last_ps ? done_ps : last_ps;
    }
    const netsim_time packet_ps = 4174 * 80;
    netsim_time busy_ps = SHARES * 1000 * packet_ps;
    assert_true(sum * sum / (SHARES * squares) > 0.999); /* Jain's index */
    assert_true(last_ps - first_ps < apart_packets * packet_ps);
    assert_true(last_ps >= busy_ps && last_ps < busy_ps + 6 * NETSIM_PS_PER_US + 8 * packet_ps);
    netsim_world_close(&world);
}

static void flows_share_a_bottleneck_fairly(void **state)
{
    (void)state;
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.topology.hosts = SHARES;
    config.transport.rto = 1e6;
    config.switches.buffer_bytes = 64 << 20;
    check_shares(&config, SHARES);
    config.transport.window_bytes = NETSIM_WINDOW_BDP;
    check_shares(&config, SHARES);
    /* With pauses a host sends what has room between two of them in one go: about a hundred packets for four
     * hosts. */
    config.transport.window_bytes = 0;
    config.switches.pfc = true;
    check_shares(&config, 100);
}

/* ---- which of equal ways ---- */

#define WAYS      8u
#define ENTROPIES 1000000u

struct ways {
    struct netsim_world world;
    uint32_t tiers[WAYS]
                  [WAYS]; /* how often: way out of the edge switch, then out of the aggregation switch */
    uint32_t collisions;  /* of one draw with the draw before, at the edge */
    uint32_t path_collisions; /* at both */
};

/* Of host 0 of a fat tree of 16-port switches to a host of another pod. */
static void draw_ways(struct ways *ways, bool counted)
{
    struct netsim_network *net = &ways->world.net.network;
    struct lh_prng prng;
    uint32_t last[2] = {WAYS, WAYS};
    lh_prng_seed(&prng, 77);
    for (uint32_t i = 0; i < ENTROPIES; i++) {
        uint32_t entropy = counted ? i : (uint32_t)lh_prng_next(&prng);
        uint32_t edge = net->ports[netsim_host_port(0)].far;
        const struct netsim_switch *below = &net->switches[edge - net->hosts_count];
        uint32_t up = netsim_switch_flow_port(below, net->hosts_count - 1, entropy);
        const struct netsim_switch *above = &net->switches[net->ports[up].far - net->hosts_count];
        uint32_t upper = netsim_switch_flow_port(above, net->hosts_count - 1, entropy);
        uint32_t way[2] = {up - below->first_port - below->route.up_port,
                           upper - above->first_port - above->route.up_port};
        assert_true(way[0] < WAYS && way[1] < WAYS);
        ways->tiers[way[0]][way[1]]++;
        ways->collisions += way[0] == last[0];
        ways->path_collisions += way[0] == last[0] && way[1] == last[1];
        memcpy(last, way, sizeof last);
    }
}

static double chi_square(const uint32_t *counts, uint32_t cells)
{
    double sum = 0;
    double expected = (double)ENTROPIES / cells;
    for (uint32_t i = 0; i < cells; i++)
        sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    return sum;
}

static void equal_ways_are_equally_likely(void **state)
{
    (void)state;
    static struct ways ways;
    struct netsim_config config = netsim_world_config(NETSIM_FAT_TREE);
    config.topology.k = 2 * WAYS;
    config.packets_max = 16;
    for (unsigned counted = 0; counted < 2; counted++) {
        memset(&ways, 0, sizeof ways);
        netsim_world_open(&ways.world, &config, (struct netsim_flow_request[]){{0}}, 0, 5);
        draw_ways(&ways, counted);
        uint32_t edge[WAYS] = {0};
        for (uint32_t i = 0; i < WAYS * WAYS; i++)
            edge[i / WAYS] += ways.tiers[i / WAYS][i % WAYS];
        /* 1 in 1,000 is larger: 24.3 with 7 degrees of freedom, 103.4 with 63. If the second choice followed
         * the first, the second sum would be millions. */
        assert_true(chi_square(edge, WAYS) < 24.3);
        assert_true(chi_square(&ways.tiers[0][0], WAYS * WAYS) < 103.4);
        if (!counted) { /* the hash of neighbours is no independent draw */
            assert_true(fabs((double)ways.collisions / ENTROPIES * WAYS - 1) < 0.01);
            assert_true(fabs((double)ways.path_collisions / ENTROPIES * WAYS * WAYS - 1) < 0.04);
        }
        netsim_world_close(&ways.world);
    }
}

/* ---- a lone flow, as users see it ---- */

static void set(struct lh_netsim_config *config, const char *key, const char *value)
{
    if (lh_netsim_config_set(config, key, value) != 0)
        fail_msg("%s", lh_last_error());
}

static struct lh_netsim_flow lone_flow(const char *kind, const char *bytes)
{
    struct lh_netsim_config *config = NULL;
    struct lh_netsim *simulation = NULL;
    struct lh_netsim_flow flow;
    assert_int_equal(lh_netsim_config_create(&config), 0);
    set(config, "topology.kind", kind);
    set(config, "workload.kind", "incast");
    set(config, "workload.senders", "1");
    set(config, "workload.bytes", bytes);
    assert_int_equal(lh_netsim_create(config, 3, &simulation), 0);
    assert_int_equal(lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX), 1);
    assert_int_equal(lh_netsim_flow(simulation, 0, &flow), 0);
    lh_netsim_destroy(simulation);
    lh_netsim_config_destroy(config);
    return flow;
}

static void a_lone_flow_takes_its_ideal_time(void **state)
{
    (void)state;
    static const char *const kinds[] = {"two-hosts", "dumbbell",        "leaf-spine",
                                        "fat-tree",  "two-datacenters", "datacenters"};
    static const char *const sizes[] = {"1", "4096", "4097", "1MB", "20MiB"};
    for (size_t i = 0; i < 30; i++) {
        struct lh_netsim_flow flow = lone_flow(kinds[i / 5], sizes[i % 5]);
        if (flow.done_ps - flow.start_ps != flow.ideal_ps)
            fail_msg("%s, %s: %llu ps, ideal %llu", kinds[i / 5], sizes[i % 5],
                     (unsigned long long)(flow.done_ps - flow.start_ps), (unsigned long long)flow.ideal_ps);
    }
    /* 245 packets, the last of 576 bytes; 78 of headers each; there, and 64 bytes back. */
    struct lh_netsim_flow flow = lone_flow("two-hosts", "1MB");
    assert_true(flow.ideal_ps == (1000000 + 245 * 78 + 64) * 80 + 2 * NETSIM_PS_PER_US);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_arrivals_wait_as_md1_says),
        cmocka_unit_test(flows_share_a_bottleneck_fairly),
        cmocka_unit_test(equal_ways_are_equally_likely),
        cmocka_unit_test(a_lone_flow_takes_its_ideal_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
