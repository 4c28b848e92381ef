/*
 * test_probe_search.c - every MTU is found exactly, also when packets are lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "probe/probe_search.h"

/* ---- test mtu search ------------------------------------------------------------------------------- */

/* A path of that MTU that loses that share of everything. */
static uint32_t search_path(uint32_t mtu, double loss, struct lh_prng *prng, uint32_t *rounds)
{
    struct mtu_search search;
    mtu_search_init(&search, 104, 65535);
    while (!search.done) {
        struct mtu_search_round round = mtu_search_next(&search);
        bool passed[MTU_SEARCH_SIZES_MAX] = {false};
        assert_in_range(round.count, 1, MTU_SEARCH_SIZES_MAX);
        for (uint32_t i = 0; i < round.count; i++) {
            assert_in_range(round.sizes[i], 104, 65535);
            assert_true(i == 0 || round.sizes[i] > round.sizes[i - 1]);
            for (uint32_t try = 0; try < round.tries; try++)
                passed[i] |= round.sizes[i] <= mtu && !lh_prng_chance(prng, loss);
        }
        mtu_search_on_round(&search, &round, passed);
    }
    assert_int_equal(mtu_search_next(&search).count, 0);
    *rounds = search.rounds;
    return search.passed_bytes;
}

static void test_every_mtu(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint32_t rounds;
    lh_prng_seed(&prng, 1);
    for (uint32_t mtu = 104; mtu <= 65535; mtu += mtu < 10000 ? 1 : 37) {
        assert_int_equal(search_path(mtu, 0, &prng, &rounds), mtu);
        assert_in_range(rounds, 1, 7);
    }
    assert_int_equal(search_path(65535, 0, &prng, &rounds), 65535);
    assert_int_equal(rounds, 1);
    assert_int_equal(search_path(1500, 0, &prng, &rounds), 1500);
}

static void test_nothing_passes(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint32_t rounds;
    lh_prng_seed(&prng, 1);
    assert_int_equal(search_path(103, 0, &prng, &rounds), 103); /* below the floor */
    assert_int_equal(search_path(0, 0, &prng, &rounds), 103);
}

static void test_loss(void **state)
{
    (void)state;
    const uint32_t mtus[] = {576, 1400, 1500, 9000, 1437, 8999, 65535, 20001};
    struct lh_prng prng;
    uint32_t rounds;
    lh_prng_seed(&prng, 5);
    for (uint32_t trial = 0; trial < 200; trial++)
        for (size_t i = 0; i < sizeof mtus / sizeof *mtus; i++)
            assert_int_equal(search_path(mtus[i], 0.1, &prng, &rounds), mtus[i]);
}

/* Half of everything lost: bounded, and never a size that does not pass. */
static void test_heavy_loss_ends(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint32_t rounds;
    lh_prng_seed(&prng, 2);
    for (uint32_t trial = 0; trial < 500; trial++) {
        assert_in_range(search_path(1500, 0.5, &prng, &rounds), 103, 1500);
        assert_in_range(rounds, 1, MTU_SEARCH_ROUNDS_MAX);
    }
}

static int run_mtu_search(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_mtu),
        cmocka_unit_test(test_nothing_passes),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_heavy_loss_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test rate search ------------------------------------------------------------------------------ */

/* Paths of many kinds, from above and from below their rate. */

struct path {
    double rate_bps;   /* of the narrowest place; what is above it is dropped, or waits */
    double loss;       /* whatever the rate */
    double sender_bps; /* that the host reaches */
    bool pushes_back, drops_at_receiver;
};

static double minimum(double a, double b)
{
    return a < b ? a : b;
}

static struct rate_outcome send_over(const struct path *path, double offered_bps)
{
    double limit = path->pushes_back ? minimum(path->sender_bps, path->rate_bps) : path->sender_bps;
    double sent = minimum(offered_bps, limit);
    double through = minimum(sent, path->rate_bps) * (1 - path->loss);
    return (struct rate_outcome){
        .sent_bps = sent,
        .delivered_bps = through,
        .loss = 1 - through / sent,
        .pushed_back = path->pushes_back && offered_bps > path->rate_bps,
        .endpoint_drops = path->drops_at_receiver && sent > path->rate_bps,
    };
}

static struct rate_search rate_search_search_path(const struct path *path, uint64_t cap_bps)
{
    struct rate_search search;
    rate_search_init(&search, cap_bps);
    while (!search.done) {
        assert_true(search.offered_bps > 0 && search.offered_bps <= search.cap_bps);
        assert_true(search.rounds < 30);
        struct rate_outcome outcome = send_over(path, (double)search.offered_bps);
        rate_search_on_outcome(&search, &outcome);
    }
    return search;
}

