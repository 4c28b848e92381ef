/*
 * test_netsim_xp.c - XP as the transport of the simulator's hosts: messages end at their last packet, by
 * preemption or at their deadline.
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

typedef const char *const setting[2];

static int create(setting *settings, size_t count, struct lh_netsim **simulation)
{
    struct lh_netsim_config *config;
    assert_int_equal(lh_netsim_config_create(&config), 0);
    assert_int_equal(lh_netsim_config_set(config, "transport.kind", "xp"), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(lh_netsim_config_set(config, settings[i][0], settings[i][1]), 0);
    int result = lh_netsim_create(config, 11, simulation);
    lh_netsim_config_destroy(config);
    return result;
}

/* All flows end, each packet was sent once at most, and nothing was acknowledged. */
static struct lh_netsim *finish(setting *settings, size_t count, struct lh_netsim_totals *totals)
{
    struct lh_netsim *simulation = NULL;
    struct lh_netsim_flow flow;
    uint64_t delivered_bytes = 0;
    if (create(settings, count, &simulation) != 0 || lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX) != 1)
        fail_msg("%s", lh_last_error());
    lh_netsim_totals(simulation, totals);
    assert_int_equal(totals->flows_done, totals->flows);
    assert_int_equal(totals->repeated_packets, 0);
    assert_int_equal(totals->ack_packets, 0);
    for (uint64_t i = 0; i < totals->flows; i++) {
        assert_int_equal(lh_netsim_flow(simulation, i, &flow), 0);
        assert_true(flow.delivered_bytes <= flow.bytes);
        delivered_bytes += flow.delivered_bytes;
    }
    assert_int_equal(delivered_bytes, totals->delivered_bytes);
    return simulation;
}

static void test_without_loss(void **state)
{
    (void)state;
    static setting settings[] = {{"topology.kind", "fat-tree"}, {"workload.kind", "collective"}};
    struct lh_netsim_totals totals;
    struct lh_netsim *simulation = finish(settings, 2, &totals);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < totals.flows; i++) {
        struct lh_netsim_flow flow;
        assert_int_equal(lh_netsim_flow(simulation, i, &flow), 0);
        bytes += flow.bytes;
    }
    assert_int_equal(totals.delivered_bytes, bytes);
    assert_int_equal(totals.timeouts, 0);
    lh_netsim_destroy(simulation);
}

/* Ten messages of one host to another at once: each ends when the next begins to arrive, whatever was lost,
 * and the last one at its deadline if its last packet was. */
static void test_preemption(void **state)
{
    (void)state;
    static setting settings[] = {{"workload.kind", "incast"},   {"workload.senders", "1"},
                                 {"workload.rounds", "10"},     {"workload.bytes", "1MB"},
                                 {"topology.link", "loss=30%"}, {"transport.deadline", "1s"},
                                 {"workload.receiver", "1"}};
    struct lh_netsim_totals totals;
    struct lh_netsim *simulation = finish(settings, 7, &totals);
    uint64_t last_ps = 0;
    assert_true(totals.timeouts <= 1);
    assert_in_range(totals.delivered_bytes, 6000000, 8000000);
    for (uint64_t i = 0; i < 9; i++) {
        struct lh_netsim_flow flow;
        assert_int_equal(lh_netsim_flow(simulation, i, &flow), 0);
        assert_in_range(flow.received_ps, last_ps + 1, UINT64_C(10000000000)); /* 10 ms */
        last_ps = flow.received_ps;
    }
    lh_netsim_destroy(simulation);
}

/* Nothing arrives: each message ends exactly at its deadline, from the end of the one before. */
static void test_deadline(void **state)
{
    (void)state;
    static setting settings[] = {{"workload.kind", "incast"},    {"workload.senders", "1"},
                                 {"workload.rounds", "4"},       {"workload.bytes", "10MB"},
                                 {"topology.link", "loss=100%"}, {"transport.deadline", "100us"},
                                 {"workload.receiver", "1"}};
    struct lh_netsim_totals totals;
    struct lh_netsim *simulation = finish(settings, 7, &totals);
    assert_int_equal(totals.delivered_bytes, 0);
    assert_int_equal(totals.timeouts, 4);
    for (uint64_t i = 0; i < 4; i++) {
        struct lh_netsim_flow flow;
        assert_int_equal(lh_netsim_flow(simulation, i, &flow), 0);
        assert_int_equal(flow.received_ps, (i + 1) * 100000000);
        assert_true(flow.packets * 4096 < flow.bytes); /* its sender stopped */
    }
    lh_netsim_destroy(simulation);
}

/* Steps of a collective go on without what was lost. */
static void test_collective(void **state)
{
    (void)state;
    static setting settings[] = {{"topology.kind", "fat-tree"},  {"workload.kind", "collective"},
                                 {"workload.bytes", "8MB"},      {"workload.rounds", "3"},
                                 {"topology.link", "loss=1e-3"}, {"transport.deadline", "200us"}};
    struct lh_netsim_totals totals;
    struct lh_netsim *simulation = finish(settings, 6, &totals);
    double bytes = 3.0 * 30 * 8e6;
    assert_true(totals.lost_packets > 0);
    assert_true((double)totals.delivered_bytes < bytes && (double)totals.delivered_bytes > 0.95 * bytes);
    lh_netsim_destroy(simulation);
}

static void test_bad_input(void **state)
{
    (void)state;
    static setting congestion[] = {{"transport.congestion", "dcqcn"}};
    static setting hosts[] = {
        {"topology.kind", "leaf-spine"}, {"topology.leaves", "128"}, {"topology.hosts", "64"}};
    struct lh_netsim *simulation = NULL;
    assert_true(create(congestion, 1, &simulation) < 0);
    assert_non_null(strstr(lh_last_error(), "transport.rate"));
    assert_true(create(hosts, 3, &simulation) < 0);
    assert_non_null(strstr(lh_last_error(), "at most 4096"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_loss), cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_deadline),     cmocka_unit_test(test_collective),
        cmocka_unit_test(test_bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
