/*
 * test_netsim_collective.c - flows that wait for flows: collectives of several schedules, with and without
 * loss, by the simulator's transports and by the real protocol.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/netsim.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HOSTS  16u
#define ROUNDS 3u
#define BYTES  1000003u /* not a multiple of the hosts */

typedef const char *const setting[2];

static int create(setting *settings, size_t count, struct lh_netsim **simulation)
{
    static setting base[] = {{"topology.kind", "fat-tree"},
                             {"workload.kind", "collective"},
                             {"workload.bytes", "1000003"},
                             {"workload.rounds", "3"},
                             {"workload.compute", "5us"}};
    struct lh_netsim_config *config;
    assert_int_equal(lh_netsim_config_create(&config), 0);
    for (size_t i = 0; i < sizeof base / sizeof base[0]; i++)
        assert_int_equal(lh_netsim_config_set(config, base[i][0], base[i][1]), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(lh_netsim_config_set(config, settings[i][0], settings[i][1]), 0);
    int result = lh_netsim_create(config, 7, simulation);
    lh_netsim_config_destroy(config);
    return result;
}

static struct lh_netsim *finish(setting *settings, size_t count)
{
    struct lh_netsim *simulation = NULL;
    struct lh_netsim_totals totals;
    if (create(settings, count, &simulation) != 0 || lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX) != 1)
        fail_msg("%s", lh_last_error());
    lh_netsim_totals(simulation, &totals);
    assert_int_equal(totals.flows_done, totals.flows);
    assert_int_equal(totals.flows_started, totals.flows);
    return simulation;
}

static struct lh_netsim_flow flow_of(const struct lh_netsim *simulation, uint64_t number)
{
    struct lh_netsim_flow flow;
    assert_int_equal(lh_netsim_flow(simulation, number, &flow), 0);
    return flow;
}

/* In a ring each flow starts at the moment at which its sender has received what it carries, which came a
 * step before, or all of the steps before; and no flow of a round before all of the last one has come and the
 * time for computing has passed. */
static void check_ring(const struct lh_netsim *simulation, uint32_t steps, bool by_steps)
{
    uint64_t bytes = 0, begun_ps[ROUNDS + 1][HOSTS] = {{0}};
    assert_int_equal(lh_netsim_flows_count(simulation), ROUNDS * steps * HOSTS);
    for (uint32_t i = 0; i < ROUNDS * steps * HOSTS; i++) {
        struct lh_netsim_flow flow = flow_of(simulation, i);
        bytes += flow.bytes;
        assert_int_equal(flow.source, i % HOSTS);
        assert_int_equal(flow.operation, i / (steps * HOSTS));
        assert_int_equal(flow.destination, (i + 1) % HOSTS);
        uint64_t *begun = &begun_ps[flow.operation][flow.source], start_ps = *begun;
        uint64_t *next_ps = &begun_ps[flow.operation + 1][flow.destination];
        *next_ps = flow.received_ps + 5000000 > *next_ps ? flow.received_ps + 5000000 : *next_ps;
        if (i / HOSTS % steps > 0) {
            uint64_t before = i / HOSTS * HOSTS - HOSTS + (i + HOSTS - 1) % HOSTS;
            assert_int_equal(flow_of(simulation, before).destination, flow.source);
            if (flow_of(simulation, before).received_ps > start_ps)
                start_ps = flow_of(simulation, before).received_ps;
            if (by_steps)
                *begun = start_ps;
        }
        assert_int_equal(flow.start_ps, start_ps);
    }
    assert_int_equal(bytes, (uint64_t)BYTES * ROUNDS * steps);
}

static void test_rings(void **state)
{
    (void)state;
    static setting settings[] = {
        {"workload.collective", "allgather"},
        {"transport.kind", "gbn"},
        {"topology.link", "loss=1e-3"},
        {"workload.wait", "steps"},
    };
    struct lh_netsim *simulation = finish(NULL, 0);
    check_ring(simulation, 2 * (HOSTS - 1), false);
    lh_netsim_destroy(simulation);
    for (size_t by_steps = 0; by_steps < 2; by_steps++) {
        simulation = finish(settings, 3 + by_steps);
        check_ring(simulation, HOSTS - 1, by_steps == 1);
        lh_netsim_destroy(simulation);
    }
}