static void assert_found(const struct path *path, uint64_t cap_bps, double rate_bps,
                         enum lh_probe_limit limit)
{
    struct rate_search got = rate_search_search_path(path, cap_bps);
    if (got.rate_bps < 0.9 * rate_bps || got.rate_bps > 1.05 * rate_bps || got.limit != limit)
        fail_msg("%g, limit %d; not %g, limit %d", got.rate_bps, got.limit, rate_bps, limit);
}

static void test_paths(void **state)
{
    (void)state;
    const double rates[] = {1e6, 15e6, 20e6, 100e6, 1e9, 2.5e9, 33e9, 400e9};
    const double losses[] = {0, 0.01, 0.2};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (size_t l = 0; l < sizeof losses / sizeof *losses; l++) {
            struct path path = {.rate_bps = rates[r], .loss = losses[l], .sender_bps = 1e13};
            /* Where the first try is too fast already, loss and rate cannot be told apart. */
            if (path.rate_bps >= RATE_SEARCH_FIRST_BPS)
                assert_found(&path, 0, path.rate_bps, LH_PROBE_LIMIT_PATH);
            path.pushes_back = true;
            assert_found(&path, 0, path.rate_bps, LH_PROBE_LIMIT_PATH);
        }
}

static void test_hosts_that_are_the_limit(void **state)
{
    (void)state;
    struct path path = {.rate_bps = 400e9, .loss = 0.001, .sender_bps = 7e9};
    assert_found(&path, 0, 7e9, LH_PROBE_LIMIT_SENDER);
    path = (struct path){.rate_bps = 3e9, .sender_bps = 1e13, .drops_at_receiver = true};
    assert_found(&path, 0, 3e9, LH_PROBE_LIMIT_RECEIVER);
}

static void test_asked(void **state)
{
    (void)state;
    struct path path = {.rate_bps = 1e9, .sender_bps = 1e13};
    assert_found(&path, 50000000, 50e6, LH_PROBE_LIMIT_ASKED);
    assert_found(&path, 1000, 1000, LH_PROBE_LIMIT_ASKED);
}

/* Every third train is held up: the search passes over that. */
static void test_pauses_of_a_host(void **state)
{
    (void)state;
    struct path path = {.rate_bps = 1e9, .sender_bps = 1e13};
    struct rate_search search;
    rate_search_init(&search, 0);
    while (!search.done) {
        struct rate_outcome outcome = send_over(&path, (double)search.offered_bps);
        if (search.rounds % 3 == 1 && outcome.loss <= 0)
            outcome.delivered_bps *= 0.6;
        rate_search_on_outcome(&search, &outcome);
    }
    assert_true(search.rate_bps > 0.9e9 && search.limit == LH_PROBE_LIMIT_PATH);
}

/* A burst takes half of a train: that is not the rate's doing, and the next train shows it. */
static void test_burst(void **state)
{
    (void)state;
    struct path path = {.rate_bps = 1e9, .loss = 0.05, .sender_bps = 1e13, .pushes_back = true};
    struct rate_search search;
    rate_search_init(&search, 0);
    while (!search.done) {
        struct rate_outcome outcome = send_over(&path, (double)search.offered_bps);
        if (search.rounds == 1) {
            outcome.delivered_bps *= 0.5;
            outcome.loss = 0.5;
        }
        rate_search_on_outcome(&search, &outcome);
    }
    assert_true(search.rate_bps > 0.9e9 && search.rate_bps < 1.1e9);
}

static void test_everything_lost_ends(void **state)
{
    (void)state;
    struct path path = {.rate_bps = 0, .sender_bps = 1e13};
    struct rate_search got = rate_search_search_path(&path, 0);
    assert_true(got.rate_bps == 0);
}

static void on(struct rate_search *search, double delivered_bps, double loss, bool drops)
{
    const struct rate_outcome outcome = {.sent_bps = (double)search->offered_bps,
                                         .delivered_bps = delivered_bps,
                                         .loss = loss,
                                         .endpoint_drops = drops};
    rate_search_on_outcome(search, &outcome);
}

