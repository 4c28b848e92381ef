/*
 * test_perf_messages.c - whose CPU time it was.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>
#include <longhaul/stats.h>

#include "cli/options/option_values.h"
#include "cli/perf/perf_messages.h"
#include "cli/terminal/terminal.h"

/* ---- test cpu others ------------------------------------------------------------------------------- */

static void others_are_what_is_not_ours(void **state)
{
    const struct cli_cpu_mark from = {100, 1000, 10}, to = {108, 1020, 12};
    (void)state;
    assert_float_equal(cli_cpu_others(&from, &to), 6.0 / 20, 1e-9);
}

static void what_cannot_be_is_nothing(void **state)
{
    const struct cli_cpu_mark from = {100, 1000, 10}, same = from, unknown = {-1, 0, 0};
    const struct cli_cpu_mark more_than_all = {101, 1020, 15};
    (void)state;
    assert_float_equal(cli_cpu_others(&from, &same), 0, 1e-9);
    assert_float_equal(cli_cpu_others(&from, &unknown), 0, 1e-9);
    assert_float_equal(cli_cpu_others(&unknown, &from), 0, 1e-9);
    assert_float_equal(cli_cpu_others(&from, &more_than_all), 0, 1e-9);
}

static void marks_only_grow(void **state)
{
    struct cli_cpu_mark from, to;
    (void)state;
    cli_cpu_mark(&from);
    for (volatile unsigned i = 0; i < 30000000; i++)
        ;
    cli_cpu_mark(&to);
    assert_true(to.own_s > from.own_s || from.busy_s < 0);
    assert_true(to.busy_s >= from.busy_s && to.total_s >= from.total_s);
}

static int run_cpu_others(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_what_is_not_ours),
        cmocka_unit_test(what_cannot_be_is_nothing),
        cmocka_unit_test(marks_only_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test message ---------------------------------------------------------------------------------- */

/* What goes through the codec comes out; what is damaged does not. */

static struct cli_perf_message sample(void)
{
    struct cli_perf_message message = {
        .kind = CLI_PERF_RUN, .count = CLI_PERF_RUN_NUMBERS, .text = "sr-nack"};
    for (unsigned i = 0; i < message.count; i++)
        message.numbers[i] = UINT64_MAX / (i + 1);
    return message;
}

static void comes_out_as_it_went_in(void **state)
{
    uint8_t bytes[CLI_PERF_MESSAGE_MAX];
    struct cli_perf_message in = sample(), out;
    (void)state;
    size_t length = cli_perf_encode(&in, bytes);
    assert_int_equal(length, CLI_PERF_HEADER + 8 * CLI_PERF_RUN_NUMBERS + 7);
    assert_int_equal(cli_perf_decode(bytes, length, &out), 0);
    assert_memory_equal(&in, &out, sizeof in);
}

static void all_counters_fit(void **state)
{
    (void)state;
    assert_true(lh_stats_count() <= CLI_PERF_NUMBERS_MAX);
    assert_int_equal(lh_stats_count() * sizeof(uint64_t), sizeof(struct lh_stats));
}

static void every_wrong_length_is_refused(void **state)
{
    uint8_t bytes[CLI_PERF_MESSAGE_MAX] = {0};
    struct cli_perf_message in = sample(), out;
    size_t right = cli_perf_encode(&in, bytes);
    (void)state;
    for (size_t length = 0; length <= sizeof bytes; length++)
        assert_int_equal(cli_perf_decode(bytes, length, &out), length == right ? 0 : -LH_EPROTOCOL);
}

static int with_bytes(size_t place, uint8_t value, size_t other, uint8_t other_value)
{
    uint8_t bytes[CLI_PERF_MESSAGE_MAX];
    struct cli_perf_message in = sample(), out;
    size_t length = cli_perf_encode(&in, bytes);
    bytes[place] = value;
    bytes[other] = other_value;
    return cli_perf_decode(bytes, length, &out);
}

static int with_byte(size_t place, uint8_t value)
{
    return with_bytes(place, value, place, value);
}

static void damage_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(with_byte(i, '?'), -LH_EPROTOCOL);
    assert_int_equal(with_byte(6, 9), -LH_EVERSION);
    assert_int_equal(with_byte(7, 0), -LH_EPROTOCOL);
    assert_int_equal(with_byte(7, CLI_PERF_READY), -LH_EPROTOCOL); /* has one number */
    assert_int_equal(with_byte(7, CLI_PERF_RESULT + 1), -LH_EPROTOCOL);
    assert_int_equal(with_byte(8, 1), -LH_EPROTOCOL); /* a RUN cannot say no */
    assert_int_equal(with_byte(8, 2), -LH_EPROTOCOL);
    assert_int_equal(with_byte(13, 0xFF), -LH_EPROTOCOL);
    assert_int_equal(with_byte(14, 0xFF), -LH_EPROTOCOL);
    assert_int_equal(with_byte(15, 0xFF), -LH_EPROTOCOL);
    /* A RESULT may have any number of them, but not more than there is room for. */
    assert_int_equal(with_byte(7, CLI_PERF_RESULT), 0);
    assert_int_equal(with_bytes(7, CLI_PERF_RESULT, 14, CLI_PERF_NUMBERS_MAX + 1), -LH_EPROTOCOL);
}

static int run_message(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_as_it_went_in),
        cmocka_unit_test(all_counters_fit),
        cmocka_unit_test(every_wrong_length_is_refused),
        cmocka_unit_test(damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test samples ---------------------------------------------------------------------------------- */

/* Mean and nearest-rank percentiles; lists of sizes and losses. */

/* Both have a longest piece. */
#undef PIECE_MAX

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

static int run_samples(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_measured_values),
        cmocka_unit_test(few_values),
        cmocka_unit_test(lists_of_sizes),
        cmocka_unit_test(lists_of_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_cpu_others() + run_message() + run_samples();
}
