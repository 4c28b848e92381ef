/*
 * test_link_format.c - the text of a link parses to it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/link.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_cuts_at_size),
        cmocka_unit_test(test_longest_text_fits),
        cmocka_unit_test(test_random_specs_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
