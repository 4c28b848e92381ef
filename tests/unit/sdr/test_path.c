/*
 * test_path.c - whether the peer is where it says, round trips from echoed times, and when to ping.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MS        LH_NS_PER_MS
#define KEEPALIVE (1000 * MS)
#define ORIGIN    (5000 * MS) /* of our clock */
#define PEER      (77 * MS)   /* what the peer's clock shows then */

#define SECRET UINT64_C(0xDEADBEEFCAFEF00D)
#define START  (SECRET >> 2 | 1) /* of our stamps, on the wire */

/* echo: on our clock; 0: none. */
static void receive(struct path *path, enum control_type type, lh_time sent, lh_time echo, uint32_t delay,
                    lh_time now)
{
    struct control_header header = {
        .type = type, .sent_ns = sent, .echo_ns = echo ? START + echo : 0, .echo_delay_ns = delay};
    path_on_control(path, &header, now);
}

static struct path fresh(void)
{
    static uint64_t challenges[4][PATH_CHALLENGES]; /* of the newest paths */
    static uint32_t next;
    struct path path;
    uint64_t *own = challenges[next++ % 4];
    memset(own, 0, PATH_CHALLENGES_BYTES);
    path_init(&path, ORIGIN, KEEPALIVE, SECRET, own);
    return path;
}

/* As it is when the peer has shown that it is there, without a sample so far. */
static struct path started(void)
{
    struct path path = fresh();
    path.proven = true;
    return path;
}

/* Two paths and two clocks that have nothing to do with each other. */
static void test_round_trip_of_two_clocks(void **state)
{
    (void)state;
    struct path a = fresh(), b = fresh();
    struct control_header header = {.type = CONTROL_PING};
    path_stamp(&a, ORIGIN, &header);
    assert_int_equal(header.echo_ns, 0);
    path_on_control(&b, &header, PEER + 12 * MS);
    assert_int_equal(b.rtt.samples, 0);
    struct control_header answer = {.type = CONTROL_PONG};
    path_stamp(&b, PEER + 15 * MS, &answer); /* kept for 3 ms */
    assert_int_equal(answer.echo_ns, START + ORIGIN);
    assert_false(b.proven);
    assert_false(a.proven);
    assert_int_equal(answer.echo_delay_ns, 3 * MS);
    path_on_control(&a, &answer, ORIGIN + 28 * MS);
    assert_true(a.proven);
    assert_int_equal(a.rtt.samples, 1);
    assert_int_equal(a.rtt.smoothed_ns, 25 * MS);
    path_on_control(&a, &answer, ORIGIN + 50 * MS); /* again, later: no second sample */
    assert_int_equal(a.rtt.samples, 1);
    assert_int_equal(a.last_received_ns, ORIGIN + 50 * MS);
}

static void test_forged_echoes(void **state)
{
    (void)state;
    struct path path = started();
    lh_time now = ORIGIN + 100 * MS;
    receive(&path, CONTROL_PONG, 1, now + 1, 0, now);                        /* of the future */
    receive(&path, CONTROL_PONG, 2, LH_TIME_NEVER - START, UINT32_MAX, now); /* far of it */
    receive(&path, CONTROL_PONG, 3, now - 5 * MS, (uint32_t)(5 * MS) + 1,
            now);                               /* kept for longer than it exists */
    receive(&path, CONTROL_PONG, 4, 0, 0, now); /* none */
    assert_int_equal(path.rtt.samples, 0);
    receive(&path, CONTROL_PONG, 5, now - 5 * MS, (uint32_t)(5 * MS), now); /* at once: 0 counts as 1 */
    assert_int_equal(path.rtt.samples, 1);
    assert_int_equal(path.rtt.smoothed_ns, 1);
    receive(&path, CONTROL_PONG, 6, now - 6 * MS, 0, now); /* older than the one that was used */
    assert_int_equal(path.rtt.samples, 1);
    receive(&path, CONTROL_PONG, 7, now - 4 * MS, UINT32_MAX,
            now + 5000 * MS); /* kept for too long to say */
    assert_int_equal(path.rtt.samples, 1);
    receive(&path, CONTROL_PONG, 8, now - 4 * MS, 0, now + 5000 * MS); /* that echo is spent */
    assert_int_equal(path.rtt.samples, 1);
    receive(&path, CONTROL_PONG, 9, now, 0, now + MS);
    assert_int_equal(path.rtt.samples, 2);
}

static void test_newest_is_echoed(void **state)
{
    (void)state;
    struct path path = started();
    struct control_header header = {0};
    receive(&path, CONTROL_CTS, PEER + 5, 0, 0, ORIGIN + 10);
    receive(&path, CONTROL_CTS, PEER + 3, 0, 0, ORIGIN + 20); /* reordered */
    receive(&path, CONTROL_CTS, PEER + 5, 0, 0, ORIGIN + 30); /* doubled */
    path_stamp(&path, ORIGIN + 40, &header);
    assert_int_equal(header.sent_ns, START + ORIGIN + 40);
    assert_int_equal(header.echo_ns, PEER + 5);
    assert_int_equal(header.echo_delay_ns, 30);
    path_stamp(&path, ORIGIN + 10 + UINT32_MAX - 1, &header);
    assert_int_equal(header.echo_delay_ns, UINT32_MAX - 1);
    path_stamp(&path, ORIGIN + 10 + (lh_time)UINT32_MAX + 500, &header);
    assert_int_equal(header.echo_delay_ns, UINT32_MAX);
}

