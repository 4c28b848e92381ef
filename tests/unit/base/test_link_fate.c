/*
 * test_link_fate.c - what a link does to packets: timing exactly, draws within bounds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/link_fate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define PACKET_BYTES 1250u /* 1000 ns at 10 Gbit/s */

static struct lh_link_state link_of(const char *text, uint64_t direction)
{
    struct lh_link_spec spec;
    struct lh_link_state link;
    assert_int_equal(lh_link_parse(text, &spec), 0);
    lh_link_state_init(&link, &spec, direction);
    return link;
}

static void test_no_emulation_changes_nothing(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("none", 0);
    for (lh_time now = 0; now < 100; now++) {
        struct lh_link_fate fate = lh_link_decide(&link, now, PACKET_BYTES);
        assert_true(fate.accepted && !fate.dropped && !fate.corrupted && !fate.reordered);
        assert_true(fate.copies == 1 && fate.arrive_ns[0] == now);
        assert_true(lh_link_ready_ns(&link, now) == now);
    }
}

static void test_delay_is_exact(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("rtt=25ms", 0);
    struct lh_link_fate fate = lh_link_decide(&link, 1000, PACKET_BYTES);
    assert_true(fate.copies == 1 && fate.arrive_ns[0] == 1000 + 12500000);
}

static void test_bottleneck_spaces_packets(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("rate=10Gbit,delay=1us", 0);
    for (unsigned i = 1; i <= 20; i++)
        assert_true(lh_link_decide(&link, 0, PACKET_BYTES).arrive_ns[0] == i * 1000 + 1000);
    /* The next comes when all have left, and 500 ns more: it starts at once. */
    assert_true(lh_link_decide(&link, 20500, PACKET_BYTES).arrive_ns[0] == 22500);
    assert_true(lh_link_decide(&link, 20500, PACKET_BYTES / 2).arrive_ns[0] == 23000);
}

/* 4186 bytes at 400 Gbit/s take 83.72 ns: what is rounded off is not lost. */
static void test_bottleneck_does_not_drift(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("rate=400Gbit,queue=1GiB", 0);
    for (uint64_t i = 1; i <= 100001; i++)
        assert_true(lh_link_decide(&link, 0, 4186).arrive_ns[0] == i * 8372 / 100);
    /* After a pause counting starts anew. */
    assert_true(lh_link_decide(&link, 10000000, 4186).arrive_ns[0] == 10000083);
}

static void test_extreme_rates_do_not_wrap(void **state)
{
    (void)state;
    struct lh_link_state slow = link_of("rate=1bit", 0);
    assert_true(lh_link_decide(&slow, 0, PACKET_BYTES).arrive_ns[0] == 10000 * LH_NS_PER_S);
    struct lh_link_state fast = link_of("rate=18446744Tbit,queue=16777215TiB", 0);
    for (uint64_t i = 1; i <= 1000; i++) {
        /* 2^35 - 8 bits at that rate take 1.8626 ns. */
        lh_time arrive = lh_link_decide(&fast, 5, UINT32_MAX).arrive_ns[0];
        assert_in_range(arrive, 5 + i * 18626 / 10000 - 1, 5 + i * 18627 / 10000 + 1);
    }
    struct lh_link_state wide = link_of("rate=1bit,queue=16777215TiB", 0);
    assert_true(lh_link_decide(&wide, 0, 1).accepted);
    assert_true(lh_link_decide(&wide, 0, 1).arrive_ns[0] == 16 * LH_NS_PER_S);
}

/* Three packets fit the queue: a fifth is refused while more than those are before it. */
static void test_full_queue_pushes_back(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("rate=10Gbit,queue=3750,loss=0.5,jitter=9ns,corrupt=0.5", 0);
    for (int i = 0; i < 4; i++) {
        assert_true(lh_link_ready_ns(&link, 0) == 0);
        assert_true(lh_link_decide(&link, 0, PACKET_BYTES).accepted);
    }
    struct lh_link_state before = link;
    for (lh_time now = 0; now < 1000; now += 333) {
        struct lh_link_fate fate = lh_link_decide(&link, now, PACKET_BYTES);
        assert_true(!fate.accepted && fate.copies == 0);
        assert_true(lh_link_ready_ns(&link, now) == 1000);
    }
    assert_memory_equal(&link, &before, sizeof link); /* asking costs nothing, draws included */
    assert_true(lh_link_ready_ns(&link, 1000) == 1000);
    assert_true(lh_link_decide(&link, 1000, PACKET_BYTES).accepted);
    assert_false(lh_link_decide(&link, 1000, PACKET_BYTES).accepted);
}

