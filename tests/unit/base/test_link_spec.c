/*
 * test_link_spec.c - what a link does to packets: timing exactly, draws within bounds.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>
#include <longhaul/link.h>

#include "base/link_spec.h"
#include "base/prng.h"

/* ---- test link fate -------------------------------------------------------------------------------- */

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

static int run_link_fate(void)
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

/* ---- test link format ------------------------------------------------------------------------------ */

/* The text of a link parses to it. */

static void check(const char *text, const char *expected)
{
    struct lh_link_spec spec;
    char out[LH_LINK_TEXT_MAX];
    assert_int_equal(lh_link_parse(text, &spec), 0);
    assert_string_equal(lh_link_format(&spec, out, sizeof out), expected);
}

static void test_texts(void **state)
{
    (void)state;
    check("", "none");
    check("seed=5,burst=3", "none");
    check("rtt=25ms,rate=10Gbit,loss=1e-4", "rtt=25ms,rate=10Gbit,loss=1e-4");
    check("loss=0.01%,delay=20ms", "rtt=40ms,loss=1e-4");
    check("queue=1MiB,rate=1Mbit,jitter=1s", "jitter=1s,rate=1Mbit,queue=1MiB");
    check("delay=60min", "delay=3600s");
    check("rate=1500000bit,queue=65536", "rate=1500kbit,queue=64KiB");
    check("rate=1Tbit,drop=tail,seed=7", "rate=1Tbit,drop=tail,seed=7");
    check("queue=3GiB,jitter=1500ns,rate=3bit", "jitter=1500ns,rate=3bit,queue=3GiB");
    check("corrupt=0.5,duplicate=1,reorder=0.01,loss=0.5,burst=2.5",
          "loss=0.5,burst=2.5,reorder=0.01,duplicate=1,corrupt=0.5");
}

static void test_cuts_at_size(void **state)
{
    (void)state;
    struct lh_link_spec spec;
    char whole[LH_LINK_TEXT_MAX];
    assert_int_equal(lh_link_parse("rtt=25ms,rate=10Gbit,loss=1e-4,seed=3", &spec), 0);
    lh_link_format(&spec, whole, sizeof whole);
    for (size_t size = 1; size <= strlen(whole) + 1; size++) {
        char out[64];
        memset(out, '?', sizeof out);
        lh_link_format(&spec, out, size);
        assert_int_equal(strlen(out), size - 1);
        assert_memory_equal(out, whole, size - 1);
        for (size_t i = size; i < sizeof out; i++)
            assert_int_equal(out[i], '?');
    }
}

static void test_longest_text_fits(void **state)
{
    (void)state;
    const double longest = 1.2345678901234567e-300;
    struct lh_link_spec spec = {
        .delay_ns = LH_LINK_TIME_MAX / 2 - 1,
        .jitter_ns = LH_LINK_TIME_MAX - 1,
        .rate_bps = UINT64_MAX,
        .queue_bytes = UINT64_MAX,
        .loss = longest,
        .burst_packets = 1.2345678901234567,
        .reorder = longest,
        .duplicate = longest,
        .corrupt = longest,
        .seed = UINT64_MAX,
        .drop_tail = true,
    };
    char out[2 * LH_LINK_TEXT_MAX];
    struct lh_link_spec back;
    assert_true(strlen(lh_link_format(&spec, out, sizeof out)) < LH_LINK_TEXT_MAX);
    assert_int_equal(lh_link_parse(out, &back), 0);
    assert_true(back.queue_bytes == spec.queue_bytes && back.jitter_ns == spec.jitter_ns);
}

static double random_ratio(struct lh_prng *prng)
{
    double ratio = lh_prng_double(prng);
    for (uint64_t tenths = lh_prng_below(prng, 12); tenths > 0; tenths--)
        ratio /= 10;
    return lh_prng_below(prng, 4) == 0 ? 0 : ratio;
}

static uint64_t random_integer(struct lh_prng *prng, uint64_t bound)
{
    uint64_t value = lh_prng_next(prng) >> lh_prng_below(prng, 64);
    /* Half of them round, as people give them. */
    value = lh_prng_below(prng, 2) == 0 ? value : value / 1000000 * 1000000;
    return lh_prng_below(prng, 4) == 0 ? 0 : value % bound;
}

