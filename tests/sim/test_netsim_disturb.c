/*
 * test_netsim_disturb.c - hosts that pause, bursts of other traffic, and cables that are down for a moment.
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

#define COUNT(settings) (sizeof(settings) / sizeof(settings)[0])

static int create(setting *settings, size_t count, struct lh_netsim **simulation)
{
    struct lh_netsim_config *config;
    assert_int_equal(lh_netsim_config_create(&config), 0);
    for (size_t i = 0; i < count; i++)
        if (lh_netsim_config_set(config, settings[i][0], settings[i][1]) != 0)
            fail_msg("%s", lh_last_error());
    int result = lh_netsim_create(config, 3, simulation);
    lh_netsim_config_destroy(config);
    return result;
}

/* All flows end. */
static struct lh_netsim *finish(setting *settings, size_t count, struct lh_netsim_totals *totals)
{
    struct lh_netsim *simulation = NULL;
    if (create(settings, count, &simulation) != 0 || lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX) != 1)
        fail_msg("%s", lh_last_error());
    lh_netsim_totals(simulation, totals);
    assert_int_equal(totals->flows_done, totals->flows);
    return simulation;
}

static struct lh_netsim_flow flow_of(const struct lh_netsim *simulation, uint64_t number)
{
    struct lh_netsim_flow flow;
    assert_int_equal(lh_netsim_flow(simulation, number, &flow), 0);
    return flow;
}

static uint64_t took_ps(const struct lh_netsim *simulation, uint64_t number)
{
    struct lh_netsim_flow flow = flow_of(simulation, number);
    return flow.received_ps - flow.start_ps;
}

/* Who pauses for 10 us of each 100 needs a ninth more time; nothing is lost. */
static void test_pauses(void **state)
{
    (void)state;
    static setting settings[] = {{"transport.kind", "xp"},        {"transport.deadline", "1s"},
                                 {"workload.kind", "incast"},     {"workload.bytes", "200MB"},
                                 {"disturb.stragglers", "1"},     {"disturb.pause", "10us"},
                                 {"disturb.pause_every", "90us"}, {"workload.receiver", "1"}};
    struct lh_netsim_totals totals;
    struct lh_netsim *simulation = finish(settings, COUNT(settings), &totals);
    double ratio = (double)took_ps(simulation, 0) / (double)flow_of(simulation, 0).ideal_ps;
    assert_int_equal(totals.delivered_bytes, 200000000);
    assert_true(ratio > 1.07 && ratio < 1.15);
    lh_netsim_destroy(simulation);
}

/* One of 16 hosts is a straggler: its message alone is late. */
static void test_few_pause(void **state)
{
    (void)state;
    static setting settings[] = {{"topology.kind", "leaf-spine"},  {"transport.kind", "xp"},
                                 {"transport.deadline", "1s"},     {"workload.bytes", "50MB"},
                                 {"disturb.stragglers", "1%"},     {"disturb.pause", "10ms"},
                                 {"disturb.pause_every", "100us"}, {"topology.spines", "8"},
                                 {"switch.routing", "spray"},      {"topology.core_rate", "400Gbit"}};
    struct lh_netsim_totals totals;
    struct lh_netsim *simulation = finish(settings, COUNT(settings), &totals);
    unsigned late = 0;
    for (uint64_t i = 0; i < totals.flows; i++)
        late += took_ps(simulation, i) > UINT64_C(9000000000); /* 9 ms; it takes 4 */
    assert_int_equal(totals.flows, 16);
    assert_int_equal(late, 1);
    lh_netsim_destroy(simulation);
}

static uint64_t sent_bytes(const struct lh_netsim *simulation)
{
    struct lh_netsim_link link;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < lh_netsim_hosts_count(simulation); i++) {
        assert_int_equal(lh_netsim_link(simulation, i, &link), 0);
        bytes += link.sent_payload_bytes;
    }
    return bytes;
}

/* Bursts fill a short queue: packets of flows are dropped, and retransmitted; those of bursts count for no
 * flow. */
