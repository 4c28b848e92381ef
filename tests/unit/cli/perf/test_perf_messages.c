/*
 * test_samples.c - mean and nearest-rank percentiles; lists of sizes and losses.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/options/loss_list.h"
#include "cli/perf/samples.h"
#include "cli/terminal/output.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/terminal.h"
/* Both have a longest piece. */
#undef PIECE_MAX
#include "cli/options/size_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void percentiles_are_measured_values(void **state)
{
    double values[1000];
    (void)state;
    for (size_t i = 0; i < 1000; i++)
        values[i] = (double)(1000 - i);
    cli_samples_sort(values, 1000);
    assert_true(cli_samples_percentile(values, 1000, 0.5) == 500);
    assert_true(cli_samples_percentile(values, 1000, 0.99) == 990);
    assert_true(cli_samples_percentile(values, 1000, 0.999) == 999);
    assert_true(cli_samples_percentile(values, 1000, 1) == 1000);
    assert_true(cli_samples_mean(values, 1000) == 500.5);
}

static void few_values(void **state)
{
    double values[] = {3, 1, 2};
    (void)state;
    cli_samples_sort(values, 3);
    assert_true(cli_samples_percentile(values, 3, 0.5) == 2);
    assert_true(cli_samples_percentile(values, 3, 0.999) == 3);
    assert_true(cli_samples_percentile(values, 1, 0.01) == 1);
}

static void check_sizes(const char *text, unsigned count, uint64_t first, uint64_t last)
{
    struct cli_size_list list;
    assert_int_equal(cli_size_list_parse("size", text, (uint64_t)4 << 30, &list), CLI_PROCEED);
    assert_int_equal(list.count, count);
    assert_true(list.bytes[0] == first && list.bytes[count - 1] == last);
}

static void lists_of_sizes(void **state)
{
    static const char *const wrong[] = {"",           "0",      "x",    "1KiB,",   ",1KiB",
                                        "2KiB..1KiB", "1KiB..", "5GiB", "1KiB..2Q"};
    struct cli_size_list list;
    (void)state;
    check_sizes("1", 1, 1, 1);
    check_sizes("64KiB..64MiB", 11, 65536, 67108864);
    check_sizes("1KiB..3KiB", 2, 1024, 2048);
    check_sizes("1KiB,7,2KiB..8KiB", 5, 1024, 8192);
    check_sizes("4GiB", 1, (uint64_t)4 << 30, (uint64_t)4 << 30);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (cli_size_list_parse("size", wrong[i], (uint64_t)4 << 30, &list) != CLI_EXIT_USAGE)
            fail_msg("taken, but wrong: \"%s\"", wrong[i]);
    assert_int_equal(cli_size_list_parse("size", "1..4GiB,1..4GiB", (uint64_t)4 << 30, &list),
                     CLI_EXIT_USAGE);
}

static void lists_of_losses(void **state)
{
    static const char *const wrong[] = {
        "",        "2",          "x",      "0,",     "-1",      "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
        "0..1e-2", "1e-2..1e-3", "1e-3..", "..1e-3", "1e-3..2", "1e-30..1"};
    struct cli_loss_list list;
    (void)state;
    assert_int_equal(cli_loss_list_parse("loss", "0,1e-4,1%", &list), CLI_PROCEED);
    assert_int_equal(list.count, 3);
    assert_true(list.ratio[0] == 0 && list.ratio[1] == 1e-4 && list.ratio[2] == 0.01);
    assert_int_equal(cli_loss_list_parse("loss", "0,1e-6..1e-4,3e-3..3e-2", &list), CLI_PROCEED);
    const double decades[] = {0, 1e-6, 1e-5, 1e-4, 3e-3, 3e-2};
    assert_int_equal(list.count, 6);
    assert_memory_equal(list.ratio, decades, sizeof decades);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (cli_loss_list_parse("loss", wrong[i], &list) != CLI_EXIT_USAGE)
            fail_msg("taken, but wrong: \"%s\"", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_measured_values),
        cmocka_unit_test(few_values),
        cmocka_unit_test(lists_of_sizes),
        cmocka_unit_test(lists_of_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
