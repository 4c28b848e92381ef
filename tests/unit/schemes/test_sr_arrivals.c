/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/nack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define CHUNKS 128u
#define WINDOW ((lh_time)1600)

static const struct sr_timing timing = {
    .rtt_ns = 12800, .overdue_ns = 14000, .window_ns = WINDOW, .measured = true};

struct fixture {
    struct sr_nack nack;
    struct sr_arrivals arrivals;
    uint64_t bits[CHUNKS / 64];
    uint8_t bitmap[CHUNKS];
    struct lh_receiver_view view;
};

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){.view = {.later_seen_ns = LH_TIME_NEVER, .length_known = true, .chunks = CHUNKS}};
    sr_nack_init(&f.nack);
    sr_arrivals_init(&f.arrivals, CHUNKS, f.bits);
    *state = &f;
    return 0;
}

static void arrive(struct fixture *f, uint32_t first, uint32_t end, lh_time now)
{
    memset(f->bitmap + first, 1, end - first);
    sr_arrivals_update(&f->arrivals, f->bitmap, f->arrivals.seen + end - first);
    sr_nack_on_arrivals(&f->nack, &f->arrivals, &timing, now);
}

static bool report_at(struct fixture *f, lh_time now)
{
    f->view.now = now;
    return sr_nack_on_step(&f->nack, &f->arrivals, &f->view, &timing);
}

static lh_time expiry(struct fixture *f)
{
    return sr_nack_expiry(&f->nack, &f->arrivals, &f->view, &timing);
}

static void test_no_gap_no_report(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 50, 1000);
    assert_int_equal(expiry(f), LH_TIME_NEVER);
    assert_false(report_at(f, 100000));
    sr_nack_on_mark(&f->nack, 1, 50, &timing, 100000);
    assert_false(report_at(f, 200000));
    assert_int_equal(expiry(f), LH_TIME_NEVER);
}

static void test_a_gap_is_reported_a_window_after_its_successor(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 5, 1000);
    arrive(f, 6, 7, 2000);
    assert_false(report_at(f, 2000 + WINDOW - 1));
    assert_int_equal(expiry(f), 2000 + WINDOW);
    assert_true(report_at(f, 2000 + WINDOW));
    assert_int_equal(f->nack.horizon, 7);
    assert_false(report_at(f, 2000 + WINDOW)); /* once */
}

static void test_a_gap_that_closes_in_time_is_not_reported(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 5, 1000);
    arrive(f, 6, 7, 2000);
    arrive(f, 5, 6, 2000 + WINDOW);
    assert_false(report_at(f, 2000 + WINDOW));
    assert_int_equal(expiry(f), LH_TIME_NEVER);
}

static void test_repeats_three_times_then_waits_to_be_asked(void **state)
{
    struct fixture *f = *state;
    arrive(f, 1, 2, 0);
    lh_time now = WINDOW;
    assert_true(report_at(f, now));
    for (lh_time span = WINDOW; span <= 4 * WINDOW; span *= 2) {
        assert_int_equal(expiry(f), now + span);
        assert_false(report_at(f, now + span - 1));
        now += span;
        assert_true(report_at(f, now));
    }
    assert_int_equal(expiry(f), LH_TIME_NEVER);
    assert_false(report_at(f, now + 1000 * WINDOW));
}

static void test_a_new_gap_is_news_and_an_old_one_is_not(void **state)
{
    struct fixture *f = *state;
    arrive(f, 1, 10, 0);
    assert_true(report_at(f, WINDOW));
    arrive(f, 10, 20, 500 + WINDOW);       /* the horizon moves on, over nothing missing */
    assert_true(report_at(f, 2 * WINDOW)); /* the repetition */
    assert_false(report_at(f, 500 + 2 * WINDOW));
    assert_int_equal(f->nack.horizon, 20);
    arrive(f, 21, 22, 500 + 2 * WINDOW);
    assert_true(report_at(f, 500 + 3 * WINDOW));
}