/* The queue holds three packets of data, and as many of control beyond that. */
static void test_control_passes_a_full_queue(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("rate=10Gbit,queue=3750", 0);
    while (lh_link_decide(&link, 0, PACKET_BYTES).accepted)
        continue;
    for (lh_time ahead = 4; ahead < 7; ahead++) {
        struct lh_link_fate fate = lh_link_decide_control(&link, 0, PACKET_BYTES);
        assert_true(fate.accepted && fate.arrive_ns[0] == (ahead + 1) * 1000); /* behind the data */
    }
    assert_false(lh_link_decide_control(&link, 0, PACKET_BYTES).accepted);
    assert_false(lh_link_decide(&link, 3999, PACKET_BYTES).accepted);
    assert_true(lh_link_decide(&link, 4000, PACKET_BYTES).accepted);
    struct lh_link_state dropping = link_of("rate=10Gbit,queue=3750,drop=tail", 0);
    for (int i = 0; i < 4; i++)
        assert_false(lh_link_decide(&dropping, 0, PACKET_BYTES).dropped);
    assert_true(lh_link_decide_control(&dropping, 0, PACKET_BYTES).dropped);
}

static void test_default_queue_follows_the_rate(void **state)
{
    (void)state;
    assert_int_equal(lh_link_queue_bytes(&(struct lh_link_spec){.rate_bps = 2000000000}), 500000);
    assert_int_equal(lh_link_queue_bytes(&(struct lh_link_spec){.rate_bps = 262144000}), 65536);
    assert_int_equal(lh_link_queue_bytes(&(struct lh_link_spec){.rate_bps = 262000000}), 65536);
    assert_int_equal(lh_link_queue_bytes(&(struct lh_link_spec){.rate_bps = 4200000000}), 1048576);
    assert_int_equal(lh_link_queue_bytes(&(struct lh_link_spec){.rate_bps = 4200000000, .queue_bytes = 7}),
                     7);
}

static void test_default_queue_is_64_kib_at_least(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("rate=8bit", 0);
    unsigned accepted = 0;
    while (lh_link_decide(&link, 0, 1024).accepted)
        accepted++;
    assert_int_equal(accepted, 65);
    assert_true(lh_link_ready_ns(&link, 0) == 1024 * LH_NS_PER_S);
}

static void test_idle_link_takes_any_packet(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("rate=10Gbit,queue=1B", 0);
    assert_true(lh_link_decide(&link, 0, 9000).accepted);
    assert_true(lh_link_ready_ns(&link, 0) == 7200);
    assert_false(lh_link_decide(&link, 7199, 9000).accepted);
    assert_true(lh_link_decide(&link, 7200, 9000).accepted);
}

static void test_tail_drop(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("rate=10Gbit,queue=3750,drop=tail", 0);
    for (int i = 0; i < 4; i++)
        assert_true(lh_link_decide(&link, 0, PACKET_BYTES).copies == 1);
    struct lh_link_fate fate = lh_link_decide(&link, 999, PACKET_BYTES);
    assert_true(fate.accepted && fate.dropped && fate.copies == 0);
    /* What was dropped took no time of the bottleneck. */
    fate = lh_link_decide(&link, 1000, PACKET_BYTES);
    assert_true(!fate.dropped && fate.arrive_ns[0] == 5000);
}

/* Loss and mean length of the loss runs of n packets. */
static void measure_loss(const char *text, uint32_t n, double *loss, double *run)
{
    struct lh_link_state link = link_of(text, 0);
    uint32_t lost = 0;
    uint32_t runs = 0;
    bool before = false;
    for (uint32_t i = 0; i < n; i++) {
        struct lh_link_fate fate = lh_link_decide(&link, i, PACKET_BYTES);
        assert_true(fate.accepted && fate.copies == (fate.dropped ? 0 : 1));
        lost += fate.dropped;
        runs += fate.dropped && !before;
        before = fate.dropped;
    }
    *loss = (double)lost / n;
    *run = runs == 0 ? 0 : (double)lost / runs;
}

static void assert_near(double value, double expected, double tolerance)
{
    assert_true(value >= expected * (1 - tolerance) && value <= expected * (1 + tolerance));
}

/* Bounds are five standard deviations or more. Independent losses make runs of 1 / (1 - p). */
static void test_independent_loss(void **state)
{
    (void)state;
    double loss;
    double run;
    measure_loss("loss=0.01", 2000000, &loss, &run);
    assert_near(loss, 0.01, 0.04);
    assert_near(run, 1 / 0.99, 0.005);
    measure_loss("loss=0.3,burst=1", 1000000, &loss, &run);
    assert_near(loss, 0.3, 0.01);
    assert_near(run, 1 / 0.7, 0.01);
    measure_loss("loss=0", 10000, &loss, &run);
    assert_true(loss == 0);
    measure_loss("loss=1", 10000, &loss, &run);
    assert_true(loss == 1);
}

