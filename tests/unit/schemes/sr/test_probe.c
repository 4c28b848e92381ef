/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct sr_timing measured = {
    .rtt_ns = 1000, .overdue_ns = 1100, .window_ns = 125, .measured = true};

static void test_nothing_is_asked_before_the_first_injection(void **state)
{
    (void)state;
    struct sr_probe probe;
    sr_probe_init(&probe);
    assert_int_equal(sr_probe_expiry(&probe, &measured), LH_TIME_NEVER);
    sr_probe_on_heard(&probe, 5);
    assert_int_equal(sr_probe_expiry(&probe, &measured), LH_TIME_NEVER);
    sr_probe_on_injection(&probe, 10);
    assert_int_equal(sr_probe_expiry(&probe, &measured), 1110);
    sr_probe_on_heard(&probe, 20);
    assert_int_equal(sr_probe_expiry(&probe, &measured), 1120);
}

static void test_backs_off_after_three(void **state)
{
    (void)state;
    static const lh_time spans[] = {1100, 1100, 1100, 1651, 2477, 3716, 5575, 8363, 8800, 8800, 8800};
    struct sr_probe probe;
    sr_probe_init(&probe);
    sr_probe_on_injection(&probe, 0);
    lh_time now = 0;
    for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
        assert_int_equal(sr_probe_expiry(&probe, &measured) - now, spans[i]);
        now += spans[i];
        sr_probe_on_sent(&probe, now);
    }
    sr_probe_on_heard(&probe, now);
    assert_int_equal(sr_probe_expiry(&probe, &measured) - now, 1100);
    probe.unanswered = UINT32_MAX;
    sr_probe_on_sent(&probe, now);
    assert_int_equal(sr_probe_expiry(&probe, &measured) - now, 8800);
}

static void test_doubles_while_nothing_was_measured(void **state)
{
    (void)state;
    struct lh_path_view path = {0};
    struct sr_timing blind = sr_timing_of(&path);
    struct sr_probe probe;
    sr_probe_init(&probe);
    sr_probe_on_injection(&probe, 0);
    for (uint32_t i = 0; i < 14; i++) {
        lh_time span = SR_INITIAL_RTT_NS << (i < 10 ? i : 10);
        assert_int_equal(sr_probe_expiry(&probe, &blind), span);
        sr_probe_on_sent(&probe, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_asked_before_the_first_injection),
        cmocka_unit_test(test_backs_off_after_three),
        cmocka_unit_test(test_doubles_while_nothing_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
