/*
 * test_operations.c - how long the operations of a collective took.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/perf/samples.h"
#include "cli/sim/run/operations.h"

#include "cli/sim/scenario/figure.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define PS_PER_S 1e12

static struct lh_netsim *run(const char *kind, const char *loss, const char *compute, uint64_t until_ps)
{
    const char *const settings[][2] = {
        {"topology.kind", "fat-tree"}, {"workload.kind", kind}, {"workload.rounds", "10"},
        {"workload.bytes", "1MB"},     {"topology.link", loss}, {"workload.compute", compute},
    };
    struct lh_netsim_config *config;
    struct lh_netsim *simulation;
    assert_int_equal(lh_netsim_config_create(&config), 0);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        assert_int_equal(lh_netsim_config_set(config, settings[i][0], settings[i][1]), 0);
    assert_int_equal(lh_netsim_create(config, 5, &simulation), 0);
    assert_true(lh_netsim_run(simulation, until_ps, UINT64_MAX) >= 0);
    lh_netsim_config_destroy(config);
    return simulation;
}

static double sum_of(const struct cli_operations *operations)
{
    double sum = 0;
    for (size_t i = 0; i < operations->count; i++)
        sum += operations->seconds[i];
    return sum;
}

static double end_of(const struct lh_netsim *simulation)
{
    struct lh_netsim_flow flow;
    double end = 0;
    for (uint64_t i = 0; i < lh_netsim_flows_count(simulation) && !lh_netsim_flow(simulation, i, &flow);
         i++)
        end = fmax(end, (double)flow.received_ps / PS_PER_S);
    return end;
}

/* One begins where the other ends, whatever overlaps. */
static void durations_add_up(void **state)
{
    struct cli_operations operations;
    double values[CLI_FIGURES];
    (void)state;
    struct lh_netsim *simulation = run("collective", "loss=1e-2,burst=4", "0", UINT64_MAX);
    assert_int_equal(cli_operations_collect(&operations, simulation), 0);
    assert_int_equal(operations.count, 10);
    assert_true(fabs(sum_of(&operations) / end_of(simulation) - 1) < 1e-9);
    cli_operations_sum_up(&operations, values);
    assert_true(fabs(values[CLI_FIGURE_OPERATION_MEAN] * 10 / end_of(simulation) - 1) < 1e-9);
    assert_true(values[CLI_FIGURE_OPERATION_P50] == operations.seconds[4]);
    assert_true(values[CLI_FIGURE_OPERATION_P99] == operations.seconds[9]);
    assert_true(values[CLI_FIGURE_OPERATION_MAX] == operations.seconds[9]);
    assert_true(operations.seconds[0] < operations.seconds[9]);
    cli_operations_free(&operations);
    lh_netsim_destroy(simulation);
}

/* Nine times a millisecond, but for what members that end sooner begin sooner. */
static void computing_does_not_count(void **state)
{
    struct cli_operations operations;
    (void)state;
    struct lh_netsim *simulation = run("collective", "none", "1ms", UINT64_MAX);
    assert_int_equal(cli_operations_collect(&operations, simulation), 0);
    assert_true(sum_of(&operations) > 0 && sum_of(&operations) < end_of(simulation) - 8e-3);
    cli_operations_free(&operations);
    lh_netsim_destroy(simulation);
}

static void only_those_that_have_ended_count(void **state)
{
    struct cli_operations operations;
    double values[CLI_FIGURES];
    (void)state;
    struct lh_netsim *simulation = run("collective", "none", "1ms", UINT64_C(2500000000));
    assert_int_equal(cli_operations_collect(&operations, simulation), 0);
    assert_int_equal(operations.count, 2);
    cli_operations_free(&operations);
    lh_netsim_destroy(simulation);
    simulation = run("permutation", "none", "0", UINT64_MAX);
    assert_int_equal(cli_operations_collect(&operations, simulation), 0);
    assert_int_equal(operations.count, 0);
    cli_operations_sum_up(&operations, values);
    assert_true(isnan(values[CLI_FIGURE_OPERATION_MEAN]) && isnan(values[CLI_FIGURE_OPERATION_P99]));
    cli_operations_free(&operations);
    lh_netsim_destroy(simulation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_add_up),
        cmocka_unit_test(computing_does_not_count),
        cmocka_unit_test(only_those_that_have_ended_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
