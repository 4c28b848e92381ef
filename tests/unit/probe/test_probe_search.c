/*
 * test_rate_search.c - paths of many kinds, from above and from below their rate.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "probe/rate_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct path {
    double rate_bps;   /* of the narrowest place; what is above it is dropped, or waits */
    double loss;       /* whatever the rate */
    double sender_bps; /* that the host reaches */
    bool pushes_back, drops_at_receiver;
};

static double least(double a, double b)
{
    return a < b ? a : b;
}

static struct rate_outcome send_over(const struct path *path, double offered_bps)
{
    double limit = path->pushes_back ? least(path->sender_bps, path->rate_bps) : path->sender_bps;
    double sent = least(offered_bps, limit);
    double through = least(sent, path->rate_bps) * (1 - path->loss);
    return (struct rate_outcome){
        .sent_bps = sent,
        .delivered_bps = through,
        .loss = 1 - through / sent,
        .pushed_back = path->pushes_back && offered_bps > path->rate_bps,
        .endpoint_drops = path->drops_at_receiver && sent > path->rate_bps,
    };
}

static struct rate_search search_path(const struct path *path, uint64_t cap_bps)
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
    struct rate_search got = search_path(path, cap_bps);
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
    struct rate_search got = search_path(&path, 0);
    assert_true(got.rate_bps == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths), cmocka_unit_test(test_hosts_that_are_the_limit),
        cmocka_unit_test(test_asked), cmocka_unit_test(test_pauses_of_a_host),
        cmocka_unit_test(test_burst), cmocka_unit_test(test_everything_lost_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