/* What a sender does in a step it does not do before it has received all of the step before. */
static void test_halving_doubling(void **state)
{
    (void)state;
    static setting settings[] = {{"workload.schedule", "halving-doubling"}};
    struct lh_netsim *simulation = finish(settings, 1);
    uint64_t last_ps[HOSTS] = {0}, flows = lh_netsim_flows_count(simulation);
    assert_int_equal(flows, ROUNDS * 8 * HOSTS); /* 2 log2(16) steps */
    for (uint64_t step = 0; step < flows / HOSTS; step++) {
        uint64_t received_ps[HOSTS] = {0};
        for (uint64_t i = 0; i < HOSTS; i++) {
            struct lh_netsim_flow flow = flow_of(simulation, step * HOSTS + i);
            assert_true(flow.start_ps >= last_ps[flow.source]);
            received_ps[flow.destination] = flow.received_ps;
        }
        memcpy(last_ps, received_ps, sizeof last_ps);
    }
    lh_netsim_destroy(simulation);
}

/* The real protocol waits for the same. */
static void test_protocol(void **state)
{
    (void)state;
    static setting settings[] = {{"transport.kind", "longhaul"},
                                 {"transport.schemes", "sr-nack ec:mds,k=32,m=8"},
                                 {"workload.collective", "allgather"},
                                 {"topology.link", "loss=1e-3"}};
    struct lh_netsim *simulation = finish(settings, 4);
    uint64_t flows = lh_netsim_flows_count(simulation);
    assert_int_equal(flows, ROUNDS * HOSTS * (HOSTS - 1));
    for (uint64_t i = HOSTS; i < flows; i++)
        for (uint64_t before = i / HOSTS * HOSTS - HOSTS; before < i / HOSTS * HOSTS; before++)
            if (flow_of(simulation, before).destination == flow_of(simulation, i).source)
                assert_true(flow_of(simulation, i).start_ps >= flow_of(simulation, before).received_ps);
    lh_netsim_destroy(simulation);
}

/* Below one switch blocks take as long as the schedule has steps, and a packet or two for each host that
 * they pass. Who has nothing to send yet in a step of the pipeline sends ahead, which delays others' blocks
 * at their receivers: some blocks more. */
static void check_ideal(const char *schedule, const char *block, uint32_t blocks, uint32_t steps,
                        uint32_t more)
{
    setting settings[] = {{"topology.kind", "leaf-spine"},
                          {"topology.leaves", "1"},
                          {"topology.hosts", "16"},
                          {"topology.delay", "10ns"},
                          {"workload.collective", "broadcast"},
                          {"workload.schedule", schedule},
                          {"workload.bytes", "8MiB"},
                          {"workload.block", block},
                          {"workload.rounds", "1"},
                          {"transport.window", "1MiB"},
                          {"transport.payload", "4096"}};
    struct lh_netsim *simulation = finish(settings, sizeof settings / sizeof *settings);
    double packets = 2048.0 / blocks, packet_ps = 4174 * 8e12 / 100e9, end_ps = 0;
    assert_int_equal(lh_netsim_flows_count(simulation), blocks * (HOSTS - 1));
    for (uint64_t i = 0; i < blocks * (HOSTS - 1); i++)
        if ((double)flow_of(simulation, i).received_ps > end_ps)
            end_ps = (double)flow_of(simulation, i).received_ps;
    double ideal_ps = steps * packets * packet_ps, hops_ps = 2 * HOSTS * (packet_ps + 20000);
    print_message("%s %s: %.1f us, %u steps are %.1f\n", schedule, block, end_ps / 1e6, steps,
                  ideal_ps / 1e6);
    ideal_ps *= (double)(steps + more) / steps;
    assert_true(end_ps >= steps * packets * packet_ps && end_ps <= 1.02 * ideal_ps + hops_ps);
    lh_netsim_destroy(simulation);
}

