/*
 * test_sim_observation.c - figures of a simulation: classes, means, confidence, and the keys that choose
 * them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options/cli_options.h"
#include "cli/perf/perf_messages.h"
#include "cli/sim/scenario.h"
#include "cli/sim/sim_report.h"
#include "cli/sim/sim_results.h"
#include "cli/terminal/terminal.h"

/* ---- test figures ---------------------------------------------------------------------------------- */

static void means_and_confidence(void **state)
{
    const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    double half = 0;
    (void)state;
    /* Mean 5, standard deviation 2.138, t(7) = 2.365: 2.365 × 2.138 / √8 */
    assert_true(fabs(cli_mean_ci95(values, 8, &half) - 5) < 1e-12);
    assert_true(fabs(half - 1.7877) < 1e-3);
    assert_true(cli_mean_ci95(values, 1, &half) == 2);
    assert_true(isnan(half));
    assert_true(isnan(cli_mean_ci95(values, 0, &half)));
}

static void classes_have_names(void **state)
{
    char out[64];
    (void)state;
    cli_class_format(&(struct cli_class){.from_bytes = 0, .to_bytes = 10000}, out, sizeof out);
    assert_string_equal(out, "< 10kB");
    cli_class_format(&(struct cli_class){.from_bytes = 10000, .to_bytes = 1048576}, out, sizeof out);
    assert_string_equal(out, "10kB … 1MiB");
    cli_class_format(&(struct cli_class){.from_bytes = 1000000, .to_bytes = UINT64_MAX}, out, sizeof out);
    assert_string_equal(out, "≥ 1MB");
    cli_class_format(&(struct cli_class){.to_bytes = UINT64_MAX}, out, sizeof out);
    assert_string_equal(out, "all flows");
}

static void figures_have_units(void **state)
{
    char out[64];
    (void)state;
    cli_figure_format(CLI_FIGURE_FCT_P99, 0.00125, out, sizeof out);
    assert_string_equal(out, "1.25ms");
    cli_figure_format(CLI_FIGURE_HOPS_RATE, 12345678, out, sizeof out);
    assert_string_equal(out, "12.3 M/s");
    cli_figure_format(CLI_FIGURE_DROPPED, 3, out, sizeof out);
    assert_string_equal(out, "3");
    cli_figure_format(CLI_FIGURE_SLOWDOWN_P50, NAN, out, sizeof out);
    assert_string_equal(out, "-");
    for (unsigned i = 0; i < CLI_FIGURES; i++)
        assert_int_equal(cli_figure_find(cli_figure_infos[i].name), i);
    assert_int_equal(cli_figure_find("fct"), CLI_FIGURES);
}

static void sets(struct cli_sim_output *output, const char *key, const char *value)
{
    char wrong[512] = "";
    if (cli_sim_key_set(output, key, value, wrong, sizeof wrong))
        fail_msg("%s", wrong);
}

static void refuses(const char *key, const char *value, const char *words)
{
    struct cli_sim_output output;
    char wrong[512] = "";
    cli_sim_output_init(&output);
    assert_int_equal(cli_sim_key_set(&output, key, value, wrong, sizeof wrong), -1);
    if (!strstr(wrong, words))
        fail_msg("\"%s\" does not say \"%s\"", wrong, words);
}

static void keys_of_the_command(void **state)
{
    struct cli_sim_output output;
    (void)state;
    cli_sim_output_init(&output);
    assert_true(output.until_ps == CLI_NO_END);
    assert_int_equal(output.period_ps, 10000000);
    assert_int_equal(output.edges_count, 4);
    assert_int_equal(output.panels_count, 2);
    assert_string_equal(output.queues, "");
    sets(&output, "run.until", "2ms");
    assert_int_equal(output.until_ps, 2000000000);
    sets(&output, "output.queues", "all");
    assert_string_equal(output.queues, "*>*");
    sets(&output, "output.classes", "none");
    assert_int_equal(output.edges_count, 0);
    sets(&output, "output.classes", " 1kB, 1MB");
    assert_int_equal(output.edges[1], 1000000);
    sets(&output, "output.figures", "goodput");
    assert_int_equal(output.panels[0], CLI_FIGURE_GOODPUT);
    assert_true(cli_sim_key_is_ours("output.whatever"));
    assert_true(cli_sim_key_is_ours("run.until"));
    assert_false(cli_sim_key_is_ours("run.packets"));
}

static void keys_that_are_wrong(void **state)
{
    (void)state;
    refuses("output.perod", "1us", "did you mean output.period?");
    refuses("output.xyz", "1us", "--keys");
    refuses("output.period", "0", "1ns");
    refuses("output.period", "200000min", "106 days");
    refuses("output.queues", "leaf0", "from>to");
    refuses("output.packets", "0", "1 to");
    refuses("output.packets", "-1", "1 to");
    refuses("output.classes", "1MB,1kB", "ascending");
    refuses("output.classes", "1,2,3,4,5,6,7,8", "more than 7");
    refuses("output.figures", "goodputt", "did you mean goodput?");
    refuses("output.figures", "a,b,c,d", "example");
    refuses("output.figures", "done,done,done,done", "more than three");
    refuses("output.snap", "half", "full or headers");
}

static int run_figures(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_and_confidence), cmocka_unit_test(classes_have_names),
        cmocka_unit_test(figures_have_units),   cmocka_unit_test(keys_of_the_command),
        cmocka_unit_test(keys_that_are_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test operations ------------------------------------------------------------------------------- */

/* How long the operations of a collective took. */

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

static int run_operations(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_add_up),
        cmocka_unit_test(computing_does_not_count),
        cmocka_unit_test(only_those_that_have_ended_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_figures() + run_operations();
}
