/*
 * test_message.c - what goes through the codec comes out; what is damaged does not.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/perf/message.h"

#include <longhaul/error.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/stats.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_as_it_went_in),
        cmocka_unit_test(all_counters_fit),
        cmocka_unit_test(every_wrong_length_is_refused),
        cmocka_unit_test(damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
