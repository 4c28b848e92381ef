/*
 * test_path_line.c - one direction of a path, in virtual time: when packets leave, which are dropped, lost
 * and marked.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/path/path_line.h"

/* ---- test line ------------------------------------------------------------------------------------- */

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

static struct path_line open_bucket(uint64_t queue_bytes, uint64_t bucket_bytes)
{
    struct path_line line = open_line(queue_bytes, PATH_NO_LIMIT, 0);
    line.config.bucket_bytes = bucket_bytes;
    line.free_ns = -100 * MS; /* the bucket is full */
    return line;
}

/* So much passes at once, and the excess is dropped; a pause fills the bucket, and no more. */
static void a_policer_drops_the_excess(void **state)
{
    (void)state;
    struct path_line line = open_bucket(0, 3000);
    for (int i = 0; i < 3; i++) {
        struct path_verdict verdict = path_line_arrival(&line, 5, 1000, false);
        assert_int_equal(verdict.fate, PATH_DELIVERED);
        assert_int_equal(verdict.leave_ns, 5 + 10 * MS);
    }
    assert_int_equal(path_line_arrival(&line, 5, 1000, false).fate, PATH_QUEUE_FULL);
    assert_int_equal(path_line_arrival(&line, 5 + MS, 1000, false).fate, PATH_DELIVERED);
    assert_int_equal(path_line_arrival(&line, 5 + MS, 1000, false).fate, PATH_QUEUE_FULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(path_line_arrival(&line, 50 * MS, 1000, false).fate, PATH_DELIVERED);
    assert_int_equal(path_line_arrival(&line, 50 * MS, 1000, false).fate, PATH_QUEUE_FULL);
    assert_int_equal(line.counts.queueing.max_ns, 0);
}

/* With a queue what exceeds the bucket waits. */
static void a_shaper_has_a_bucket_and_a_queue(void **state)
{
    (void)state;
    struct path_line line = open_bucket(2000, 3000);
    for (int i = 0; i < 5; i++) {
        struct path_verdict verdict = path_line_arrival(&line, 0, 1000, false);
        assert_int_equal(verdict.fate, PATH_DELIVERED);
        assert_int_equal(verdict.leave_ns, (i < 3 ? 0 : i - 2) * MS + 10 * MS);
    }
    assert_int_equal(path_line_arrival(&line, 0, 1000, false).fate, PATH_QUEUE_FULL);
    assert_int_equal(path_line_backlog(&line, 0), 2000);
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

static int run_line(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_takes_its_time_and_the_delay),
        cmocka_unit_test(no_time_is_lost_by_rounding),
        cmocka_unit_test(a_policer_drops_the_excess),
        cmocka_unit_test(a_shaper_has_a_bucket_and_a_queue),
        cmocka_unit_test(without_a_rate_there_is_no_queue),
        cmocka_unit_test(what_does_not_fit_is_dropped_at_the_tail),
        cmocka_unit_test(an_idle_line_takes_a_packet_above_its_queue),
        cmocka_unit_test(marks_begin_above_the_threshold),
        cmocka_unit_test(loss_is_drawn_for_each_packet_and_takes_its_time),
        cmocka_unit_test(a_new_rate_holds_for_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test processors ------------------------------------------------------------------------------- */

/* The path has one processor, and what runs at its ends none of it. */

static void one_processor_is_not_divided(void **state)
{
    (void)state;
    cpu_set_t all, path, ends;
    CPU_ZERO(&all);
    assert_false(path_processors_divide(&all, &path, &ends));
    CPU_SET(CPU_SETSIZE - 1, &all);
    assert_false(path_processors_divide(&all, &path, &ends));
    assert_int_equal(CPU_COUNT(&path), 0);
    assert_int_equal(CPU_COUNT(&ends), 0);
}

static void the_first_is_the_paths(void **state)
{
    (void)state;
    cpu_set_t all, path, ends;
    CPU_ZERO(&all);
    CPU_SET(3, &all);
    CPU_SET(5, &all);
    CPU_SET(CPU_SETSIZE - 1, &all);
    assert_true(path_processors_divide(&all, &path, &ends));
    assert_int_equal(CPU_COUNT(&path), 1);
    assert_true(CPU_ISSET(3, &path));
    assert_int_equal(CPU_COUNT(&ends), 2);
    assert_true(CPU_ISSET(5, &ends) && CPU_ISSET(CPU_SETSIZE - 1, &ends));
}

/* In a child: this process goes on as before. */
static void the_process_moves_to_its_own(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t before, ends, now, both;
        bool right = sched_getaffinity(0, sizeof before, &before) == 0;
        bool divided = path_processors_take(&ends);
        right = right && sched_getaffinity(0, sizeof now, &now) == 0;
        CPU_AND(&both, &now, &ends);
        if (divided)
            right = right && CPU_COUNT(&now) == 1 && CPU_COUNT(&both) == 0 &&
                    CPU_COUNT(&ends) == CPU_COUNT(&before) - 1;
        else
            right = right && CPU_EQUAL(&now, &before) && CPU_COUNT(&ends) == 0;
        _exit(!right);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int run_processors(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_processor_is_not_divided),
        cmocka_unit_test(the_first_is_the_paths),
        cmocka_unit_test(the_process_moves_to_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test ring ------------------------------------------------------------------------------------- */

/* Packets of any size come out of the ring as they went in, at every wrap. */

enum { PACKET_MAX = 200, CAPACITY = 1000 };

static uint32_t size_of(unsigned number)
{
    return 1 + number * 7919 % PACKET_MAX;
}

static bool put(struct path_ring *ring, unsigned number)
{
    struct path_packet *packet = path_ring_space(ring);
    if (!packet)
        return false;
    packet->bytes = size_of(number);
    packet->leave_ns = number;
    memset(packet->data, (int)number, packet->bytes);
    path_ring_push(ring, packet);
    return true;
}

static void take(struct path_ring *ring, unsigned number)
{
    uint8_t expected[PACKET_MAX];
    struct path_packet *packet = path_ring_first(ring);
    assert_non_null(packet);
    assert_int_equal(packet->leave_ns, number);
    assert_int_equal(packet->bytes, size_of(number));
    memset(expected, (int)number, sizeof expected);
    assert_memory_equal(packet->data, expected, packet->bytes);
    path_ring_pop(ring);
}

/* Fills it and drains it by every share, so that each end meets each state. */
static void packets_come_out_as_they_went_in(void **state)
{
    (void)state;
    struct path_ring ring;
    unsigned in = 0, out = 0;
    assert_true(path_ring_open(&ring, CAPACITY, PACKET_MAX));
    assert_null(path_ring_first(&ring));
    for (unsigned round = 0; round < 20000; round++) {
        size_t held = 0;
        while (put(&ring, in))
            in++;
        for (const struct path_packet *packet = path_ring_first(&ring); packet;
             packet = path_ring_next(&ring, packet))
            held += packet->stride;
        assert_true(held + PACKET_MAX >= CAPACITY / 2);
        for (unsigned i = 0; i < 1 + round % 13 && out < in; i++)
            take(&ring, out++);
    }
    while (out < in)
        take(&ring, out++);
    assert_null(path_ring_first(&ring));
    path_ring_close(&ring);
}

/* A packet that is read and then dropped leaves no trace. */
static void space_that_is_not_used_stays(void **state)
{
    (void)state;
    struct path_ring ring;
    unsigned in = 0, out = 0;
    assert_true(path_ring_open(&ring, CAPACITY, PACKET_MAX));
    for (unsigned round = 0; round < 20000; round++) {
        for (unsigned i = 0; i < 1 + round % 3; i++)
            path_ring_space(&ring);
        if (round % 5 && put(&ring, in))
            in++;
        if (round % 4 && out < in)
            take(&ring, out++);
    }
    while (out < in)
        take(&ring, out++);
    assert_null(path_ring_first(&ring));
    path_ring_close(&ring);
}

static int run_ring(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_come_out_as_they_went_in),
        cmocka_unit_test(space_that_is_not_used_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_line() + run_processors() + run_ring();
}