static struct lh_link_spec random_spec(struct lh_prng *prng)
{
    struct lh_link_spec spec = {
        .delay_ns = random_integer(prng, LH_LINK_TIME_MAX + 1),
        .jitter_ns = random_integer(prng, LH_LINK_TIME_MAX + 1),
        .rate_bps = random_integer(prng, UINT64_MAX),
        .queue_bytes = random_integer(prng, UINT64_MAX),
        .loss = random_ratio(prng),
        .reorder = random_ratio(prng),
        .duplicate = random_ratio(prng),
        .corrupt = random_ratio(prng),
        .seed = random_integer(prng, UINT64_MAX),
        .drop_tail = lh_prng_below(prng, 2) == 0,
    };
    if (spec.loss < 0.5 && lh_prng_below(prng, 2) == 0)
        spec.burst_packets = 1 + 1000 * random_ratio(prng);
    return spec;
}

static void assert_same(const struct lh_link_spec *a, const struct lh_link_spec *b)
{
    assert_true(a->delay_ns == b->delay_ns && a->jitter_ns == b->jitter_ns);
    assert_true(a->rate_bps == b->rate_bps && a->queue_bytes == b->queue_bytes);
    assert_true(a->loss == b->loss && a->burst_packets == b->burst_packets);
    assert_true(a->reorder == b->reorder && a->duplicate == b->duplicate && a->corrupt == b->corrupt);
    assert_true(a->seed == b->seed && a->drop_tail == b->drop_tail);
}

static void test_random_specs_round_trip(void **state)
{
    (void)state;
    struct lh_prng prng;
    unsigned checked = 0;
    lh_prng_seed(&prng, 1);
    for (int i = 0; i < 5000; i++) {
        struct lh_link_spec spec = random_spec(&prng);
        struct lh_link_spec back = {0};
        char out[LH_LINK_TEXT_MAX];
        lh_link_format(&spec, out, sizeof out);
        assert_int_equal(lh_link_parse(out, &back), 0);
        if (lh_link_is_none(&spec))
            continue;
        assert_same(&spec, &back);
        checked++;
    }
    assert_true(checked > 4900);
}

static int run_link_format(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_cuts_at_size),
        cmocka_unit_test(test_longest_text_fits),
        cmocka_unit_test(test_random_specs_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test link spec -------------------------------------------------------------------------------- */

/* The grammar of an emulated link. */

static struct lh_link_spec parse(const char *text)
{
    struct lh_link_spec spec;
    assert_int_equal(lh_link_parse(text, &spec), 0);
    return spec;
}

/* Refused with that code; the spec stays; the words name these two texts. */
static void refuse(const char *text, int code, const char *word, const char *other)
{
    struct lh_link_spec spec = {.seed = 4711};
    assert_int_equal(lh_link_parse(text, &spec), code);
    assert_true(spec.seed == 4711);
    assert_non_null(strstr(lh_last_error(), word));
    assert_non_null(strstr(lh_last_error(), other));
}

static void test_nothing_is_none(void **state)
{
    (void)state;
    struct lh_link_spec empty = parse("");
    struct lh_link_spec none = parse("none");
    assert_true(lh_link_is_none(&empty) && lh_link_is_none(&none));
    assert_true(empty.seed == 1 && none.seed == 1);
}

static void test_each_key(void **state)
{
    (void)state;
    assert_true(parse("rtt=25ms").delay_ns == 12500000);
    assert_true(parse("delay=25ms").delay_ns == 25000000);
    assert_true(parse("delay=2500km").delay_ns == 12500000);
    assert_true(parse("delay=0.2km").delay_ns == 1000);
    assert_true(parse("rate=10Gbit").rate_bps == 10000000000);
    assert_true(parse("queue=1MiB").queue_bytes == 1048576);
    assert_true(parse("drop=tail").drop_tail);
    assert_true(parse("loss=1e-4").loss == 1e-4);
    assert_true(parse("burst=8").burst_packets == 8);
    assert_true(parse("burst=2.5").burst_packets == 2.5);
    assert_true(parse("reorder=1%").reorder == 0.01);
    assert_true(parse("duplicate=0.5").duplicate == 0.5);
    assert_true(parse("corrupt=1").corrupt == 1);
    assert_true(parse("jitter=3us").jitter_ns == 3000);
    assert_true(parse("seed=18446744073709551615").seed == UINT64_MAX);
    assert_true(parse("seed=0").seed == 0);
}

static void test_a_key_sets_nothing_else(void **state)
{
    (void)state;
    struct lh_link_spec spec = parse("loss=0.25");
    assert_true(spec.delay_ns == 0 && spec.jitter_ns == 0 && spec.rate_bps == 0 && spec.queue_bytes == 0);
    assert_true(spec.burst_packets == 0 && spec.reorder == 0 && spec.duplicate == 0 && spec.corrupt == 0);
    assert_true(spec.seed == 1 && !spec.drop_tail);
}

static void test_all_keys_in_any_order(void **state)
{
    (void)state;
    struct lh_link_spec spec = parse("seed=9,corrupt=1e-5,duplicate=1e-4,reorder=1e-3,burst=4,loss=1e-2,"
                                     "drop=tail,queue=64KiB,rate=1Gbit,jitter=1ms,delay=20ms");
    assert_true(spec.seed == 9 && spec.corrupt == 1e-5 && spec.duplicate == 1e-4 && spec.reorder == 1e-3);
    assert_true(spec.burst_packets == 4 && spec.loss == 1e-2 && spec.drop_tail &&
                spec.queue_bytes == 65536);
    assert_true(spec.rate_bps == 1000000000 && spec.jitter_ns == 1000000 && spec.delay_ns == 20000000);
}

/* Each key twice, with values that are right. */
static void test_doubled_keys(void **state)
{
    (void)state;
    static const char *const items[] = {"rtt=1ms",   "delay=1ms",   "rate=1Gbit", "queue=1MiB",
                                        "drop=tail", "loss=0.1",    "burst=2",    "reorder=0.1",
                                        "jitter=0",  "corrupt=0.1", "seed=5",     "duplicate=0.1"};
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        char text[64];
        size_t length = strlen(items[i]);
        memcpy(text, items[i], length);
        text[length] = ',';
        memcpy(text + length + 1, items[i], length + 1);
        refuse(text, -LH_EINVAL, "twice", items[i]);
    }
}

