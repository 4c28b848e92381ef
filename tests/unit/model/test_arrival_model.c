/*
 * test_arrival_model.c - the examples of RFC 4737 section 6, by hand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "model/arrival_model.h"
#include "support/near.h"

/* ---- test arrival order ---------------------------------------------------------------------------- */

#define PACKETS_MAX 16

static struct model_place places[PACKETS_MAX];

/* Arrivals 1 ms apart. */
static struct model_arrival_order order_of(uint32_t packets, const uint32_t *numbers, size_t count)
{
    struct model_arrival_order order;
    model_arrival_order_init(&order, places, packets);
    for (size_t i = 0; i < count; i++)
        model_arrival_order_add(&order, numbers[i], i * LH_NS_PER_MS);
    return order;
}

static void test_in_order(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(5, (uint32_t[]){0, 1, 3, 4}, 4);
    assert_int_equal(order.received, 4);
    assert_int_equal(order.reordered + order.duplicates + order.extent_max, 0);
    assert_true(model_arrival_order_has(&order, 3) && !model_arrival_order_has(&order, 2));
    assert_false(model_arrival_order_has(&order, 5));
}

/* One packet late by two places: 0 1 3 4 2. Only that one is reordered; the first that overtook it is 3. */
static void test_one_late(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(5, (uint32_t[]){0, 1, 3, 4, 2}, 5);
    assert_int_equal(order.received, 5);
    assert_int_equal(order.reordered, 1);
    assert_int_equal(order.extent_max, 2);
    assert_int_equal(order.extent_sum, 2);
    assert_int_equal(order.late_max_ns, 2 * LH_NS_PER_MS);
}

/* One packet early, 0 3 1 2: those that it passed are reordered, with extents 1 and 2. */
static void test_one_early(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(4, (uint32_t[]){0, 3, 1, 2}, 4);
    assert_int_equal(order.reordered, 2);
    assert_int_equal(order.extent_sum, 3);
    assert_int_equal(order.extent_max, 2);
}

static void test_duplicates_are_no_reordering(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(4, (uint32_t[]){0, 1, 0, 3, 1, 2, 2}, 7);
    assert_int_equal(order.received, 4);
    assert_int_equal(order.duplicates, 3);
    assert_int_equal(order.reordered, 1);
    assert_int_equal(order.extent_max, 1);
}

static void test_last_place_and_empty(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(PACKETS_MAX, (uint32_t[]){PACKETS_MAX - 1, 0}, 2);
    assert_int_equal(order.received, 2);
    assert_int_equal(order.extent_max, 1);
    order = order_of(0, NULL, 0);
    assert_false(model_arrival_order_has(&order, 0));
}

/* A clock that steps back must not make a packet late for ages. */
static void test_clock_goes_back(void **state)
{
    (void)state;
    struct model_arrival_order order;
    model_arrival_order_init(&order, places, 3);
    model_arrival_order_add(&order, 2, 100);
    model_arrival_order_add(&order, 1, 50);
    assert_int_equal(order.late_max_ns, 0);
}

