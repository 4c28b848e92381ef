/*
 * test_onesided_exchange.c - two sides learn each other's blobs, whatever gets lost.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <longhaul/onesided.h>

#include "onesided/onesided_exchange.h"

/* ---- test exchange --------------------------------------------------------------------------------- */

#define INTERVAL 100u

static const uint8_t blob[8];

/* The next message of a side, if it has one now; counts it. */
static bool take(struct exchange *from, uint32_t operations, lh_time now, struct onesided_exchange *message)
{
    bool with_blob;
    if (!exchange_next(from, operations, now, message, &with_blob))
        return false;
    message->blob = blob;
    message->blob_bytes = with_blob ? sizeof blob : 0;
    exchange_on_sent(from, message, INTERVAL, now);
    return true;
}

static enum exchange_news give(struct exchange *to, const struct onesided_exchange *message,
                               uint32_t operations)
{
    enum exchange_news news = exchange_on_message(to, message, operations);
    if (news == EXCHANGE_BLOB)
        exchange_accept(to);
    return news;
}

/* One side has a blob, and later the other: each message may be lost (bit i of `lost`), but not for ever. */
static void both_learn(void **state)
{
    (void)state;
    for (uint32_t lost = 0; lost < 64; lost++) {
        struct exchange sides[2] = {0};
        struct onesided_exchange message;
        uint32_t sent = 0;
        exchange_open(&sides[0], 0);
        for (lh_time now = 0; now < 100 * INTERVAL; now += INTERVAL) {
            if (now == 10 * INTERVAL)
                exchange_open(&sides[1], now);
            for (int i = 0; i < 4; i++)
                if (take(&sides[i % 2], 0, now, &message) && !(sent++ < 6 && lost >> (sent - 1) & 1))
                    give(&sides[1 - i % 2], &message, 0);
        }
        for (int i = 0; i < 2; i++) {
            assert_true(sides[i].announced && sides[i].has_peer);
            assert_false(exchange_waits(&sides[i]));
            assert_false(take(&sides[i], 0, LH_TIME_NEVER - 1, &message)); /* silence */
        }
        assert_true(sent <= 6 + 6);
    }
}

static void sent_again_after_the_interval(void **state)
{
    (void)state;
    struct exchange side = {0};
    struct onesided_exchange message;
    exchange_open(&side, 5);
    assert_true(take(&side, 0, 5, &message));
    assert_int_equal(message.flags, ONESIDED_ASKS);
    assert_false(take(&side, 0, 4 + INTERVAL, &message));
    assert_true(take(&side, 0, 5 + INTERVAL, &message));
    assert_int_equal(side.sent, 2);
}

/* The peer has exposed nothing: operations that it knew of end, later ones ask again. */
static void nothing_is_exposed(void **state)
{
    (void)state;
    struct exchange side = {0}, peer = {0};
    struct onesided_exchange asks, answer;
    exchange_open(&side, 0);
    exchange_ask(&side, 0);
    assert_true(take(&side, 1, 0, &asks));
    assert_int_equal(give(&peer, &asks, 0), EXCHANGE_BLOB);
    assert_true(take(&peer, 0, 0, &answer));
    assert_int_equal(answer.blob_bytes, 0);
    assert_int_equal(give(&side, &answer, 2), EXCHANGE_NOTHING); /* one more was started since */
    assert_true(exchange_waits(&side));
    assert_true(take(&side, 2, INTERVAL, &asks));
    give(&peer, &asks, 0);
    assert_true(take(&peer, 0, INTERVAL, &answer));
    assert_int_equal(give(&side, &answer, 2), EXCHANGE_EMPTY);
    assert_false(exchange_waits(&side));
    exchange_ask(&side, INTERVAL);
    assert_true(take(&side, 3, INTERVAL, &asks));
    assert_int_equal(asks.blob_bytes, 0); /* it has that */
    exchange_open(&peer, INTERVAL);
    give(&peer, &asks, 0);
    assert_true(take(&peer, 0, INTERVAL, &answer));
    assert_int_equal(give(&side, &answer, 3), EXCHANGE_BLOB);
    assert_false(exchange_waits(&side));
}