static void test_bursts(void **state)
{
    (void)state;
    static setting settings[] = {{"topology.kind", "leaf-spine"}, {"workload.bytes", "5MB"},
                                 {"switch.queue", "200kB"},       {"topology.core_rate", "1600Gbit"},
                                 {"disturb.burst", "1MB"},        {"disturb.burst_every", "20us"}};
    struct lh_netsim_totals totals, quiet;
    struct lh_netsim *simulation = finish(settings, COUNT(settings) - 2, &quiet);
    uint64_t before = sent_bytes(simulation);
    lh_netsim_destroy(simulation);
    simulation = finish(settings, COUNT(settings), &totals);
    assert_int_equal(totals.delivered_bytes, 16 * 5000000);
    assert_int_equal(quiet.dropped_packets, 0);
    assert_true(totals.dropped_packets > 0 && totals.repeated_packets > 0);
    assert_true(totals.now_ps > quiet.now_ps);
    assert_true(sent_bytes(simulation) > before + 10000000);
    lh_netsim_destroy(simulation);
}

/* The only path is down for half of the time: what is sent then is lost. */
static void test_flaps(void **state)
{
    (void)state;
    static setting settings[] = {{"topology.kind", "dumbbell"},   {"topology.hosts", "1"},
                                 {"workload.kind", "incast"},     {"workload.bytes", "200MB"},
                                 {"transport.kind", "xp"},        {"transport.deadline", "1s"},
                                 {"workload.receiver", "1"},      {"workload.rounds", "2"},
                                 {"disturb.flap_every", "100us"}, {"disturb.flap", "69.3us"}};
    struct lh_netsim_totals totals;
    struct lh_netsim *simulation = finish(settings, COUNT(settings), &totals);
    assert_in_range(totals.delivered_bytes, 180000000, 220000000); /* of 400 MB */
    assert_in_range(totals.lost_packets, 180000000 / 4096, 220000000 / 4096);
    lh_netsim_destroy(simulation);
}

/* The real protocol, through all of it at once, twice the same. */
static void test_protocol(void **state)
{
    (void)state;
    static setting settings[] = {
        {"topology.kind", "fat-tree"},    {"transport.kind", "longhaul"},  {"transport.schemes", "sr-nack"},
        {"workload.bytes", "1MB"},        {"disturb.stragglers", "20%"},   {"disturb.pause", "50us"},
        {"disturb.pause_every", "200us"}, {"disturb.burst", "500kB"},      {"disturb.burst_every", "10us"},
        {"disturb.flap", "20us"},         {"disturb.flap_every", "100us"}, {"switch.queue", "100kB"}};
    struct lh_netsim_totals totals, again;
    lh_netsim_destroy(finish(settings, COUNT(settings), &totals));
    lh_netsim_destroy(finish(settings, COUNT(settings), &again));
    assert_int_equal(totals.delivered_bytes, 16000000);
    assert_true(totals.lost_packets > 0 && totals.dropped_packets > 0);
    assert_true(again.now_ps == totals.now_ps && again.events == totals.events);
}

/* Over a long cable some burst is always under way: the run ends with its flows all the same. */
static void test_bursts_end(void **state)
{
    (void)state;
    static setting settings[] = {
        {"topology.delay", "12.5ms"}, {"disturb.burst", "1MB"}, {"disturb.burst_every", "1ms"}};
    struct lh_netsim *simulation = NULL;
    assert_int_equal(create(settings, COUNT(settings), &simulation), 0);
    assert_int_equal(lh_netsim_run(simulation, 1000000000000, UINT64_MAX), 1); /* within a second */
    lh_netsim_destroy(simulation);
}

static void test_bad_input(void **state)
{
    (void)state;
    static setting settings[] = {{"transport.ack", "0"}, {"disturb.burst", "1MB"}};
    struct lh_netsim *simulation = NULL;
    assert_true(create(settings, 2, &simulation) < 0);
    assert_non_null(strstr(lh_last_error(), "transport.ack"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses),     cmocka_unit_test(test_few_pause),
        cmocka_unit_test(test_bursts),     cmocka_unit_test(test_flaps),
        cmocka_unit_test(test_protocol),   cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_bursts_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
