/*
 * test_line.c - one direction of a path, in virtual time: when packets leave, which are dropped, lost
 * and marked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/path/histogram.h"
#include "cli/path/line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS 1000000

/* 8 Mbit/s: a byte a microsecond. */
static struct path_line open_line(uint64_t queue_bytes, uint64_t mark_bytes, double loss)
{
    struct path_line line;
    const struct path_line_config config = {
        .rate_bps = 8000000,
        .delay_ns = 10 * MS,
        .queue_bytes = queue_bytes,
        .mark_bytes = mark_bytes,
        .loss = loss,
        .seed = 1,
    };
    path_line_init(&line, &config);
    return line;
}

static void a_packet_takes_its_time_and_the_delay(void **state)
{
    (void)state;
    struct path_line line = open_line(PATH_NO_LIMIT, PATH_NO_LIMIT, 0);
    struct path_verdict verdict = path_line_arrival(&line, 5, 1000, false);
    assert_int_equal(verdict.fate, PATH_DELIVERED);
    assert_int_equal(verdict.leave_ns, 5 + 1 * MS + 10 * MS);
    verdict = path_line_arrival(&line, 5, 500, false);
    assert_int_equal(verdict.leave_ns, 5 + 3 * MS / 2 + 10 * MS);
    assert_int_equal(line.counts.queueing.max_ns, 1 * MS);
    /* After an idle time: from its arrival. */
    verdict = path_line_arrival(&line, 20 * MS, 1000, false);
    assert_int_equal(verdict.leave_ns, 31 * MS);
}

/* 4,160 bytes at 3 Gbit/s are no whole number of nanoseconds. */
static void no_time_is_lost_by_rounding(void **state)
{
    (void)state;
    struct path_line line;
    struct path_verdict verdict = {.leave_ns = 0};
    path_line_init(&line, &(struct path_line_config){.rate_bps = 3000000000,
                                                     .queue_bytes = PATH_NO_LIMIT,
                                                     .mark_bytes = PATH_NO_LIMIT});
    for (int i = 0; i < 3000000; i++)
        verdict = path_line_arrival(&line, 0, 4160, false);
    assert_int_equal(verdict.leave_ns, 4160ll * 8 * 1000000);
}

static void without_a_rate_there_is_no_queue(void **state)
{
    (void)state;
    struct path_line line;
    path_line_init(&line, &(struct path_line_config){.delay_ns = 7, .queue_bytes = 1, .mark_bytes = 0});
    for (int i = 0; i < 100; i++) {
        struct path_verdict verdict = path_line_arrival(&line, 3, 1000, true);
        assert_int_equal(verdict.fate, PATH_DELIVERED);
        assert_int_equal(verdict.leave_ns, 10);
        assert_false(verdict.marked);
    }
}

static void what_does_not_fit_is_dropped_at_the_tail(void **state)
{
    (void)state;
    struct path_line line = open_line(3000, PATH_NO_LIMIT, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(path_line_arrival(&line, 0, 1000, false).fate, PATH_DELIVERED);
    assert_int_equal(path_line_backlog(&line, 0), 3000);
    assert_int_equal(path_line_arrival(&line, 0, 1, false).fate, PATH_QUEUE_FULL);
    /* One microsecond before there is room for it, and then. */
    assert_int_equal(path_line_arrival(&line, 1 * MS - 1000, 1000, false).fate, PATH_QUEUE_FULL);
    assert_int_equal(path_line_arrival(&line, 1 * MS, 1000, false).fate, PATH_DELIVERED);
    assert_int_equal(line.counts.packets, 6);
    assert_int_equal(line.counts.delivered_packets, 4);
    assert_int_equal(line.counts.queue_dropped_packets, 2);
    assert_int_equal(line.counts.queue_dropped_bytes, 1001);
    assert_int_equal(line.counts.queue_peak_bytes, 3000);
}

/* What was dropped takes no time of the bottleneck. */
static void an_idle_line_takes_a_packet_above_its_queue(void **state)
{
    (void)state;
    struct path_line line = open_line(100, PATH_NO_LIMIT, 0);
    assert_int_equal(path_line_arrival(&line, 0, 1000, false).leave_ns, 11 * MS);
    assert_int_equal(path_line_arrival(&line, 0, 1000, false).fate, PATH_QUEUE_FULL);
    assert_int_equal(path_line_arrival(&line, 1 * MS, 1000, false).leave_ns, 12 * MS);
}

static void marks_begin_above_the_threshold(void **state)
{
    (void)state;
    struct path_line line = open_line(PATH_NO_LIMIT, 2000, 0);
    assert_false(path_line_arrival(&line, 0, 1000, true).marked);
    assert_false(path_line_arrival(&line, 0, 1000, true).marked);
    assert_false(path_line_arrival(&line, 0, 1000, true).marked); /* finds 2,000: not more */
    assert_false(path_line_arrival(&line, 0, 1000, false).marked);
    assert_true(path_line_arrival(&line, 0, 1000, true).marked);
    assert_int_equal(line.counts.marked_packets, 1);
}

static void loss_is_drawn_for_each_packet_and_takes_its_time(void **state)
{
    (void)state;
    enum { PACKETS = 1000000 };
    struct path_line line = open_line(PATH_NO_LIMIT, PATH_NO_LIMIT, 0.01), again = line;
    for (int i = 0; i < PACKETS; i++)
        assert_int_equal(path_line_arrival(&line, 0, 10, false).fate,
                         path_line_arrival(&again, 0, 10, false).fate);
    /* 10,000 expected; six standard deviations are 597. */
    assert_in_range(line.counts.lost_packets, 9403, 10597);
    assert_int_equal(line.counts.lost_packets + line.counts.delivered_packets, PACKETS);
    assert_int_equal(line.free_ns, 10000ll * PACKETS);
}

static void a_new_rate_holds_for_what_waits(void **state)
{
    (void)state;
    struct path_line line = open_line(PATH_NO_LIMIT, PATH_NO_LIMIT, 0);
    int64_t first = path_line_arrival(&line, 0, 1000, false).leave_ns;
    int64_t second = path_line_arrival(&line, 0, 1000, false).leave_ns;
    int64_t third = path_line_arrival(&line, 0, 1000, false).leave_ns;
    /* The first has left the bottleneck; half of the second has. */
    struct path_rate_change change = path_line_set_rate(&line, 3 * MS / 2, 4000000);
    assert_int_equal(path_line_moved(&change, first), 11 * MS);
    assert_int_equal(path_line_moved(&change, second), 3 * MS / 2 + 1 * MS + 10 * MS);
    assert_int_equal(path_line_moved(&change, third), 3 * MS / 2 + 3 * MS + 10 * MS);
    assert_int_equal(path_line_backlog(&line, 3 * MS / 2), 1500);
    assert_int_equal(path_line_arrival(&line, 3 * MS / 2, 1000, false).leave_ns,
                     3 * MS / 2 + 5 * MS + 10 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_takes_its_time_and_the_delay),
        cmocka_unit_test(no_time_is_lost_by_rounding),
        cmocka_unit_test(without_a_rate_there_is_no_queue),
        cmocka_unit_test(what_does_not_fit_is_dropped_at_the_tail),
        cmocka_unit_test(an_idle_line_takes_a_packet_above_its_queue),
        cmocka_unit_test(marks_begin_above_the_threshold),
        cmocka_unit_test(loss_is_drawn_for_each_packet_and_takes_its_time),
        cmocka_unit_test(a_new_rate_holds_for_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