/* A run ends with chance 1/N a packet: 8000 runs of 8 in the mean have a deviation of 1 %. */
static void test_burst_loss(void **state)
{
    (void)state;
    double loss;
    double run;
    measure_loss("loss=0.01,burst=8", 6400000, &loss, &run);
    assert_near(run, 8, 0.05);
    assert_near(loss, 0.01, 0.08);
    measure_loss("loss=0.2,burst=2.5", 2000000, &loss, &run);
    assert_near(run, 2.5, 0.02);
    assert_near(loss, 0.2, 0.03);
    measure_loss("loss=0.75,burst=3", 1000000, &loss, &run);
    assert_near(run, 3, 0.02);
    assert_near(loss, 0.75, 0.01);
}

/* A run begins in a burst as often as any packet is in one: the first packet too has the average loss. */
static void test_first_packet_has_the_average_loss(void **state)
{
    (void)state;
    unsigned lost = 0;
    struct lh_link_spec spec;
    assert_int_equal(lh_link_parse("loss=0.1,burst=100", &spec), 0);
    for (spec.seed = 0; spec.seed < 20000; spec.seed++) {
        struct lh_link_state link;
        lh_link_state_init(&link, &spec, 0);
        lost += lh_link_decide(&link, 0, PACKET_BYTES).dropped;
    }
    /* Standard deviation 42. */
    assert_in_range(lost, 1790, 2210);
}

static void test_loss_does_not_depend_on_other_faults(void **state)
{
    (void)state;
    struct lh_link_state plain = link_of("loss=0.1,burst=3", 0);
    struct lh_link_state busy =
        link_of("loss=0.1,burst=3,jitter=1ms,reorder=0.3,duplicate=0.4,corrupt=0.5,delay=3ms", 0);
    for (lh_time now = 0; now < 10000; now++)
        assert_int_equal(lh_link_decide(&plain, now, PACKET_BYTES).dropped,
                         lh_link_decide(&busy, now, PACKET_BYTES).dropped);
}

/* What the queue drops advances the loss as well: the rest are lost as without the queue. */
static void test_loss_does_not_depend_on_tail_drops(void **state)
{
    (void)state;
    struct lh_link_state plain = link_of("loss=0.1,burst=3", 0);
    struct lh_link_state queue = link_of("loss=0.1,burst=3,rate=10Gbit,queue=2500,drop=tail", 0);
    unsigned tail_drops = 0;
    for (lh_time now = 0; now < 10000000; now += 500) {
        bool full = lh_link_ready_ns(&queue, now) > now;
        bool lost = lh_link_decide(&plain, now, PACKET_BYTES).dropped;
        assert_int_equal(lh_link_decide(&queue, now, PACKET_BYTES).dropped, lost || full);
        tail_drops += full;
    }
    assert_true(tail_drops > 5000);
}

static void test_timing_does_not_depend_on_damage(void **state)
{
    (void)state;
    struct lh_link_state plain = link_of("jitter=1ms,reorder=0.1", 0);
    struct lh_link_state busy = link_of("jitter=1ms,reorder=0.1,duplicate=0.4,corrupt=0.5", 0);
    for (lh_time now = 0; now < 1000; now++)
        assert_true(lh_link_decide(&plain, now, PACKET_BYTES).arrive_ns[0] ==
                    lh_link_decide(&busy, now, PACKET_BYTES).arrive_ns[0]);
}

static void test_jitter_covers_its_span_evenly(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("delay=100ns,jitter=3ns", 0);
    unsigned counts[4] = {0};
    for (unsigned i = 0; i < 40000; i++) {
        struct lh_link_fate fate = lh_link_decide(&link, 7, PACKET_BYTES);
        assert_in_range(fate.arrive_ns[0], 107, 110);
        counts[fate.arrive_ns[0] - 107]++;
    }
    /* Standard deviation 87. */
    for (unsigned i = 0; i < 4; i++)
        assert_in_range(counts[i], 9560, 10440);
}

static void test_reordered_packets_are_held_back(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("rtt=8000ns,reorder=0.1", 0);
    unsigned held = 0;
    for (unsigned i = 0; i < 40000; i++) {
        struct lh_link_fate fate = lh_link_decide(&link, 0, PACKET_BYTES);
        /* An eighth of the round trip. */
        assert_true(fate.arrive_ns[0] == (fate.reordered ? 5000 : 4000));
        held += fate.reordered;
    }
    /* Standard deviation 60. */
    assert_in_range(held, 3700, 4300);
    link = link_of("rtt=8000ns,jitter=50ns,reorder=0.1", 0);
    for (unsigned i = 0; i < 1000; i++) {
        struct lh_link_fate fate = lh_link_decide(&link, 0, PACKET_BYTES);
        lh_time base = fate.reordered ? 4050 : 4000;
        assert_in_range(fate.arrive_ns[0], base, base + 50);
    }
}