static void test_rtt_excludes_delay(void **state)
{
    (void)state;
    refuse("rtt=1ms,delay=1ms", -LH_EINVAL, "rtt=", "delay=");
    refuse("delay=0,rtt=0", -LH_EINVAL, "rtt=", "delay=");
}

static void test_unknown_keys_and_shapes(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "foo=1",   "rtt",      "=1",     ",",        "rtt=1ms,",    ",rtt=1ms", "rtt=1ms,,seed=2",
        "RTT=1ms", " rtt=1ms", "rt=1ms", "rttt=1ms", "none,seed=2", "None"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refuse(texts[i], -LH_EINVAL, "key=value", "duplicate");
    refuse("foo=1", -LH_EINVAL, "foo=1", "unknown key");
}

static void test_bad_values(void **state)
{
    (void)state;
    refuse("rtt=", -LH_EINVAL, "rtt=", "25ms");
    refuse("rtt=5", -LH_EINVAL, "rtt=5", "unit");
    refuse("rtt=-5ms", -LH_EINVAL, "rtt=-5ms", "invalid time");
    refuse("delay=1000000000km", -LH_ERANGE, "delay=1000000000km", "720000000km");
    refuse("rtt=2500km", -LH_EINVAL, "rtt=2500km", "invalid time");
    refuse("delay=x", -LH_EINVAL, "delay=x", "invalid time");
    refuse("jitter=1", -LH_EINVAL, "jitter=1", "unit");
    refuse("rate=10GB", -LH_EINVAL, "rate=10GB", "Gbit");
    refuse("queue=1XiB", -LH_EINVAL, "queue=1XiB", "MiB");
    refuse("drop=head", -LH_EINVAL, "drop=head", "drop=tail");
    refuse("drop=", -LH_EINVAL, "drop=", "drop=tail");
    refuse("loss=2", -LH_ERANGE, "loss=2", "0 to 1");
    refuse("loss=a", -LH_EINVAL, "loss=a", "invalid ratio");
    refuse("reorder=101%", -LH_ERANGE, "reorder=101%", "0 to 1");
    refuse("duplicate=", -LH_EINVAL, "duplicate=", "invalid ratio");
    refuse("corrupt=-1", -LH_EINVAL, "corrupt=-1", "invalid ratio");
    refuse("burst=x", -LH_EINVAL, "burst=x", "example: 8");
    refuse("burst=8x", -LH_EINVAL, "burst=8x", "example: 8");
    refuse("burst=0", -LH_ERANGE, "burst=0", "1 to 1e9 packets");
    refuse("burst=0.99", -LH_ERANGE, "burst=0.99", "1 to 1e9 packets");
    refuse("burst=1000000001", -LH_ERANGE, "burst=1000000001", "1 to 1e9 packets");
    refuse("burst=1e999", -LH_ERANGE, "burst=1e999", "1 to 1e9 packets");
    refuse("seed=-1", -LH_EINVAL, "seed=-1", "example: 7");
    refuse("seed=1.5", -LH_EINVAL, "seed=1.5", "example: 7");
    refuse("seed=", -LH_EINVAL, "seed=", "example: 7");
    refuse("seed=7x", -LH_EINVAL, "seed=7x", "example: 7");
    refuse("seed=18446744073709551616", -LH_ERANGE, "seed=18446744073709551616", "64 bits");
    refuse("rtt=1ms,loss=5", -LH_ERANGE, "loss=5", "0 to 1");
}

