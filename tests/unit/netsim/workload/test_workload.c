/*
 * test_workload.c - lists of flows from a text.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/workload/workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "support/netsim_build.h"
#include "support/netsim_text.h"

static int read_flows(const char *words, struct netsim_flow_list *list, void **memory)
{
    struct netsim_workload_config config = {.kind = NETSIM_FLOWS_FILE, .flows = netsim_text_of(words)};
    struct netsim_graph graph = {.hosts = 16, .sites = 1};
    return build_workload(&config, &graph, 1, list, memory);
}

static void check_flow(const struct netsim_flow_request *flow, uint32_t source, uint32_t destination,
                       uint64_t bytes, netsim_time start_ps)
{
    assert_int_equal(flow->source, source);
    assert_int_equal(flow->destination, destination);
    assert_true(flow->bytes == bytes && flow->start_ps == start_ps);
}

static void test_units_and_comments(void **state)
{
    (void)state;
    void *memory;
    struct netsim_flow_list list;
    assert_int_equal(read_flows("# who whom what when\n0 5 8MB 0\n\n  15\t0 1 10us # small\n3 4 16TiB 2s",
                                &list, &memory),
                     0);
    assert_int_equal(list.count, 3);
    check_flow(&list.flows[0], 0, 5, 8000000, 0);
    check_flow(&list.flows[1], 15, 0, 1, 10 * NETSIM_PS_PER_US);
    check_flow(&list.flows[2], 3, 4, NETSIM_FLOW_BYTES_MAX, 2 * NETSIM_PS_PER_S);
    free(memory);
}

static void test_hosts_by_name(void **state)
{
    (void)state;
    void *memory;
    struct netsim_flow_list list;
    struct netsim_node nodes[4] = {{.name = "paris"}, {.name = "2"}, {.name = "x.2"}, {.name = "switch"}};
    struct netsim_graph graph = {.hosts = 3, .sites = 1, .nodes = nodes};
    struct netsim_workload_config config = {.kind = NETSIM_FLOWS_FILE,
                                            .flows = netsim_text_of("paris 1 1 0\nx.2 0 2 0\n0 2 3 0\n")};
    assert_int_equal(build_workload(&config, &graph, 1, &list, &memory), 0);
    assert_int_equal(list.count, 3);
    check_flow(&list.flows[0], 0, 1, 1, 0);
    check_flow(&list.flows[1], 2, 0, 2, 0);
    check_flow(&list.flows[2], 0, 2, 3, 0); /* the number, though host 1 is called so */
    free(memory);
    config.flows = netsim_text_of("0 switch 1 0\n");
    assert_int_equal(build_workload(&config, &graph, 1, &list, &memory), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "unknown destination host \"switch\""));
}

static void test_flows_are_sorted_by_start(void **state)
{
    (void)state;
    void *memory;
    struct netsim_flow_list list;
    assert_int_equal(read_flows("0 1 1 3us\n0 1 2 1us\n0 1 3 3us\n0 1 4 2us\n0 1 5 1us\n", &list, &memory),
                     0);
    static const uint64_t order[] = {2, 5, 4, 1, 3};
    assert_int_equal(list.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_true(list.flows[i].bytes == order[i]);
    free(memory);
}

static void test_a_line_may_stand_for_many(void **state)
{
    (void)state;
    void *memory;
    struct netsim_flow_list list;
    assert_int_equal(read_flows("0 1 7 10us 3 5us\n2 3 1MB 12us 2\n4 5 9 1us 1\n", &list, &memory), 0);
    assert_int_equal(list.count, 6);
    check_flow(&list.flows[0], 4, 5, 9, NETSIM_PS_PER_US);
    check_flow(&list.flows[1], 0, 1, 7, 10 * NETSIM_PS_PER_US);
    check_flow(&list.flows[2], 2, 3, 1000000, 12 * NETSIM_PS_PER_US);
    check_flow(&list.flows[3], 2, 3, 1000000, 12 * NETSIM_PS_PER_US);
    check_flow(&list.flows[4], 0, 1, 7, 15 * NETSIM_PS_PER_US);
    check_flow(&list.flows[5], 0, 1, 7, 20 * NETSIM_PS_PER_US);
    free(memory);
    assert_int_equal(read_flows("0 1 7 0 16777216\n", &list, &memory), 0);
    assert_int_equal(list.count, 16777216);
    free(memory);
}

static void refuse(const char *words, int code, const char *word, const char *other)
{
    void *memory;
    struct netsim_flow_list list;
    assert_int_equal(read_flows(words, &list, &memory), code);
    if (strstr(lh_last_error(), word) == NULL || strstr(lh_last_error(), other) == NULL)
        fail_msg("\"%s\" has no \"%s\" or no \"%s\"", lh_last_error(), word, other);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    refuse("", -LH_EINVAL, "workload.flows has no flows", "0 5 8MB 10us");
    refuse("0 1 1MB\n", -LH_EINVAL, "workload.flows:1: 3 words", "0 5 8MB 10us");
    refuse("0 1 1MB 0 1 0 0\n", -LH_EINVAL, "7 words", "start");
    refuse("0 1 1MB 0 0\n", -LH_ERANGE, "0 flows", "1 or more");
    refuse("0 1 1MB 0 many\n", -LH_EINVAL, "number of flows", "many");
    refuse("0 1 1MB 0 2 3\n", -LH_EINVAL, ":1: ", "unit");
    refuse("0 1 1MB 0 16777217\n", -LH_ERANGE, "number of flows 16777217", "16777216");
    refuse("0 1 1MB 0\n0 1 1MB 0 16777216\n", -LH_ERANGE, ":2: more than 16777216 flows", "remove");
    refuse("0 1 1MB 9000000s 16777216 1s\n", -LH_ERANGE, "the last of 16777216", "106 days");
    refuse("0 1 1 0\n0 16 1 0\n", -LH_ERANGE, ":2: destination host 16", "0 to 15");
    refuse("h1 1 1 0\n", -LH_EINVAL, "source host \"h1\"", "0 to 15");
    refuse("4294967296 1 1 0\n", -LH_ERANGE, "source host 4294967296", "0 to 15");
    refuse("7 7 1 0\n", -LH_EINVAL, "host 7 would send to itself", "two hosts");
    refuse("0 1 0 0\n", -LH_ERANGE, "size 0", "16TiB");
    refuse("0 1 17TiB 0\n", -LH_ERANGE, "size 17TiB", "16TiB");
    refuse("0 1 1Mb 0\n", -LH_EINVAL, ":1: ", "1Mb");
    refuse("0 1 1MB 10\n", -LH_EINVAL, ":1: ", "unit");
    refuse("0 1 1MB 9223372037s\n", -LH_ERANGE, "start 9223372037s", "106 days");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units_and_comments),        cmocka_unit_test(test_hosts_by_name),
        cmocka_unit_test(test_flows_are_sorted_by_start), cmocka_unit_test(test_a_line_may_stand_for_many),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
