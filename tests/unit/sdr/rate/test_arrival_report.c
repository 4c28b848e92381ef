/*
 * test_arrival_report.c - when a receiver reports: new arrivals, spans, a full buffer, the last one twice.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/rate/arrival_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define RTT (40 * LH_NS_PER_MS)
#define T0  (7 * LH_NS_PER_S)

static void test_nothing_new(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    assert_false(arrival_report_due(&report, 0, RTT, T0));
    assert_int_equal(arrival_report_next(&report, 0, RTT), LH_TIME_NEVER);
}

static void test_first_at_once(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    for (uint64_t packets = 1; packets <= ARRIVAL_REPORT_FIRST; packets++) {
        assert_true(arrival_report_due(&report, packets, RTT, T0));
        arrival_report_on_sent(&report, packets, T0);
    }
    assert_false(arrival_report_due(&report, ARRIVAL_REPORT_FIRST + 1, RTT, T0));
}

static void test_spans(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    arrival_report_on_sent(&report, 5001, T0);
    assert_int_equal(arrival_report_next(&report, 5002, RTT), T0 + RTT / 8);
    assert_false(arrival_report_due(&report, 5002, RTT, T0 + RTT / 8 - 1));
    assert_true(arrival_report_due(&report, 5002, RTT, T0 + RTT / 8));
    assert_int_equal(arrival_report_next(&report, 5002, LH_NS_PER_US), T0 + ARRIVAL_REPORT_SPAN_NS);
}

static void test_early_ones_soon(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    arrival_report_on_sent(&report, ARRIVAL_REPORT_FIRST, T0);
    assert_int_equal(arrival_report_next(&report, ARRIVAL_REPORT_EARLY - 1, RTT),
                     T0 + ARRIVAL_REPORT_SPAN_NS);
    assert_int_equal(arrival_report_next(&report, ARRIVAL_REPORT_EARLY, RTT), T0 + RTT / 8);
}

static void test_full_buffer(void **state)
{
    (void)state;
    struct arrival_report report = {.packets_max = 10};
    arrival_report_on_sent(&report, 1005, T0);
    assert_false(arrival_report_due(&report, 1015, RTT, T0));
    assert_true(arrival_report_due(&report, 1016, RTT, T0));
}

static void test_last_one_twice(void **state)
{
    (void)state;
    struct arrival_report report = {0};
    arrival_report_on_sent(&report, 5, T0);
    assert_int_equal(arrival_report_next(&report, 5, RTT), T0 + RTT);
    arrival_report_on_sent(&report, 5, T0 + RTT);
    assert_int_equal(arrival_report_next(&report, 5, RTT), LH_TIME_NEVER);
    arrival_report_on_sent(&report, 6, T0 + 2 * RTT);
    assert_int_equal(arrival_report_next(&report, 6, 0), T0 + 2 * RTT + 10 * LH_NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_new),     cmocka_unit_test(test_first_at_once),
        cmocka_unit_test(test_spans),           cmocka_unit_test(test_full_buffer),
        cmocka_unit_test(test_early_ones_soon), cmocka_unit_test(test_last_one_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