/* Less is tried, and less again, five times; then what came through counts. */
static void test_confirmations(void **state)
{
    (void)state;
    static const uint64_t offered[] = {38000000, 30400000, 24320000, 19456000, 15564800};
    struct rate_search search;
    rate_search_init(&search, 0);
    on(&search, 20e6, 0, false);
    assert_int_equal(search.offered_bps, 80000000);
    on(&search, 40e6, 0.5, false);
    assert_int_equal(search.offered_bps, 80000000); /* once more */
    on(&search, 40e6, 0.5, false);
    for (int i = 0; i < 5; i++) {
        assert_false(search.done);
        assert_in_range(search.offered_bps, offered[i] - 10, offered[i] + 10);
        on(&search, 7e6 + i, 0.5, false);
    }
    assert_true(search.done);
    assert_int_equal(search.limit, LH_PROBE_LIMIT_PATH);
    assert_int_equal(search.rate_bps, 7000004);
}

/* What a receiver dropped needs no second try; a confirmation keeps to the cap, and to what can be sent. */
static void test_bounds_of_a_confirmation(void **state)
{
    (void)state;
    struct rate_search search;
    rate_search_init(&search, 20000000);
    on(&search, 30e6, 0, true);
    assert_true(search.confirming);
    assert_int_equal(search.offered_bps, 20000000);
    on(&search, 10e6, 0, false);
    assert_true(search.done);
    assert_int_equal(search.limit, LH_PROBE_LIMIT_RECEIVER);
    assert_int_equal(search.rate_bps, 10000000);
    rate_search_init(&search, 0);
    on(&search, 100, 0, true);
    assert_int_equal(search.offered_bps, 1000);
}

static int run_rate_search(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),         cmocka_unit_test(test_hosts_that_are_the_limit),
        cmocka_unit_test(test_asked),         cmocka_unit_test(test_pauses_of_a_host),
        cmocka_unit_test(test_burst),         cmocka_unit_test(test_everything_lost_ends),
        cmocka_unit_test(test_confirmations), cmocka_unit_test(test_bounds_of_a_confirmation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test schedule --------------------------------------------------------------------------------- */

/* The time is kept, and where it is short there are fewer trials. */

static const uint32_t schedule_sizes[] = {256, 1024, 4096};

static struct schedule_wish wish_of(lh_time left_ns, lh_time overhead_ns)
{
    return (struct schedule_wish){.left_ns = left_ns,
                                  .overhead_ns = overhead_ns,
                                  .rate_bps = 1000000000,
                                  .header_bytes = 48,
                                  .size_count = 3,
                                  .payload_bytes = schedule_sizes,
                                  .trials = 5};
}

static void test_time_is_kept(void **state)
{
    (void)state;
    struct schedule_wish wish = wish_of(6 * LH_NS_PER_S, 50 * LH_NS_PER_MS);
    struct schedule made = schedule_make(&wish);
    lh_time sum = 0;
    assert_int_equal(made.trials, 5);
    for (uint32_t i = 0; i < 3; i++)
        sum += made.trials * (made.packets[i] * made.gap_ns[i] + wish.overhead_ns);
    assert_in_range(sum, 5900 * LH_NS_PER_MS, 6000 * LH_NS_PER_MS);
    assert_int_equal(made.gap_ns[0], SCHEDULE_GAP_MIN_NS); /* 2.4 us at that rate */
    assert_int_equal(made.gap_ns[2], 4144 * 8);
}

static void test_long_paths_have_fewer_trials(void **state)
{
    (void)state;
    struct schedule_wish wish = wish_of(6 * LH_NS_PER_S, LH_NS_PER_S);
    assert_int_equal(schedule_make(&wish).trials, 1);
    wish.left_ns = 0;
    struct schedule made = schedule_make(&wish);
    assert_int_equal(made.trials, 1);
    assert_int_equal(made.packets[0], SCHEDULE_PACKETS_MIN);
}

static void test_what_was_asked_for_is_done(void **state)
{
    (void)state;
    struct schedule_wish wish = wish_of(0, LH_NS_PER_S);
    wish.packets = 777;
    struct schedule made = schedule_make(&wish);
    assert_int_equal(made.trials, 5);
    assert_int_equal(made.packets[2], 777);
    wish = wish_of(600 * LH_NS_PER_S, 0);
    assert_int_equal(schedule_make(&wish).packets[0], LH_PROBE_PACKETS_MAX);
}

static int run_schedule(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_is_kept),
        cmocka_unit_test(test_long_paths_have_fewer_trials),
        cmocka_unit_test(test_what_was_asked_for_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_mtu_search() + run_rate_search() + run_schedule();
}