static void test_a_mark_shows_a_lost_end(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 100, 1000);
    sr_nack_on_mark(&f->nack, 1, CHUNKS, &timing, 1500);
    assert_int_equal(expiry(f), 1500 + WINDOW);
    assert_false(report_at(f, 1500 + WINDOW - 1));
    assert_true(report_at(f, 1500 + WINDOW));
    assert_int_equal(f->nack.horizon, CHUNKS);
    assert_int_equal(f->nack.mark, 1);
}

static void test_a_newer_mark_shows_a_lost_repair(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 100, 0);
    sr_nack_on_mark(&f->nack, 1, CHUNKS, &timing, 0);
    assert_true(report_at(f, WINDOW));
    f->nack.repeats_left = 0;
    sr_nack_on_mark(&f->nack, 1, CHUNKS, &timing, 2 * WINDOW); /* the same again says nothing */
    assert_false(report_at(f, 10 * WINDOW));
    sr_nack_on_mark(&f->nack, 2, CHUNKS, &timing, 10 * WINDOW);
    assert_false(report_at(f, 11 * WINDOW - 1));
    assert_true(report_at(f, 11 * WINDOW));
    assert_int_equal(f->nack.mark, 2);
    sr_nack_on_mark(&f->nack, 1, 50, &timing, 11 * WINDOW); /* an old one that comes late */
    assert_false(report_at(f, 11 * WINDOW + 1));
    assert_int_equal(f->nack.mark, 2);
    assert_int_equal(f->nack.horizon, CHUNKS);
}

static void test_a_mark_that_overtakes_waits_for_the_flow_to_pause(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 10, 0);
    sr_nack_on_mark(&f->nack, 1, CHUNKS, &timing, 100);
    for (uint32_t i = 1; i <= 10; i++) {
        arrive(f, i * 10, i * 10 + 10, i * 1000);
        assert_false(report_at(f, i * 1000 + 900));
        assert_int_equal(f->nack.mark, 0);
    }
    assert_false(report_at(f, 10000 + WINDOW - 1));
    assert_true(report_at(f, 10000 + WINDOW));
    assert_int_equal(f->nack.mark, 1);
}

static void test_a_mark_waits_until_arrivals_were_looked_at(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 100, 0);
    sr_nack_on_mark(&f->nack, 1, CHUNKS, &timing, 1000);
    f->view.caught_up_ns = 1000 + WINDOW - 1;
    assert_false(report_at(f, 9000));
    assert_in_range(expiry(f), 9001, 9000 + WINDOW); /* soon, but no busy waiting */
    f->view.caught_up_ns = 1000 + WINDOW;
    assert_true(report_at(f, 9000));
}

/* A connection may begin a later message before this one was injected. */
static void test_a_later_message_proves_nothing(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 100, 0);
    f->view.later_seen_ns = 500;
    assert_false(report_at(f, 500 + 10 * WINDOW));
    assert_int_equal(f->nack.horizon, 100);
    assert_int_equal(expiry(f), LH_TIME_NEVER);
}

static void test_no_horizon_past_the_end(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 64, 0);
    sr_nack_on_mark(&f->nack, 1, CHUNKS, &timing, 0);
    sr_arrivals_limit(&f->arrivals, 70);
    f->view.chunks = 70;
    assert_true(report_at(f, WINDOW));
    assert_int_equal(f->nack.horizon, 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_gap_no_report, set_up),
        cmocka_unit_test_setup(test_a_gap_is_reported_a_window_after_its_successor, set_up),
        cmocka_unit_test_setup(test_a_gap_that_closes_in_time_is_not_reported, set_up),
        cmocka_unit_test_setup(test_repeats_three_times_then_waits_to_be_asked, set_up),
        cmocka_unit_test_setup(test_a_new_gap_is_news_and_an_old_one_is_not, set_up),
        cmocka_unit_test_setup(test_a_mark_shows_a_lost_end, set_up),
        cmocka_unit_test_setup(test_a_newer_mark_shows_a_lost_repair, set_up),
        cmocka_unit_test_setup(test_a_mark_that_overtakes_waits_for_the_flow_to_pause, set_up),
        cmocka_unit_test_setup(test_a_mark_waits_until_arrivals_were_looked_at, set_up),
        cmocka_unit_test_setup(test_a_later_message_proves_nothing, set_up),
        cmocka_unit_test_setup(test_no_horizon_past_the_end, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
