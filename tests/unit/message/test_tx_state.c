/*
 * test_tx_state.c - how long chunks wait before they leave.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/tx_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_empty_queue_has_no_delay(void **state)
{
    (void)state;
    struct queue_delay_mark marks[QUEUE_DELAY_MARKS];
    struct queue_delay delay = {.marks = marks};
    assert_int_equal(queue_delay_now(&delay, 5), 0);
    queue_delay_on_left(&delay, 100, 7);
    assert_int_equal(queue_delay_now(&delay, 1000), 0);
}

/* What waits has waited since it was posted, however long that is. */
static void test_grows_while_nothing_leaves(void **state)
{
    (void)state;
    struct queue_delay_mark marks[QUEUE_DELAY_MARKS];
    struct queue_delay delay = {.marks = marks};
    queue_delay_on_posted(&delay, 1000, 50);
    queue_delay_on_posted(&delay, 3000, 90);
    assert_int_equal(queue_delay_now(&delay, 90), 40);
    queue_delay_on_left(&delay, 999, 1050);
    assert_int_equal(queue_delay_now(&delay, 1050), 1000);
    queue_delay_on_left(&delay, 1000, 1060);
    assert_int_equal(queue_delay_now(&delay, 1060), 1010);
}

/* Slower than the timers run that were started with it. */
static void test_decays(void **state)
{
    (void)state;
    struct queue_delay_mark marks[QUEUE_DELAY_MARKS];
    struct queue_delay delay = {.marks = marks};
    queue_delay_on_posted(&delay, 10, 100);
    queue_delay_on_left(&delay, 10, 900);
    assert_int_equal(queue_delay_now(&delay, 900), 800);
    assert_int_equal(queue_delay_now(&delay, 1700), 700);
    queue_delay_on_posted(&delay, 20, 1700);
    queue_delay_on_left(&delay, 20, 1710); /* a short wait does not shorten it at once */
    assert_int_equal(queue_delay_now(&delay, 1710), 699);
    assert_int_equal(queue_delay_now(&delay, 1710 + 8 * 699), 0);
    assert_int_equal(queue_delay_now(&delay, 100000), 0);
}

/* What left has to be acknowledged by the timer that was set for its wait. */
static void test_holds(void **state)
{
    (void)state;
    struct queue_delay_mark marks[QUEUE_DELAY_MARKS];
    struct queue_delay delay = {.marks = marks, .hold_ns = 160};
    queue_delay_on_posted(&delay, 10, 100);
    queue_delay_on_left(&delay, 10, 900);
    assert_int_equal(queue_delay_now(&delay, 1060), 800);
    assert_int_equal(queue_delay_now(&delay, 1860), 700);
}

/* More marks than there are places: it errs towards longer, and never forgets. */
static void test_many_marks(void **state)
{
    (void)state;
    struct queue_delay_mark marks[QUEUE_DELAY_MARKS];
    struct queue_delay delay = {.marks = marks};
    for (uint32_t i = 1; i <= 5 * QUEUE_DELAY_MARKS; i++)
        queue_delay_on_posted(&delay, i, 10 * i);
    lh_time now = 10000;
    for (uint32_t i = 1; i <= 5 * QUEUE_DELAY_MARKS; i++) {
        queue_delay_on_left(&delay, i, now);
        assert_true(queue_delay_now(&delay, now) >= now - 10 * i);
    }
    assert_true(queue_delay_now(&delay, now) <= now - 10);
    assert_int_equal(queue_delay_now(&delay, now + 9 * now), 0);
}

/* Who looks late, at what left at once, sees no wait. */
static void test_looking_late_is_no_wait(void **state)
{
    (void)state;
    struct queue_delay_mark marks[QUEUE_DELAY_MARKS];
    struct queue_delay delay = {.marks = marks};
    queue_delay_on_posted(&delay, 10, 100);
    queue_delay_on_left(&delay, 10, 103);
    assert_int_equal(queue_delay_now(&delay, 103), 3);
    assert_int_equal(queue_delay_now(&delay, 25000), 0);
    queue_delay_on_posted(&delay, 20, 30000);
    queue_delay_on_left(&delay, 20, 29990); /* the clock of another worker */
    assert_int_equal(queue_delay_now(&delay, 30000), 0);
}

/* One that allows for as long as the oldest has waited at most ends then; one that does not moves on. */
static void test_timers_that_move(void **state)
{
    (void)state;
    struct queue_delay_mark marks[QUEUE_DELAY_MARKS];
    struct queue_delay delay = {.marks = marks, .hold_ns = 10000};
    assert_false(queue_delay_moves(&delay, LH_TIME_NEVER, 50));
    queue_delay_on_posted(&delay, 10, 100);
    queue_delay_on_left(&delay, 10, 400); /* it had waited for 300 */
    assert_false(queue_delay_moves(&delay, LH_TIME_NEVER, 500));
    queue_delay_on_posted(&delay, 20, 1000);
    queue_delay_on_posted(&delay, 30, 1100);
    assert_false(queue_delay_moves(&delay, 1300, 1200));
    assert_true(queue_delay_moves(&delay, 1301, 1200));
    assert_true(queue_delay_moves(&delay, 2001, 2000));
    assert_false(queue_delay_moves(&delay, 900, 2000)); /* of what had left before */
    uint32_t oldest = queue_delay_oldest(&delay);
    assert_true(!queue_delay_ends(&delay, 19) && queue_delay_ends(&delay, 20));
    queue_delay_on_left(&delay, 20, 2000);
    assert_int_not_equal(queue_delay_oldest(&delay), oldest);
    assert_false(queue_delay_moves(&delay, 2001, 2000)); /* the next one is younger */
    queue_delay_on_left(&delay, 30, 2000);
    assert_false(queue_delay_ends(&delay, 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_queue_has_no_delay),
        cmocka_unit_test(test_grows_while_nothing_leaves),
        cmocka_unit_test(test_decays),
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_many_marks),
        cmocka_unit_test(test_looking_late_is_no_wait),
        cmocka_unit_test(test_timers_that_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