static int run_arrival_order(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_one_late),
        cmocka_unit_test(test_one_early),
        cmocka_unit_test(test_duplicates_are_no_reordering),
        cmocka_unit_test(test_last_place_and_empty),
        cmocka_unit_test(test_clock_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test arrival watch ---------------------------------------------------------------------------- */

/*
 * What counts as lost while a bitmap fills: by hand, and against a sender of which
 * each loss is known.
 */

#define CHUNKS 100u
#define WINDOW (3 * LH_NS_PER_MS)

struct bench {
    struct path_estimate estimate;
    struct arrival_watch watch;
    uint8_t bitmap[CHUNKS];
    struct arrival_look look;
};

static void start(struct bench *bench)
{
    memset(bench, 0, sizeof *bench);
    path_estimate_init(&bench->estimate);
    arrival_watch_init(&bench->watch);
    bench->look = (struct arrival_look){.window_ns = WINDOW, .bitmap = bench->bitmap, .chunks = CHUNKS};
}

static void arrive(struct bench *bench, uint32_t from, uint32_t to)
{
    memset(bench->bitmap + from, 1, to - from);
}

static void look_at(struct bench *bench, lh_time now)
{
    bench->look.now = now;
    arrival_watch_look(&bench->watch, &bench->look, &bench->estimate);
}

static void expect(const struct bench *bench, uint64_t seen, uint64_t lost, double run)
{
    assert_int_equal(bench->estimate.chunks_seen, seen);
    assert_int_equal(bench->estimate.chunks_lost, lost);
    assert_near(path_estimate_run_chunks(&bench->estimate), run, 1e-9);
}

/* Behind the last that has arrived, wherever in a word of eight it is, nothing counts. */
static void the_last_is_found_at_each_place(void **state)
{
    (void)state;
    for (uint32_t last = 0; last < CHUNKS; last++) {
        struct bench bench;
        start(&bench);
        arrive(&bench, last, last + 1);
        look_at(&bench, 0);
        assert_int_equal(bench.watch.frontier, last + 1);
    }
}

/* 0 to 9 and 13 to 19 of 100: 10, 11 and 12 are one run; 19 is the last, and not counted. */
static void a_hole_is_a_loss_when_the_window_is_over(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    look_at(&bench, 0);
    assert_true(bench.watch.mark_at == LH_TIME_NEVER); /* nothing to wait for */
    arrive(&bench, 0, 10);
    arrive(&bench, 13, 20);
    look_at(&bench, 100);
    assert_true(bench.watch.mark_at == 100 + WINDOW);
    look_at(&bench, 100 + WINDOW - 1);
    expect(&bench, 0, 0, 1);
    look_at(&bench, 100 + WINDOW);
    expect(&bench, 19, 3, 3);
    assert_true(bench.watch.mark_at == LH_TIME_NEVER);
}

/* What comes within the window was reordered. */
static void reordering_is_no_loss(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    arrive(&bench, 0, 10);
    arrive(&bench, 13, 20);
    look_at(&bench, 100);
    arrive(&bench, 10, 13);
    look_at(&bench, 100 + WINDOW);
    expect(&bench, 19, 0, 1);
}

/* A mark stays while more comes; what came after it waits for the next. */
static void each_chunk_counts_once(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        if (i % 10 != 5)
            arrive(&bench, i, i + 1);
        look_at(&bench, i * LH_NS_PER_MS);
    }
    look_at(&bench, 200 * LH_NS_PER_MS);
    look_at(&bench, 300 * LH_NS_PER_MS);
    expect(&bench, 99, 10, 1);
}

/* A run that one mark cuts in two is one run. */
static void a_run_across_a_mark(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    arrive(&bench, 0, 10);
    look_at(&bench, 0);
    bench.look.later_arrived = true; /* all that is missing of 10 … 19 */
    bench.look.chunks = 20;
    look_at(&bench, WINDOW);
    expect(&bench, 9, 0, 1);
    look_at(&bench, 2 * WINDOW);
    expect(&bench, 20, 10, 10);
}

static void overtaken_counts_to_the_end(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    arrive(&bench, 0, 50);
    bench.look.later_arrived = true;
    look_at(&bench, 0);
    look_at(&bench, WINDOW);
    expect(&bench, 100, 50, 50);
}

/* After a pause what comes past the last may be a repair: neither lost nor arrived. */
static void after_a_pause_nothing_is_told(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    arrive(&bench, 0, 50);
    look_at(&bench, 0);
    look_at(&bench, WINDOW);
    expect(&bench, 49, 0, 1);
    bench.look.paused = true;
    arrive(&bench, 50, 60);
    arrive(&bench, 62, 70);
    look_at(&bench, 10 * WINDOW);
    bench.look.paused = false;
    arrive(&bench, 71, 80);
    look_at(&bench, 10 * WINDOW + 1);
    look_at(&bench, 11 * WINDOW + 1);
    expect(&bench, 49 + 10, 1, 1); /* 69 … 78, of which 70 is lost; 49 … 68 are passed over */
}