static void test_times_are_at_most_an_hour(void **state)
{
    (void)state;
    assert_true(parse("delay=60min").delay_ns == LH_LINK_TIME_MAX);
    assert_true(parse("jitter=60min").jitter_ns == LH_LINK_TIME_MAX);
    assert_true(parse("rtt=60min").delay_ns == LH_LINK_TIME_MAX / 2);
    refuse("delay=3600000000001ns", -LH_ERANGE, "delay=3600000000001ns", "1h");
    refuse("jitter=3600000000001ns", -LH_ERANGE, "jitter=", "1h");
    refuse("rtt=61min", -LH_ERANGE, "rtt=61min", "1h");
}

/* A burst of N packets and one packet that passes: N / (N + 1). */
static void test_loss_must_leave_room_between_bursts(void **state)
{
    (void)state;
    assert_true(parse("loss=0.75,burst=3").loss == 0.75);
    refuse("loss=0.76,burst=3", -LH_ERANGE, "0.76", "burst");
    refuse("burst=3,loss=1", -LH_ERANGE, "loss=1", "burst");
    assert_true(parse("loss=1,burst=1").loss == 1);
}

static void test_long_values_are_refused(void **state)
{
    (void)state;
    char text[2000] = "seed=";
    memset(text + 5, '0', 63);
    assert_true(parse(text).seed == 0);
    memset(text + 5, '0', 64);
    refuse(text, -LH_EINVAL, "seed=000", "too long");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refuse(text, -LH_EINVAL, "xxxx", "unknown key");
}

static void test_is_none_looks_at_every_effect(void **state)
{
    (void)state;
    static const char *const effects[] = {"rtt=2ns",   "jitter=1ns",     "rate=1bit",   "loss=1e-9",
                                          "corrupt=1", "duplicate=1e-9", "reorder=1e-9"};
    static const char *const no_effects[] = {"rtt=0",   "delay=0", "rate=0",    "jitter=0", "loss=0",
                                             "burst=8", "seed=2",  "queue=1MB", "drop=tail"};
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        struct lh_link_spec spec = parse(effects[i]);
        assert_false(lh_link_is_none(&spec));
    }
    for (size_t i = 0; i < sizeof no_effects / sizeof no_effects[0]; i++) {
        struct lh_link_spec spec = parse(no_effects[i]);
        assert_true(lh_link_is_none(&spec));
    }
}

static int run_link_spec(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_none),
        cmocka_unit_test(test_each_key),
        cmocka_unit_test(test_a_key_sets_nothing_else),
        cmocka_unit_test(test_all_keys_in_any_order),
        cmocka_unit_test(test_doubled_keys),
        cmocka_unit_test(test_rtt_excludes_delay),
        cmocka_unit_test(test_unknown_keys_and_shapes),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_times_are_at_most_an_hour),
        cmocka_unit_test(test_loss_must_leave_room_between_bursts),
        cmocka_unit_test(test_long_values_are_refused),
        cmocka_unit_test(test_is_none_looks_at_every_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_link_fate() + run_link_format() + run_link_spec();
}
