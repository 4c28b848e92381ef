/*
 * test_netsim_flows.c - which flow starts when: by time, after others, and after tasks that take time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/netsim_flows.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FLOWS      5u /* 0 to 2 wait for others, 3 and 4 start by time */
#define DEPENDENTS 3u
#define TASK       FLOWS /* the first one's node, outside */

/* Flow 0 waits for nothing, flow 1 for flow 0 and task 1, flow 2 for flow 1; task 0 takes 7 and task 1, which
 * waits for it, takes 5. */
struct fixture {
    alignas(64) unsigned char memory[4096];
    struct netsim_flow_request flows[FLOWS];
    struct netsim_flow_list list;
    struct netsim_starts starts;
};

static void add_edges(struct netsim_dependencies *graph,
                      void (*add)(struct netsim_dependencies *, uint32_t, uint32_t))
{
    add(graph, 0, 1);
    add(graph, DEPENDENTS + 1, 1);
    add(graph, 1, 2);
    add(graph, DEPENDENTS, DEPENDENTS + 1);
}

static struct fixture *start(void)
{
    static struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    struct netsim_arena arena = {.base = fixture.memory, .capacity_bytes = sizeof fixture.memory};
    struct netsim_dependencies *graph = &fixture.list.dependencies;
    fixture.flows[3].start_ps = 7;
    fixture.flows[4].start_ps = 100;
    fixture.list.flows = fixture.flows;
    fixture.list.count = FLOWS;
    fixture.list.dependents = DEPENDENTS;
    netsim_dependencies_init(graph, DEPENDENTS, 2, 4, &arena);
    graph->spans_ps[0] = 7;
    graph->spans_ps[1] = 5;
    add_edges(graph, netsim_dependencies_count);
    netsim_dependencies_lay_out(graph);
    add_edges(graph, netsim_dependencies_keep);
    netsim_starts_init(&fixture.starts, &fixture.list, &arena);
    return &fixture;
}

/* The next node is due at that time and not before; others may be due then, too. */
static void expect(struct netsim_starts *starts, netsim_time at_ps, uint32_t node)
{
    assert_true(netsim_starts_next_ps(starts) == at_ps);
    if (at_ps > 0)
        assert_int_equal(netsim_starts_take(starts, at_ps - 1), NETSIM_NO_NODE);
    assert_int_equal(netsim_starts_take(starts, at_ps), node);
    assert_int_equal(netsim_starts_is_task(starts, node), node >= TASK);
}

static void test_order(void **state)
{
    (void)state;
    struct netsim_starts *starts = &start()->starts;
    expect(starts, 0, 0);
    expect(starts, 7, 3); /* by time comes first */
    expect(starts, 7, TASK);
    starts->changed = false;
    netsim_starts_release(starts, 0, 8); /* flow 1 still waits for a task */
    assert_false(starts->changed);
    netsim_starts_release(starts, TASK, 8);
    assert_true(starts->changed);
    expect(starts, 13, TASK + 1);
    netsim_starts_release(starts, TASK + 1, 13);
    expect(starts, 13, 1);
    assert_true(netsim_starts_next_ps(starts) == 100); /* flow 2 is not due before flow 1 has ended */
    netsim_starts_release(starts, 1, 100);
    expect(starts, 100, 4);
    expect(starts, 100, 2);
    netsim_starts_release(starts, 2, 120);
    netsim_starts_release(starts, 3, 120); /* nothing waits for it */
    assert_true(netsim_starts_next_ps(starts) == NETSIM_NEVER);
}

/* A ladder of tasks that all become due at once, in falling order of time: the heap sorts them. */
static void test_heap(void **state)
{
    (void)state;
    enum { TASKS = 40 };
    static alignas(64) unsigned char memory[8192];
    struct netsim_arena arena = {.base = memory, .capacity_bytes = sizeof memory};
    struct netsim_flow_list list = {0};
    struct netsim_starts starts;
    netsim_dependencies_init(&list.dependencies, 0, TASKS, 0, &arena);
    for (uint32_t i = 0; i < TASKS; i++)
        list.dependencies.spans_ps[i] = (TASKS - i) / 2; /* two of each */
    netsim_dependencies_lay_out(&list.dependencies);
    netsim_starts_init(&starts, &list, &arena);
    netsim_time last_ps = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < TASKS; i++) {
        netsim_time at_ps = netsim_starts_next_ps(&starts);
        uint32_t node = netsim_starts_take(&starts, at_ps);
        assert_int_equal(at_ps, (TASKS - node) / 2);
        assert_true(at_ps > last_ps || i == 0 || node > last);
        assert_true(at_ps >= last_ps);
        last_ps = at_ps;
        last = node;
    }
    assert_true(netsim_starts_next_ps(&starts) == NETSIM_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