/* The first look at a transfer is never one after a pause that matters. */
static void a_pause_before_the_first_chunk(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    bench.look.paused = true;
    arrive(&bench, 0, 4);
    arrive(&bench, 5, 10);
    look_at(&bench, 0);
    look_at(&bench, WINDOW);
    expect(&bench, 9, 1, 1);
}

static void the_end_counts_what_is_left(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    arrive(&bench, 0, 30);
    arrive(&bench, 40, 60);
    look_at(&bench, 0);
    bench.look.later_arrived = true; /* parity came, and the rest is decoded */
    bench.look.now = 1;
    arrival_watch_end(&bench.watch, &bench.look, &bench.estimate);
    expect(&bench, 100, 50, 25);
}

/* A peer may send what lies past the end, and then tell a length that is shorter. */
static void a_length_that_is_less_than_what_came(void **state)
{
    (void)state;
    struct bench bench;
    start(&bench);
    arrive(&bench, 0, 90);
    look_at(&bench, 0);
    bench.look.chunks = 10;
    look_at(&bench, WINDOW);
    look_at(&bench, 2 * WINDOW);
    arrival_watch_end(&bench.watch, &bench.look, &bench.estimate);
    expect(&bench, 10, 0, 1);
}

/* 2,000 transfers at 5 % loss, each lost chunk again after a round trip: the loss is what was drawn. */
static void against_a_sender(void **state)
{
    (void)state;
    struct bench bench;
    struct lh_prng prng;
    struct path_estimate all;
    lh_prng_seed(&prng, 11);
    path_estimate_init(&all);
    const lh_time chunk_ns = LH_NS_PER_MS / 10, rtt = 20 * LH_NS_PER_MS;
    for (int transfer = 0; transfer < 2000; transfer++) {
        lh_time due[CHUNKS], last = 0, previous = 0;
        start(&bench);
        for (uint32_t i = 0; i < CHUNKS; i++) {
            due[i] = i * chunk_ns;
            while (lh_prng_double(&prng) < 0.05)
                due[i] += rtt;
            last = due[i] > last ? due[i] : last;
        }
        bench.estimate = all;
        for (lh_time now = 0; now <= last; now += chunk_ns) {
            bool any = false;
            for (uint32_t i = 0; i < CHUNKS; i++) {
                any |= due[i] == now;
                bench.bitmap[i] |= due[i] == now;
            }
            bench.look.paused = now - previous > rtt / 4 * 3;
            previous = any ? now : previous;
            look_at(&bench, now);
        }
        arrival_watch_end(&bench.watch, &bench.look, &bench.estimate);
        all = bench.estimate;
    }
    assert_true(all.chunks_seen > 2000 * (CHUNKS - 8));
    assert_near((double)all.chunks_lost / (double)all.chunks_seen, 0.05, 0.04);
    assert_near(path_estimate_run_chunks(&all), 1 / 0.95, 0.01);
}

static int run_arrival_watch(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_is_found_at_each_place),
        cmocka_unit_test(a_hole_is_a_loss_when_the_window_is_over),
        cmocka_unit_test(reordering_is_no_loss),
        cmocka_unit_test(each_chunk_counts_once),
        cmocka_unit_test(a_run_across_a_mark),
        cmocka_unit_test(overtaken_counts_to_the_end),
        cmocka_unit_test(after_a_pause_nothing_is_told),
        cmocka_unit_test(a_pause_before_the_first_chunk),
        cmocka_unit_test(the_end_counts_what_is_left),
        cmocka_unit_test(a_length_that_is_less_than_what_came),
        cmocka_unit_test(against_a_sender),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_arrival_order() + run_arrival_watch();
}