/* The address may be somebody else's, who did not ask for any of this. */
static void test_few_challenges(void **state)
{
    (void)state;
    struct path path = fresh();
    lh_time at = ORIGIN, span = MS;
    uint32_t patience = 0, early = 0;
    path_keepalive_set(&path, 3 * MS); /* of a peer that is there */
    for (uint32_t i = 0; i < 25; i++) {
        assert_int_equal(path.ping_at, at);
        assert_false(path_ping_due(&path, at - 1));
        assert_true(path_ping_due(&path, at));
        assert_false(path_ping_due(&path, at));
        patience += at < ORIGIN + 2100 * MS;
        early += at < ORIGIN + 10 * LH_NS_PER_S;
        /* What echoes nothing changes nothing. */
        receive(&path, CONTROL_CTS, PEER + i, 0, 0, at);
        at += span;
        span = 2 * span < PATH_CHALLENGE_SPAN_MAX_NS ? 2 * span : PATH_CHALLENGE_SPAN_MAX_NS;
    }
    assert_int_equal(patience, 12);
    assert_int_equal(early, 19);
    assert_false(path.proven);
}

/* Only an echo of what went to the peer proves it: not one that others could know or guess. */
static void test_proof(void **state)
{
    (void)state;
    struct path path = fresh();
    struct control_header ping = {.type = CONTROL_PING};
    receive(&path, CONTROL_PONG, PEER, ORIGIN, 0, ORIGIN); /* before anything was sent */
    assert_true(path_ping_due(&path, ORIGIN));
    path_stamp(&path, ORIGIN + 9, &ping);
    for (lh_time guess = ORIGIN; guess < ORIGIN + 1000; guess++)
        if (guess != ORIGIN + 9)
            receive(&path, CONTROL_PONG, PEER + guess, guess, 0, ORIGIN + MS);
    struct control_header clock = {.type = CONTROL_PONG, .sent_ns = PEER, .echo_ns = ORIGIN + 9};
    path_on_control(&path, &clock, ORIGIN + MS);
    clock.echo_ns = 0;
    path_on_control(&path, &clock, ORIGIN + MS);
    assert_false(path.proven);
    assert_int_equal(path.rtt.samples, 0);
    for (uint32_t i = 1; i < PATH_CHALLENGES; i++) /* the oldest that is remembered will do */
        path_stamp(&path, ORIGIN + 9 + i, &(struct control_header){0});
    receive(&path, CONTROL_CTS, PEER, ORIGIN + 9, 0, ORIGIN + 5 * MS);
    assert_true(path.proven);
    assert_int_equal(path.rtt.samples, 1);
}

/* A proven peer that is slow to give a sample is asked as often as any. */
static void test_pings_after_the_proof(void **state)
{
    (void)state;
    struct path path = fresh();
    struct control_header ping = {.type = CONTROL_PING};
    for (uint32_t i = 0; i < 12; i++)
        assert_true(path_ping_due(&path, path.ping_at));
    lh_time now = path.ping_at - PATH_CHALLENGE_SPAN_MAX_NS + 1;
    path_stamp(&path, now, &ping);
    receive(&path, CONTROL_PONG, PEER, now, UINT32_MAX, now + 1);
    assert_true(path.proven);
    assert_int_equal(path.rtt.samples, 0);
    assert_int_equal(path.ping_at, now + 1 + KEEPALIVE);
    assert_true(path_ping_due(&path, path.ping_at));
    assert_int_equal(path.ping_at, now + 1 + 2 * KEEPALIVE);
}

static void test_speech_postpones_pings(void **state)
{
    (void)state;
    struct path path = started();
    lh_time now = ORIGIN + 20 * MS;
    receive(&path, CONTROL_PONG, PEER, ORIGIN, 0, now);
    lh_time quiet = 4 * lh_rtt_overdue_ns(&path.rtt);
    assert_true(quiet > 4 * 20 * MS && quiet < KEEPALIVE);
    lh_time before = path.ping_at;
    receive(&path, CONTROL_PING, PEER + 1, 0, 0, now); /* idle peers do not keep each other busy */
    receive(&path, CONTROL_PONG, PEER + 2, 0, 0, now);
    path_on_traffic(&path, now + 1);
    assert_int_equal(path.ping_at, before);
    assert_int_equal(path.last_received_ns, now + 1);
    receive(&path, CONTROL_UPPER, PEER + 3, 0, 0, now);
    assert_int_equal(path.ping_at, now + quiet);
    assert_false(path_ping_due(&path, now + quiet - 1));
    assert_true(path_ping_due(&path, now + quiet));
    assert_int_equal(path.ping_at, now + 2 * quiet);
    assert_true(path_ping_due(&path, now + 2 * quiet));
    assert_int_equal(path.ping_at, now + 4 * quiet); /* silence: ever more rarely */
    while (path.ping_span < KEEPALIVE)
        assert_true(path_ping_due(&path, path.ping_at));
    receive(&path, CONTROL_UPPER, PEER + 4, 0, 0, now);
    assert_int_equal(path.ping_at, now + quiet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_of_two_clocks),
        cmocka_unit_test(test_forged_echoes),
        cmocka_unit_test(test_newest_is_echoed),
        cmocka_unit_test(test_few_challenges),
        cmocka_unit_test(test_proof),
        cmocka_unit_test(test_pings_after_the_proof),
        cmocka_unit_test(test_speech_postpones_pings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