static void test_duplicates(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("duplicate=0.1,delay=100ns,jitter=1000ns", 0);
    unsigned doubled = 0;
    unsigned apart = 0;
    unsigned delayed = 0;
    for (unsigned i = 0; i < 40000; i++) {
        struct lh_link_fate fate = lh_link_decide(&link, 0, PACKET_BYTES);
        assert_true(fate.copies == 1 || fate.copies == 2);
        doubled += fate.copies == 2;
        apart += fate.copies == 2 && fate.arrive_ns[0] != fate.arrive_ns[1];
        delayed += fate.arrive_ns[1] != 100;
        assert_in_range(fate.arrive_ns[1], 100, 1100);
    }
    /* Standard deviation 60. */
    assert_in_range(doubled, 3700, 4300);
    assert_true(apart > 3600);
    assert_true(delayed > 39000);
}

static void test_corruption(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("corrupt=0.1", 0);
    unsigned corrupted = 0;
    uint32_t all_bits = 0;
    for (unsigned i = 0; i < 40000; i++) {
        struct lh_link_fate fate = lh_link_decide(&link, 0, PACKET_BYTES);
        corrupted += fate.corrupted;
        all_bits |= fate.corrupt_bit;
        assert_true(fate.copies == 1);
    }
    assert_in_range(corrupted, 3700, 4300);
    assert_true(all_bits == UINT32_MAX);
}

static unsigned count_same(struct lh_link_state a, struct lh_link_state b)
{
    unsigned same = 0;
    for (int i = 0; i < 10000; i++)
        same += lh_link_decide(&a, 0, 100).dropped == lh_link_decide(&b, 0, 100).dropped;
    return same;
}

/* Faults that share a generator would come together. */
static void test_faults_are_independent(void **state)
{
    (void)state;
    struct lh_link_state link = link_of("delay=1ms,reorder=0.5,duplicate=0.5", 0);
    unsigned together = 0;
    for (int i = 0; i < 10000; i++) {
        struct lh_link_fate fate = lh_link_decide(&link, 0, PACKET_BYTES);
        together += fate.reordered == (fate.copies == 2);
    }
    /* Standard deviation 50. */
    assert_in_range(together, 4700, 5300);
}

/* No text asks for this, but a program may. */
static void test_certain_loss_in_bursts_is_certain(void **state)
{
    (void)state;
    struct lh_link_spec spec = {.loss = 1, .burst_packets = 8};
    struct lh_link_state link;
    lh_link_state_init(&link, &spec, 0);
    for (int i = 0; i < 1000; i++)
        assert_true(lh_link_decide(&link, 0, PACKET_BYTES).dropped);
}

static void test_seed_and_direction_name_the_draws(void **state)
{
    (void)state;
    assert_int_equal(count_same(link_of("loss=0.5", 0), link_of("loss=0.5", 0)), 10000);
    /* Independent coins agree half of the time; standard deviation 50. */
    assert_in_range(count_same(link_of("loss=0.5", 0), link_of("loss=0.5", 1)), 4700, 5300);
    assert_in_range(count_same(link_of("loss=0.5", 0), link_of("loss=0.5,seed=2", 0)), 4700, 5300);
    assert_in_range(count_same(link_of("loss=0.5", 1), link_of("loss=0.5,seed=2", 0)), 4700, 5300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_emulation_changes_nothing),
        cmocka_unit_test(test_delay_is_exact),
        cmocka_unit_test(test_bottleneck_spaces_packets),
        cmocka_unit_test(test_bottleneck_does_not_drift),
        cmocka_unit_test(test_extreme_rates_do_not_wrap),
        cmocka_unit_test(test_full_queue_pushes_back),
        cmocka_unit_test(test_control_passes_a_full_queue),
        cmocka_unit_test(test_default_queue_is_64_kib_at_least),
        cmocka_unit_test(test_default_queue_follows_the_rate),
        cmocka_unit_test(test_idle_link_takes_any_packet),
        cmocka_unit_test(test_tail_drop),
        cmocka_unit_test(test_independent_loss),
        cmocka_unit_test(test_burst_loss),
        cmocka_unit_test(test_first_packet_has_the_average_loss),
        cmocka_unit_test(test_loss_does_not_depend_on_other_faults),
        cmocka_unit_test(test_loss_does_not_depend_on_tail_drops),
        cmocka_unit_test(test_timing_does_not_depend_on_damage),
        cmocka_unit_test(test_jitter_covers_its_span_evenly),
        cmocka_unit_test(test_reordered_packets_are_held_back),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_corruption),
        cmocka_unit_test(test_faults_are_independent),
        cmocka_unit_test(test_certain_loss_in_bursts_is_certain),
        cmocka_unit_test(test_seed_and_direction_name_the_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