/* A question begins anew when the one before is answered, and not before: the interval is by how often it was
 * sent. */
static void questions_begin_anew(void **state)
{
    (void)state;
    struct exchange side = {0};
    struct onesided_exchange asks, answer = {.flags = ONESIDED_ANSWERS, .operations = 1};
    exchange_open(&side, 0);
    assert_true(take(&side, 1, 0, &asks));
    side.announced = true;
    assert_false(exchange_waits(&side));
    exchange_ask(&side, 7);
    assert_int_equal(side.sent, 0);
    assert_false(take(&side, 1, 6, &asks));
    assert_true(take(&side, 1, 7, &asks));
    exchange_ask(&side, 8); /* it is asking */
    assert_int_equal(side.sent, 1);
    assert_false(take(&side, 1, 6 + INTERVAL, &asks));
    assert_true(take(&side, 1, 7 + INTERVAL, &asks));
    assert_int_equal(side.sent, 2);
    assert_int_equal(give(&side, &answer, 1), EXCHANGE_EMPTY);
    exchange_ask(&side, 500);
    assert_int_equal(side.sent, 0);
    assert_true(take(&side, 1, 500, &asks));
    exchange_open(&side, 510);
    assert_int_equal(side.sent, 0);
    assert_true(take(&side, 1, 510, &asks));
}

static int run_exchange(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_learn),
        cmocka_unit_test(sent_again_after_the_interval),
        cmocka_unit_test(nothing_is_exposed),
        cmocka_unit_test(questions_begin_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test regions ---------------------------------------------------------------------------------- */

/* Keys, and what they permit. */

#define RANDOM UINT64_C(0x9E3779B97F4A7C15)

static void a_key_finds_its_region_alone(void **state)
{
    (void)state;
    static struct regions regions;
    static struct region all[REGIONS_MAX + 1];
    for (uint32_t i = 0; i < REGIONS_MAX; i++)
        assert_true(regions_add(&regions, &all[i], RANDOM * (i / 2 + 1))); /* the same number twice */
    assert_false(regions_add(&regions, &all[REGIONS_MAX], RANDOM));
    for (uint32_t i = 0; i < REGIONS_MAX; i++) {
        assert_ptr_equal(regions_find(&regions, all[i].key), &all[i]);
        for (int bit = 0; bit < 64; bit++)
            assert_ptr_not_equal(regions_find(&regions, all[i].key ^ UINT64_C(1) << bit), &all[i]);
    }
    regions_remove(&regions, &all[7]);
    assert_null(regions_find(&regions, all[7].key));
    assert_true(regions_add(&regions, &all[REGIONS_MAX], RANDOM * 99991)); /* in its place */
    assert_null(regions_find(&regions, all[7].key));
    assert_ptr_equal(regions_find(&regions, all[REGIONS_MAX].key), &all[REGIONS_MAX]);
}

static void what_is_permitted(void **state)
{
    (void)state;
    const struct region region = {.bytes = 100, .access = LH_ACCESS_WRITE};
    const struct {
        uint64_t offset;
        uint64_t bytes;
        int error;
    } cases[] = {
        {0, 100, 0},
        {100, 0, 0},
        {99, 1, 0},
        {0, 101, LH_ERANGE},
        {101, 0, LH_ERANGE},
        {99, 2, LH_ERANGE},
        {1, UINT64_MAX, LH_ERANGE},
        {UINT64_MAX, 2, LH_ERANGE},
        {UINT64_MAX - 1, UINT64_MAX, LH_ERANGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(region_check(&region, LH_ACCESS_WRITE, cases[i].offset, cases[i].bytes),
                         cases[i].error);
    assert_int_equal(region_check(&region, LH_ACCESS_READ, 0, 1), LH_EKEY);
    assert_int_equal(region_check(NULL, LH_ACCESS_WRITE, 0, 0), LH_EKEY);
}

static int run_regions(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_finds_its_region_alone),
        cmocka_unit_test(what_is_permitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_exchange() + run_regions();
}
