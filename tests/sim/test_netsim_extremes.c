/*
 * Configurations at the limits: flows whose network is dead, paths of many links, buffers of many GiB, links
 * on which much is reordered. Each run ends, and says what became of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/netsim.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define END_PS     (UINT64_MAX / 2)
#define EVENTS_MAX 3000000u /* of any run here */

struct setting {
    const char *key;
    const char *value;
};

/* Made from settings up to the first without a key, and run to its end. */
static struct lh_netsim *run(const struct setting *settings)
{
    struct lh_netsim_config *config = NULL;
    struct lh_netsim *simulation = NULL;
    assert_int_equal(lh_netsim_config_create(&config), 0);
    for (; settings->key != NULL; settings++)
        if (lh_netsim_config_set(config, settings->key, settings->value) != 0)
            fail_msg("%s", lh_last_error());
    if (lh_netsim_create(config, 1, &simulation) != 0)
        fail_msg("%s", lh_last_error());
    lh_netsim_config_destroy(config);
    assert_int_equal(lh_netsim_run(simulation, UINT64_MAX, EVENTS_MAX), 1);
    return simulation;
}

static struct lh_netsim_totals totals_of(const struct lh_netsim *simulation)
{
    struct lh_netsim_totals totals;
    lh_netsim_totals(simulation, &totals);
    return totals;
}

static struct lh_netsim_flow flow_of(const struct lh_netsim *simulation, uint64_t number)
{
    struct lh_netsim_flow flow;
    assert_int_equal(lh_netsim_flow(simulation, number, &flow), 0);
    return flow;
}

#define ONE_FLOW                                                                                           \
    {"workload.kind", "incast"},                                                                           \
    {                                                                                                      \
        "workload.senders", "1"                                                                            \
    }

static void a_dead_link_fails_its_flow(void **state)
{
    (void)state;
    static const char *const delays[] = {"0", "1us", "1s", "3600s"};
    for (size_t i = 0; i < 4; i++) {
        struct lh_netsim *simulation = run((struct setting[]){ONE_FLOW,
                                                              {"topology.kind", "two-hosts"},
                                                              {"topology.link", "loss=1"},
                                                              {"topology.delay", delays[i]},
                                                              {NULL, NULL}});
        struct lh_netsim_totals totals = totals_of(simulation);
        struct lh_netsim_flow flow = flow_of(simulation, 0);
        assert_true(totals.flows_failed == 1 && totals.flows_done == 0 && flow.failed);
        assert_true(totals.timeouts == 8 && totals.packets_alive == 0 && totals.now_ps < END_PS);
        lh_netsim_destroy(simulation);
    }
}

/* Who never gives up repeats until the end of time, ever more slowly. */
static void without_a_limit_time_ends(void **state)
{
    (void)state;
    static const char *const delays[] = {"1us", "3600s"};
    for (size_t i = 0; i < 2; i++) {
        struct lh_netsim *simulation = run((struct setting[]){ONE_FLOW,
                                                              {"topology.kind", "two-hosts"},
                                                              {"topology.link", "loss=1"},
                                                              {"topology.delay", delays[i]},
                                                              {"transport.retries", "none"},
                                                              {"transport.rto", "1000000"},
                                                              {NULL, NULL}});
        struct lh_netsim_totals totals = totals_of(simulation);
        assert_true(totals.flows_failed == 0 && totals.flows_done == 0 && !flow_of(simulation, 0).failed);
        assert_true(totals.timeouts > 2 && totals.now_ps > END_PS / 4 && totals.now_ps < END_PS);
        assert_int_equal(lh_netsim_run(simulation, UINT64_MAX, EVENTS_MAX), 1); /* asked again */
        lh_netsim_destroy(simulation);
    }
}

/* Every switch of a ring waits for the next one. */
static void a_deadlock_ends(void **state)
{
    (void)state;
    static const char ring[] =
        "host a\nhost b\nhost c\nhost d\nhost e\nswitch s\nswitch t\nswitch u\nswitch v\nswitch w\n"
        "link a s\nlink b t\nlink c u\nlink d v\nlink e w\n"
        "link s t\nlink t u\nlink u v\nlink v w\nlink w s\n";
    static const char flows[] = "0 2 20MB 0\n1 3 20MB 0\n2 4 20MB 0\n3 0 20MB 0\n4 1 20MB 0\n4 0 20MB 0\n";
    struct lh_netsim *simulation = run((struct setting[]){{"topology.kind", "file"},
                                                          {"topology.file", ring},
                                                          {"workload.kind", "flows"},
                                                          {"workload.flows", flows},
                                                          {"switch.pfc", "on"},
                                                          {"switch.buffer", "1MB"},
                                                          {"switch.xoff", "20kB"},
                                                          {"switch.xon", "10kB"},
                                                          {"transport.window", "none"},
                                                          {NULL, NULL}});
    struct lh_netsim_totals totals = totals_of(simulation);
    assert_true(totals.flows_done < totals.flows && totals.packets_alive > 0);
    assert_true(totals.dropped_packets == 0 && totals.now_ps < END_PS);
    lh_netsim_destroy(simulation);
}

