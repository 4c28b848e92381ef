/*
 * test_stats.c - counters by index.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/stats.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_names_and_values_go_together(void **state)
{
    (void)state;
    struct lh_stats stats;
    uint64_t next = 100;
    size_t index = 0;
#define FILL(field, meaning) stats.field = next++;
    LH_STATS(FILL)
#undef FILL
#define CHECK(field, words)                                                                                \
    assert_string_equal(lh_stats_name(index), #field);                                                     \
    assert_string_equal(lh_stats_meaning(index), words);                                                   \
    assert_true(lh_stats_value(&stats, index) == stats.field);                                             \
    index++;
    LH_STATS(CHECK)
#undef CHECK
    assert_int_equal(lh_stats_count(), index);
    assert_int_equal(index * sizeof(uint64_t), sizeof stats);
}

static void test_past_the_end(void **state)
{
    (void)state;
    struct lh_stats stats;
    memset(&stats, 0xFF, sizeof stats);
    assert_null(lh_stats_name(lh_stats_count()));
    assert_null(lh_stats_meaning(lh_stats_count()));
    assert_true(lh_stats_value(&stats, lh_stats_count()) == 0);
    assert_null(lh_stats_name(SIZE_MAX));
    assert_non_null(lh_stats_name(lh_stats_count() - 1));
}

static void test_bad_packets_are_those_that_were_wrong(void **state)
{
    (void)state;
    struct lh_stats stats;
    memset(&stats, 0, sizeof stats);
    stats.bad_icrc = 1;
    stats.bad_header = 20;
    stats.bad_source = 300;
    stats.bad_qpn = 4000;
    stats.bad_key = 50000;
    stats.bad_range = 600000;
    stats.bad_length = 7000000;
    stats.bad_channel = 80000000;
    stats.bad_control = 900000000;
    stats.bad_token = 1000000000;
    stats.rx_late_packets = 5;
    stats.link_corrupted = 5;
    assert_true(lh_stats_bad_packets(&stats) == 1987654321);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_values_go_together),
        cmocka_unit_test(test_past_the_end),
        cmocka_unit_test(test_bad_packets_are_those_that_were_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