static void test_ideal_times(void **state)
{
    (void)state;
    check_ideal("binomial-pipeline", "256KiB", 32, 4 + 32 - 1, 3);
    check_ideal("binomial-pipeline", "64KiB", 128, 4 + 128 - 1, 3);
    check_ideal("chain", "256KiB", 32, HOSTS + 32 - 2, 0);
    check_ideal("sequential", "256KiB", 32, (HOSTS - 1) * 32, 0);
}

/* Members are connected before they begin, and post receives ahead: no block waits for a clear-to-send, which
 * takes 10 ms here, but for those of a scheme with a deadline. */
static void test_receives_ahead(void **state)
{
    (void)state;
    for (int is_bounded = 0; is_bounded < 2; is_bounded++) {
        setting settings[] = {
            {"topology.kind", "dumbbell"},
            {"topology.hosts", "1"},
            {"topology.core_delay", "10ms"},
            {"transport.kind", "longhaul"},
            {"transport.schemes", is_bounded ? "bounded:deadline=100ms" : "sr-nack"},
            {"transport.window", "64MiB"},
            {"workload.collective", "broadcast"},
            {"workload.bytes", "50MiB"}, /* 200 blocks, of which 64 are posted at a time */
            {"workload.rounds", "1"}};
        struct lh_netsim *simulation = finish(settings, sizeof settings / sizeof *settings);
        assert_int_equal(lh_netsim_flows_count(simulation), 200);
        struct lh_netsim_flow first = flow_of(simulation, 0);
        assert_true(first.start_ps >= 40000000000); /* round trips in which connections are opened */
        double took_ms = (double)(first.received_ps - first.start_ps) / 1e9;
        if (is_bounded)
            assert_true(took_ms > 20);
        else
            assert_true(took_ms > 10 && took_ms < 10.5);
        lh_netsim_destroy(simulation);
    }
}

/* A flow that fails ends, too: the run does not wait for what would have followed. */
static void test_failures_end(void **state)
{
    (void)state;
    static setting settings[] = {{"topology.link", "loss=0.9"}, {"transport.retries", "1"}};
    struct lh_netsim *simulation = NULL;
    struct lh_netsim_totals totals;
    assert_int_equal(create(settings, 2, &simulation), 0);
    assert_int_equal(lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX), 1);
    lh_netsim_totals(simulation, &totals);
    assert_true(totals.flows_failed > 0);
    assert_int_equal(totals.flows_done + totals.flows_failed, totals.flows);
    lh_netsim_destroy(simulation);
}

static void test_bad_input(void **state)
{
    (void)state;
    static const struct {
        setting settings[2];
        const char *message;
    } cases[] = {
        {{{"workload.collective", "alltoal"}, {"workload.rounds", "1"}}, "alltoall"},
        {{{"workload.schedule", "tree"}, {"workload.rounds", "1"}}, "halving-doubling"},
        {{{"workload.members", "17"}, {"workload.rounds", "1"}}, "2 to 16"},
        {{{"workload.bytes", "15"}, {"workload.rounds", "1"}}, "raise it"},
        {{{"workload.block", "1B"}, {"workload.bytes", "1GiB"}}, "raise it"},
        {{{"workload.rounds", "16777216"}, {"workload.members", "16"}}, "at most"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lh_netsim *simulation = NULL;
        assert_true(create(cases[i].settings, 2, &simulation) < 0);
        assert_non_null(strstr(lh_last_error(), cases[i].message));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rings),          cmocka_unit_test(test_halving_doubling),
        cmocka_unit_test(test_protocol),       cmocka_unit_test(test_ideal_times),
        cmocka_unit_test(test_receives_ahead), cmocka_unit_test(test_failures_end),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