/* Packets wait their turn at their own host; nothing is lost, and nobody's timer says so. */
static void a_busy_host_is_no_timeout(void **state)
{
    (void)state;
    struct lh_netsim *simulation = run((struct setting[]){{"topology.kind", "leaf-spine"},
                                                          {"workload.kind", "all-to-all"},
                                                          {"workload.bytes", "4000"},
                                                          {"workload.rounds", "50"},
                                                          {NULL, NULL}});
    struct lh_netsim_totals totals = totals_of(simulation);
    assert_true(totals.flows_done == totals.flows && totals.flows > 5000);
    assert_true(totals.timeouts == 0 && totals.repeated_packets == 0);
    lh_netsim_destroy(simulation);

    simulation = run((struct setting[]){ONE_FLOW,
                                        {"topology.kind", "two-hosts"},
                                        {"transport.rate", "1Mbit"},
                                        {"workload.bytes", "200kB"},
                                        {NULL, NULL}});
    totals = totals_of(simulation);
    assert_true(totals.flows_done == 1 && totals.timeouts == 0 && totals.repeated_packets == 0);
    lh_netsim_destroy(simulation);
}

static void a_path_of_many_links(void **state)
{
    (void)state;
    enum { SWITCHES = 80 };
    char text[4096] = "host a\nhost b\n";
    size_t used = strlen(text);
    for (int s = 0; s < SWITCHES; s++)
        used += (size_t)snprintf(text + used, sizeof text - used, "switch s%d\n", s);
    for (int s = 1; s < SWITCHES; s++)
        used += (size_t)snprintf(text + used, sizeof text - used, "link s%d s%d\n", s - 1, s);
    used += (size_t)snprintf(text + used, sizeof text - used, "link a s0\nlink b s%d\n", SWITCHES - 1);
    assert_true(used < sizeof text);
    struct lh_netsim *simulation = run((struct setting[]){ONE_FLOW,
                                                          {"topology.kind", "file"},
                                                          {"topology.file", text},
                                                          {"workload.bytes", "1"},
                                                          {NULL, NULL}});
    struct lh_netsim_flow flow = flow_of(simulation, 0);
    /* 81 links of 1 us, 79 bytes there and 64 back, at 80 ps each. */
    const uint64_t expected_ps = 2 * 81 * UINT64_C(1000000) + 81 * (79 + 64) * 80;
    assert_true(flow.done_ps == expected_ps && flow.ideal_ps == expected_ps && flow.timeouts == 0);
    lh_netsim_destroy(simulation);
}

static void a_buffer_beyond_four_gib(void **state)
{
    (void)state;
    struct lh_netsim *simulation = run((struct setting[]){ONE_FLOW,
                                                          {"topology.kind", "dumbbell"},
                                                          {"topology.hosts", "1"},
                                                          {"topology.rate", "100Tbit"},
                                                          {"topology.core_rate", "1Gbit"},
                                                          {"switch.buffer", "100GiB"},
                                                          {"transport.window", "none"},
                                                          {"transport.payload", "60000"},
                                                          {"transport.rto", "1000000"},
                                                          {"workload.bytes", "6GiB"},
                                                          {NULL, NULL}});
    struct lh_netsim_totals totals = totals_of(simulation);
    assert_true(totals.flows_done == 1 && totals.dropped_packets == 0 && totals.repeated_packets == 0);
    uint64_t longest = 0;
    for (uint32_t i = 0; i < lh_netsim_links_count(simulation); i++) {
        struct lh_netsim_link link;
        assert_int_equal(lh_netsim_link(simulation, i, &link), 0);
        longest = link.queue_max_bytes > longest ? link.queue_max_bytes : longest;
    }
    assert_true(longest > UINT64_C(6) << 30);
    lh_netsim_destroy(simulation);
}

/* Ten thousand packets on the wire, in any order. */
static void overtaken_by_thousands(void **state)
{
    (void)state;
    struct lh_netsim *simulation =
        run((struct setting[]){ONE_FLOW,
                               {"topology.kind", "two-hosts"},
                               {"topology.rate", "400Gbit"},
                               {"topology.delay", "12.5ms"},
                               {"topology.link", "jitter=2ms,duplicate=0.1,reorder=0.1"},
                               {"transport.reorder", "1000000"},
                               {"transport.window", "none"},
                               {"workload.bytes", "512MiB"},
                               {NULL, NULL}});
    struct lh_netsim_totals totals = totals_of(simulation);
    assert_true(totals.flows_done == 1 && totals.repeated_packets == 0);
    assert_true(totals.delivered_bytes == UINT64_C(512) << 20);
    assert_true(totals.duplicated_packets > 20000);
    lh_netsim_destroy(simulation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_link_fails_its_flow),
        cmocka_unit_test(without_a_limit_time_ends),
        cmocka_unit_test(a_deadlock_ends),
        cmocka_unit_test(a_busy_host_is_no_timeout),
        cmocka_unit_test(a_path_of_many_links),
        cmocka_unit_test(a_buffer_beyond_four_gib),
        cmocka_unit_test(overtaken_by_thousands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
