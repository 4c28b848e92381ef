/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/auto_scheme.h"

#include "message/rx/arrivals.h"
#include "unit/message/rx_part.h"

static int begin(void **state)
{
    (void)state;
    return rx_part_begin_with(lh_schemes()[0], 0, true);
}

static void test_nothing_when_the_scheme_was_named(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice;
    auto_scheme_choose(&rx, SLOT, 0, &choice);
    assert_ptr_equal(choice.scheme, &fake_scheme);
    assert_true(auto_scheme_may_start(&rx));
    assert_false(auto_scheme_planning(&rx));
    assert_int_equal(auto_scheme_segment_bytes_min(&rx), SLOT);
}

/* The first message of a size starts a plan, once there is a round trip. */
static void test_plans_once_the_path_is_known(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice;
    qp.path.rtt_ns = 0;
    auto_scheme_choose(&rx, 1 << 20, 0, &choice);
    assert_false(auto_scheme_planning(&rx));
    qp.path.rtt_ns = RTT_NS;
    auto_scheme_choose(&rx, 1 << 20, 0, &choice);
    assert_true(auto_scheme_planning(&rx));
    uint32_t candidates = 1;
    for (; auto_scheme_plan(&rx); candidates++)
        auto_scheme_planned(&rx, 100, 1);
    auto_scheme_planned(&rx, 100, 1);
    assert_true(candidates > 1);
    assert_false(auto_scheme_planning(&rx));
    assert_int_equal(rx.stats.schemes_planned, 1);
    struct lh_scheme_report report;
    auto_scheme_report(&rx, &report);
    assert_true(report.automatic && report.plans == 1 && report.message_bytes == 1 << 20);
}

/* After a plan there is a rest, of a multiple of what it took. */
static void test_rests_after_a_plan(void **state)
{
    (void)state;
    struct scheme_choice choice = rx.choice;
    auto_scheme_choose(&rx, 1 << 20, 0, &choice);
    while (auto_scheme_plan(&rx))
        ;
    auto_scheme_planned(&rx, 1000, 50);
    const lh_time rest_until = 1000 + AUTO_CHOICE_REST * 50;
    auto_scheme_choose(&rx, 100, rest_until - 1, &choice);
    assert_false(auto_scheme_planning(&rx));
    auto_scheme_choose(&rx, 100, rest_until, &choice);
    assert_true(auto_scheme_planning(&rx));
}

/* One that is decided later is decided better: no further ahead than 16 MiB and twice what the path holds. */
static void test_how_far_ahead(void **state)
{
    (void)state;
    assert_true(auto_scheme_may_start(&rx));
    rx.segment_next = 1;
    *segment_at(0) = (struct rx_segment){.state = SEGMENT_OPEN, .bytes = (16 << 20) - 1};
    assert_true(auto_scheme_may_start(&rx));
    segment_at(0)->bytes++;
    assert_false(auto_scheme_may_start(&rx));
    segment_at(0)->state = SEGMENT_DONE;
    assert_true(auto_scheme_may_start(&rx));
    rx.segment_next = 0;
}

/* A gap that a later chunk shows counts as lost when the reordering window is over. */
static void test_counts_losses(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    (void)step_at(0);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT, 0, 1);
    fake_arrive(0, 0);
    fake_arrive(0, 2);
    (void)arrivals_poll(&rx, 1000);
    const lh_time mark_at = segment_at(0)->watch.mark_at;
    assert_int_equal(mark_at, 1000 + WINDOW_NS);
    (void)arrivals_poll(&rx, mark_at - 1);
    assert_int_equal(rx.automatic->estimate.chunks_lost, 0);
    (void)arrivals_poll(&rx, mark_at);
    assert_int_equal(rx.automatic->estimate.chunks_lost, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_nothing_when_the_scheme_was_named),
        cmocka_unit_test_setup_teardown(test_plans_once_the_path_is_known, begin, rx_part_end),
        cmocka_unit_test_setup_teardown(test_rests_after_a_plan, begin, rx_part_end),
        cmocka_unit_test_setup_teardown(test_how_far_ahead, begin, rx_part_end),
        cmocka_unit_test_setup_teardown(test_counts_losses, begin, rx_part_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
