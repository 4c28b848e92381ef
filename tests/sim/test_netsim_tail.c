/*
 * test_netsim_tail.c - AllReduces between hosts of which one pauses now and then, beside bursts of
 * other traffic, over links that lose bursts: transports that repeat what is lost, and XP, which ends a
 * message at its deadline (docs/scenarios.md, collective-disturbed, small). What XP gains depends on what the
 * others are compared by: a queue pair for each peer, as libraries have it, or one for each message and steps
 * that wait for all before them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/netsim.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define OPERATIONS 40

struct tail {
    double mean_us, slowest_us, delivered;
};

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* When each operation has ended at all hosts. */
static void list_ends(const struct lh_netsim *simulation, uint64_t end_ps[OPERATIONS])
{
    for (uint64_t i = 0; i < lh_netsim_flows_count(simulation); i++) {
        struct lh_netsim_flow flow;
        assert_int_equal(lh_netsim_flow(simulation, i, &flow), 0);
        assert_true(flow.operation < OPERATIONS);
        if (flow.received_ps > end_ps[flow.operation])
            end_ps[flow.operation] = flow.received_ps;
    }
}

static struct tail run(const char *transport, const char *queue_pair, const char *wait)
{
    const char *const settings[][2] = {
        {"topology.kind", "fat-tree"},
        {"topology.k", "4"},
        {"topology.delay", "1us"},
        {"topology.link", "loss=2e-4,burst=16"},
        {"transport.kind", transport},
        {"transport.retries", "none"},
        {"transport.deadline", "150us"},
        {"workload.kind", "collective"},
        {"workload.bytes", "4MB"},
        {"workload.rounds", "40"},
        {"disturb.stragglers", "1"},
        {"disturb.pause", "1ms"},
        {"disturb.pause_every", "50ms"},
        {"disturb.burst", "250kB"},
        {"disturb.burst_every", "1ms"},
        {"workload.wait", wait},
        {"transport.queue_pair", queue_pair},
    };
    struct lh_netsim_config *config;
    struct lh_netsim *simulation;
    struct lh_netsim_totals totals;
    uint64_t end_ps[OPERATIONS] = {0}, took_ps[OPERATIONS], bytes = 0;
    struct tail tail = {0};
    assert_int_equal(lh_netsim_config_create(&config), 0);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        assert_int_equal(lh_netsim_config_set(config, settings[i][0], settings[i][1]), 0);
    assert_int_equal(lh_netsim_create(config, 7, &simulation), 0);
    assert_int_equal(lh_netsim_run(simulation, UINT64_MAX, UINT64_MAX), 1);
    lh_netsim_totals(simulation, &totals);
    assert_int_equal(totals.flows_done, totals.flows);
    list_ends(simulation, end_ps);
    for (uint64_t i = 0; i < OPERATIONS; i++) {
        took_ps[i] = end_ps[i] - (i > 0 ? end_ps[i - 1] : 0);
        tail.mean_us += (double)took_ps[i] / 1e6 / OPERATIONS;
    }
    qsort(took_ps, OPERATIONS, sizeof *took_ps, by_time);
    tail.slowest_us = (double)took_ps[OPERATIONS - 1] / 1e6;
    for (uint64_t i = 0; i < totals.flows; i++) {
        struct lh_netsim_flow flow;
        assert_int_equal(lh_netsim_flow(simulation, i, &flow), 0);
        bytes += flow.bytes;
    }
    tail.delivered = (double)totals.delivered_bytes / (double)bytes;
    print_message("%-4s %s, %-6s mean %.0f us, slowest of %d %.0f us, delivered %.3f %%\n", transport,
                  queue_pair, wait, tail.mean_us, OPERATIONS, tail.slowest_us, 100 * tail.delivered);
    lh_netsim_destroy(simulation);
    lh_netsim_config_destroy(config);
    return tail;
}

/* Both took so many times as long as XP, at least. */
static void check(const struct tail *repeats, const struct tail *xp, double mean, double slowest)
{
    assert_true(repeats->delivered == 1);
    assert_true(xp->delivered > 0.99 && xp->delivered < 1);
    assert_true(repeats->mean_us > mean * xp->mean_us);
    assert_true(repeats->slowest_us > slowest * xp->slowest_us);
}

static void bounded_ends_cut_the_tail(void **state)
{
    (void)state;
    struct tail gbn = run("gbn", "peer", "blocks"), irn = run("irn", "peer", "blocks");
    struct tail xp = run("xp", "peer", "blocks");
    check(&gbn, &xp, 1.1, 1.2);
    check(&irn, &xp, 1.1, 1.2);
    assert_true(gbn.mean_us < 1.3 * xp.mean_us && irn.mean_us < 1.3 * xp.mean_us);
}

/* Messages that nobody can use yet share the port with those that all wait for: most of what XP gains there
 * is not its own. */
static void steps_make_it_look_longer(void **state)
{
    (void)state;
    struct tail gbn = run("gbn", "flow", "steps"), irn = run("irn", "flow", "steps");
    struct tail xp = run("xp", "flow", "steps");
    check(&gbn, &xp, 2.5, 2.5);
    check(&irn, &xp, 2.5, 2.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounded_ends_cut_the_tail),
        cmocka_unit_test(steps_make_it_look_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
