/*
 * test_qp_path.c -
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

#include "sdr/qp_path.h"
#include "wire/qp_info.h"
#include "wire/roce_packet.h"

/* ---- test path mtu --------------------------------------------------------------------------------- */

#define MS         LH_NS_PER_MS
#define MTU        4096u
#define OVERDUE_NS (80 * MS)
#define WAIT_NS    (OVERDUE_NS * 3 / 2 + PATH_MTU_WAIT_MIN_NS)
#define ROUND_NS   (OVERDUE_NS / 2)
#define FIRST_NS   (2 * OVERDUE_NS + PATH_MTU_WAIT_MIN_NS)

static struct path_mtu path_mtu_mtu;
static struct path_mtu_view view;

/* Ids of the probes that were sent last, by length. */
static uint32_t ids[PATH_MTU_LENGTHS];

static int begin(void **state)
{
    (void)state;
    path_mtu_init(&path_mtu_mtu, MTU);
    path_mtu_start(&path_mtu_mtu, PATH_MTU_LENGTHS);
    view = (struct path_mtu_view){.overdue_ns = OVERDUE_NS, .now = 1};
    return 0;
}

/* A bit for each length that is probed. */
static uint32_t step(void)
{
    uint32_t id, shift, lengths = 0;
    path_mtu_on_time(&path_mtu_mtu, &view);
    while (path_mtu_take_probe(&path_mtu_mtu, &id, &shift)) {
        ids[shift] = id;
        lengths |= 1u << shift;
    }
    return lengths;
}

/* Steps at the moment that it asks for; nothing is due a nanosecond before. */
static uint32_t step_next(void)
{
    lh_time next = path_mtu_next(&path_mtu_mtu);
    assert_int_not_equal(next, LH_TIME_NEVER);
    if (next > view.now + 1) {
        view.now = next - 1;
        assert_int_equal(step(), 0);
        assert_int_equal(path_mtu_next(&path_mtu_mtu), next);
    }
    view.now = next;
    return step();
}

/* The rest of a round, of which one probe was sent: the others follow at equal distances. */
static void step_round(void)
{
    for (uint32_t s = 1; s < PATH_MTU_LENGTHS; s++) {
        assert_int_equal(path_mtu_next(&path_mtu_mtu), view.now + ROUND_NS / PATH_MTU_LENGTHS);
        assert_int_equal(step_next(), 1u << s);
    }
}

static bool answer(uint32_t shift)
{
    return path_mtu_on_answer(&path_mtu_mtu, ids[shift], false, &view);
}

static void send(void)
{
    view.sent_bytes += MTU;
    assert_int_equal(step(), 0);
}

/* Until the confirmation is sent, and lost. */
static void lose_confirmation(void)
{
    send();
    assert_int_equal(step_next(), 1u << path_mtu_mtu.shift);
    assert_int_equal(path_mtu_next(&path_mtu_mtu), view.now + WAIT_NS);
    assert_int_equal(step_next(), 1); /* the search: all lengths */
    step_round();
}

/* That length, and all shorter ones, are answered, in one round after the other. */
static void find(uint32_t shift)
{
    for (uint32_t round = 1; round <= PATH_MTU_SEARCH_ANSWERS; round++) {
        for (uint32_t s = shift; s < PATH_MTU_LENGTHS; s++)
            assert_true(answer(s) == (round == PATH_MTU_SEARCH_ANSWERS && s == shift));
        if (round == PATH_MTU_SEARCH_ANSWERS)
            break;
        assert_int_equal(step_next(), 1);
        step_round();
    }
    assert_int_equal(path_mtu_mtu.shift, shift);
}

static void test_nothing_is_probed_before_data_leave(void **state)
{
    (void)state;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&path_mtu_mtu), LH_TIME_NEVER);
    view.sent_bytes = MTU - 1;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&path_mtu_mtu), LH_TIME_NEVER);
    view.sent_bytes++;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&path_mtu_mtu), view.now + FIRST_NS);
    assert_int_equal(step_next(), 1);
    assert_false(answer(0));
    /* Nor after that, until more leaves, and not within a second. */
    lh_time answered = view.now;
    view.now += 100 * LH_NS_PER_S;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&path_mtu_mtu), LH_TIME_NEVER);
    view.now = answered;
    send();
    assert_int_equal(path_mtu_next(&path_mtu_mtu), answered + PATH_MTU_CONFIRM_NS);
    assert_int_equal(step_next(), 1);
}

static void test_a_peer_that_answers_no_probes(void **state)
{
    (void)state;
    path_mtu_init(&path_mtu_mtu, MTU);
    view.sent_bytes = 100 * MTU;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&path_mtu_mtu), LH_TIME_NEVER);
    assert_false(path_mtu_on_answer(&path_mtu_mtu, 0, true, &view));
}

static void test_a_black_hole(void **state)
{
    (void)state;
    for (uint32_t shift = 1; shift < PATH_MTU_LENGTHS; shift++) {
        begin(NULL);
        lose_confirmation();
        find(shift);
    }
}

/* The longest that was answered at all is taken: others may have been lost. */
static void test_losses_in_the_search(void **state)
{
    (void)state;
    lose_confirmation();
    assert_false(answer(1));
    for (uint32_t round = 1; round < PATH_MTU_SEARCH_ANSWERS; round++) {
        assert_false(answer(3));
        assert_int_equal(step_next(), 1);
        step_round();
    }
    assert_true(answer(3));
    assert_int_equal(path_mtu_mtu.shift, 1);
}

/* A late answer to the confirmation is one; and the network may double an answer. */
static void test_the_length_in_use_is_answered_late(void **state)
{
    (void)state;
    send();
    step_next();
    uint32_t confirmation = ids[0];
    step_next();
    step_round();
    for (uint32_t i = 0; i < 2 * PATH_MTU_SEARCH_ANSWERS; i++)
        assert_false(answer(2));
    assert_int_equal(path_mtu_mtu.answers[2], 1);
    assert_false(path_mtu_on_answer(&path_mtu_mtu, confirmation, false, &view));
    assert_int_equal(path_mtu_mtu.state, PATH_MTU_IDLE);
    assert_int_equal(path_mtu_mtu.shift, 0);
    for (uint32_t i = 0; i < 2 * PATH_MTU_SEARCH_ANSWERS; i++) /* of a search that is over */
        assert_false(answer(2));
}

/* Data that arrive show more than probes; but not those before the first probe. */
static void test_data_of_the_whole_mtu_arrive(void **state)
{
    (void)state;
    lose_confirmation();
    assert_false(path_mtu_on_answer(&path_mtu_mtu, ids[2], true, &view));
    assert_false(path_mtu_on_answer(&path_mtu_mtu, ids[1], true, &view)); /* sent before it */
    assert_int_equal(path_mtu_mtu.state, PATH_MTU_SEARCHING);
    assert_false(path_mtu_on_answer(&path_mtu_mtu, ids[3], true, &view));
    assert_int_equal(path_mtu_mtu.state, PATH_MTU_IDLE);
    assert_int_equal(path_mtu_mtu.shift, 0);
}

/* Nothing is answered: one short probe a round, at doubling intervals, and not for ever. */
static void test_an_outage(void **state)
{
    (void)state;
    uint32_t probes = 0;
    lh_time before = 0;
    lose_confirmation();
    while (path_mtu_mtu.silent == 0) { /* answers may come */
        before = view.now;
        probes = step_next();
    }
    assert_true(before - path_mtu_mtu.answered_ns <= WAIT_NS &&
                view.now - path_mtu_mtu.answered_ns > WAIT_NS);
    assert_int_equal(probes, 8);
    lh_time interval = 2 * ROUND_NS;
    for (uint32_t i = 1; i < PATH_MTU_SILENT_ROUNDS; i++) {
        assert_int_equal(path_mtu_next(&path_mtu_mtu) - view.now, interval);
        assert_int_equal(step_next(), 8);
        interval = 2 * interval < PATH_MTU_SEARCH_SPAN_NS ? 2 * interval : PATH_MTU_SEARCH_SPAN_NS;
    }
    assert_int_equal(step_next(), 0);
    assert_int_equal(path_mtu_next(&path_mtu_mtu), LH_TIME_NEVER);
    /* The first answer after it brings all lengths at once. */
    begin(NULL);
    lose_confirmation();
    do
        step_next();
    while (path_mtu_mtu.silent < 2);
    assert_false(answer(3));
    assert_int_equal(path_mtu_next(&path_mtu_mtu), view.now);
    for (probes = step(); probes != 1;)
        probes = step_next();
    step_round();
    assert_false(answer(0));
    assert_int_equal(path_mtu_mtu.state, PATH_MTU_IDLE);
}

/* Until the raise timer expires, with packets that leave and confirmations that are answered. */
static lh_time until_raise(void)
{
    lh_time from = view.now;
    for (;;) {
        view.sent_bytes += MTU;
        uint32_t probes = step();
        if (probes == 0)
            probes = step_next();
        if (probes != 0 && probes != 1u << path_mtu_mtu.shift)
            return view.now - from;
        if (probes != 0)
            answer(path_mtu_mtu.shift);
    }
}

static void test_longer_packets_are_tried_ever_more_rarely(void **state)
{
    (void)state;
    lose_confirmation();
    find(2);
    lh_time span = PATH_MTU_RAISE_MIN_NS;
    for (uint32_t i = 0; i < 10; i++) {
        lh_time took = until_raise();
        assert_in_range(took, span, span + WAIT_NS + FIRST_NS);
        for (uint32_t n = 1; n < 2 * PATH_MTU_RAISE_PROBES; n++) {
            assert_int_equal(path_mtu_next(&path_mtu_mtu), view.now + ROUND_NS);
            assert_int_equal(step_next(), 1u << n % 2);
        }
        assert_int_equal(path_mtu_next(&path_mtu_mtu), view.now + WAIT_NS);
        assert_int_equal(step_next(), 0);
        assert_int_equal(path_mtu_mtu.state, PATH_MTU_IDLE);
        span = 2 * span < PATH_MTU_RAISE_MAX_NS ? 2 * span : PATH_MTU_RAISE_MAX_NS;
    }
    assert_int_equal(span, PATH_MTU_RAISE_MAX_NS);
}

static void test_a_path_that_rises(void **state)
{
    (void)state;
    lose_confirmation();
    find(3);
    until_raise();
    uint32_t whole = ids[0];
    assert_int_equal(step_next(), 2);
    assert_int_equal(step_next(), 4);
    assert_true(answer(2));
    assert_false(answer(3)); /* was not probed */
    assert_int_equal(path_mtu_mtu.shift, 2);
    assert_true(answer(1));
    assert_true(path_mtu_on_answer(&path_mtu_mtu, whole, false, &view));
    assert_int_equal(path_mtu_mtu.shift, 0);
    assert_int_equal(path_mtu_mtu.state, PATH_MTU_IDLE);
    assert_false(path_mtu_on_answer(&path_mtu_mtu, whole, false, &view));
}

/* One that falls again at once is asked less often than one that does so for the first time. */
static void test_a_path_that_flaps(void **state)
{
    (void)state;
    lose_confirmation();
    find(2);
    for (lh_time span = PATH_MTU_RAISE_MIN_NS; span < 64 * LH_NS_PER_S; span *= 2) {
        assert_in_range(until_raise(), span, span + WAIT_NS + FIRST_NS);
        assert_true(answer(0));
        lose_confirmation();
        find(2);
    }
}

static void test_without_a_round_trip(void **state)
{
    (void)state;
    view.overdue_ns = 0;
    send();
    assert_int_equal(step_next(), 1);
    assert_int_equal(path_mtu_next(&path_mtu_mtu), view.now + LH_NS_PER_S);
}

#define MTU_TEST(function) cmocka_unit_test_setup(function, begin)

static int run_path_mtu(void)
{
    const struct CMUnitTest tests[] = {
        MTU_TEST(test_nothing_is_probed_before_data_leave),
        MTU_TEST(test_a_peer_that_answers_no_probes),
        MTU_TEST(test_a_black_hole),
        MTU_TEST(test_losses_in_the_search),
        MTU_TEST(test_the_length_in_use_is_answered_late),
        MTU_TEST(test_data_of_the_whole_mtu_arrive),
        MTU_TEST(test_an_outage),
        MTU_TEST(test_longer_packets_are_tried_ever_more_rarely),
        MTU_TEST(test_a_path_that_rises),
        MTU_TEST(test_a_path_that_flaps),
        MTU_TEST(test_without_a_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test path ------------------------------------------------------------------------------------- */

/* Whether the peer is where it says, round trips from echoed times, and when to ping. */

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

static int run_path(void)
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

/* ---- test qp plan ---------------------------------------------------------------------------------- */

/* Defaults of a QP's attributes, which of two wins, and each limit at its boundary. */

static void test_defaults(void **state)
{
    (void)state;
    const struct sdr_qp_attr attr = {0};
    const struct lh_qp_attr more = {0};
    struct qp_plan plan;
    assert_int_equal(qp_plan_make(&attr, &more, &plan), 0);
    assert_int_equal(plan.shape.mtu_bytes, 4096);
    assert_int_equal(plan.shape.chunk_packets, 16);
    assert_int_equal(plan.shape.slots, 128);
    assert_int_equal(plan.shape.slot_bytes, 8u << 20);
    assert_int_equal(plan.shape.generations, 4);
    assert_int_equal(plan.shape.split.message_bits, 10);
    assert_int_equal(plan.shape.split.offset_bits, 18);
    assert_int_equal(plan.shape.split.fragment_bits, 4);
    assert_int_equal(plan.rate_bps, 0);
    assert_true(plan.send_enable && plan.recv_enable);
}

static void test_given_values(void **state)
{
    (void)state;
    const struct sdr_qp_attr attr = {.mtu = SDR_MTU_1024,
                                     .send_enable = 1,
                                     .rate_limit = 5,
                                     .max_log_num_msgs = 3,
                                     .max_in_flight_log_bytes = 20,
                                     .bitmap_chunk_size_log_bytes = 11};
    struct lh_qp_attr more = {0};
    struct qp_plan plan;
    assert_int_equal(qp_plan_make(&attr, &more, &plan), 0);
    assert_int_equal(plan.shape.mtu_bytes, 1024);
    assert_int_equal(plan.shape.chunk_packets, 2);
    assert_int_equal(plan.shape.slots, 8);
    assert_int_equal(plan.shape.slot_bytes, 1u << 17);
    assert_int_equal(plan.rate_bps, 5000000);
    assert_true(plan.send_enable && !plan.recv_enable);
    /* The extension wins over the SDK's attribute. */
    more = (struct lh_qp_attr){
        .mtu_bytes = 2048, .chunk_bytes = 8192, .slots = 1, .slot_bytes = 3000, .rate_bps = 7};
    assert_int_equal(qp_plan_make(&attr, &more, &plan), 0);
    assert_int_equal(plan.shape.mtu_bytes, 2048);
    assert_int_equal(plan.shape.chunk_packets, 4);
    assert_int_equal(plan.shape.slots, 1);
    assert_int_equal(plan.shape.slot_bytes, 3000);
    assert_int_equal(plan.rate_bps, 7);
    /* A chunk of the SDK is a power of two: a MTU that is none goes into it a power of two of times. */
    more = (struct lh_qp_attr){.mtu_bytes = 1408};
    const struct sdr_qp_attr chunk = {.bitmap_chunk_size_log_bytes = 16};
    assert_int_equal(qp_plan_make(&chunk, &more, &plan), 0);
    assert_int_equal(plan.shape.mtu_bytes, 1408);
    assert_int_equal(plan.shape.chunk_packets, 32);
}

static void expect(const struct lh_qp_attr *more, int error)
{
    const struct sdr_qp_attr attr = {0};
    struct qp_plan plan;
    memset(&plan, 0xA5, sizeof plan);
    assert_int_equal(qp_plan_make(&attr, more, &plan), error);
}

static void test_limits(void **state)
{
    (void)state;
    expect(&(struct lh_qp_attr){.mtu_bytes = ROCE_PAYLOAD_MIN}, 0);
    expect(&(struct lh_qp_attr){.mtu_bytes = ROCE_PAYLOAD_MIN / 2}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.mtu_bytes = 3000}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.mtu_bytes = ROCE_PAYLOAD_MAX}, 0);
    expect(&(struct lh_qp_attr){.mtu_bytes = ROCE_PAYLOAD_MAX + ROCE_PAYLOAD_STEP}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.mtu_bytes = 1408, .chunk_bytes = 4 * 1408}, 0);
    expect(&(struct lh_qp_attr){.mtu_bytes = 1408, .chunk_bytes = 3 * 1408}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.mtu_bytes = 1408, .chunk_bytes = 4096}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.chunk_bytes = 4096}, 0);
    expect(&(struct lh_qp_attr){.chunk_bytes = 2048}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.chunk_bytes = 4096 * 3}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.slots = 1024}, 0);
    expect(&(struct lh_qp_attr){.slots = 2048}, -LH_EINVAL); /* 10 bits of message ID */
    expect(&(struct lh_qp_attr){.slots = 3}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.slot_bytes = UINT64_C(4096) << 18}, 0);
    expect(&(struct lh_qp_attr){.slot_bytes = (UINT64_C(4096) << 18) + 1}, -LH_ERANGE);
    expect(&(struct lh_qp_attr){.slot_bytes = 4095}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.immediate_message_bits = 8, .immediate_fragment_bits = 2}, 0);
    expect(&(struct lh_qp_attr){.immediate_message_bits = 8, .immediate_fragment_bits = 3}, -LH_EINVAL);
    expect(&(struct lh_qp_attr){.generations = QP_INFO_GENERATIONS_MAX}, 0);
    expect(&(struct lh_qp_attr){.generations = QP_INFO_GENERATIONS_MAX + 1}, -LH_EINVAL);
}

static void test_log_limits(void **state)
{
    (void)state;
    const struct lh_qp_attr none = {0};
    struct qp_plan plan;
    assert_int_equal(qp_plan_make(&(struct sdr_qp_attr){.max_log_num_msgs = 17}, &none, &plan), -LH_EINVAL);
    assert_int_equal(qp_plan_make(&(struct sdr_qp_attr){.max_in_flight_log_bytes = 49}, &none, &plan),
                     -LH_EINVAL);
    assert_int_equal(qp_plan_make(&(struct sdr_qp_attr){.bitmap_chunk_size_log_bytes = 32}, &none, &plan),
                     -LH_EINVAL);
}

static int run_qp_plan(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_given_values),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_log_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test round trip: against values calculated by hand ---------------------------------------------- */

static void test_no_sample(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    assert_true(rtt.smoothed_ns == 0 && rtt.samples == 0);
    assert_true(lh_rtt_overdue_ns(&rtt) == 0);
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 0);
}

/* The first sample R: smoothed R, variance R / 2. */
static void test_first_sample(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    lh_rtt_on_sample(&rtt, 800);
    assert_true(rtt.smoothed_ns == 800 && rtt.variance_ns == 400);
    assert_true(rtt.minimum_ns == 800 && rtt.latest_ns == 800 && rtt.samples == 1);
    assert_true(lh_rtt_overdue_ns(&rtt) == 800 + 4 * 400);
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 400); /* 2 * 400 is over half of 800 */
}

/* 800, then 1600: variance 3/4 * 400 + 1/4 * 800 = 500, smoothed 7/8 * 800 + 1/8 * 1600 = 900.
 * Then 400: variance 3/4 * 500 + 1/4 * 500 = 500, smoothed 7/8 * 900 + 1/8 * 400 = 837.5. */
static void test_later_samples(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    lh_rtt_on_sample(&rtt, 800);
    lh_rtt_on_sample(&rtt, 1600);
    assert_true(rtt.variance_ns == 500 && rtt.smoothed_ns == 900);
    assert_true(rtt.minimum_ns == 800 && rtt.latest_ns == 1600);
    lh_rtt_on_sample(&rtt, 400);
    assert_true(rtt.variance_ns == 500 && rtt.smoothed_ns == 837);
    assert_true(rtt.minimum_ns == 400 && rtt.latest_ns == 400 && rtt.samples == 3);
    assert_true(lh_rtt_overdue_ns(&rtt) == 837 + 4 * 500);
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 837 / 2);
}

/* With a steady round trip the variance goes to nothing and the floors of an eighth remain. */
static void test_steady_samples_leave_the_floors(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    for (int i = 0; i < 200; i++)
        lh_rtt_on_sample(&rtt, 8000000);
    assert_true(rtt.smoothed_ns == 8000000 && rtt.variance_ns == 0);
    assert_true(lh_rtt_overdue_ns(&rtt) == 9000000);
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 1000000);
}

/* Variance between the floor and the ceiling: smoothed 8000, variance 600, minimum 8000. */
static void test_reorder_window_follows_the_variance(void **state)
{
    (void)state;
    struct lh_rtt rtt = {.smoothed_ns = 8000, .variance_ns = 600, .minimum_ns = 8000, .samples = 5};
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 1200);
    assert_true(lh_rtt_overdue_ns(&rtt) == 8000 + 2400);
    rtt.variance_ns = 500;
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 1000);
    rtt.variance_ns = 499;
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 1000);
    rtt.variance_ns = 2001;
    assert_true(lh_rtt_reorder_window_ns(&rtt) == 4000);
}

static void test_zero_counts_as_one(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    for (int i = 0; i < 10; i++)
        lh_rtt_on_sample(&rtt, 0);
    assert_true(rtt.smoothed_ns == 1 && rtt.minimum_ns == 1 && rtt.latest_ns == 1);
}

/* A forged echo may make any sample: nothing wraps, and good samples bring it down again. */
static void test_absurd_samples_do_not_wrap(void **state)
{
    (void)state;
    struct lh_rtt rtt;
    lh_rtt_init(&rtt);
    for (int i = 0; i < 10; i++) {
        lh_rtt_on_sample(&rtt, LH_TIME_NEVER);
        assert_true(rtt.smoothed_ns > LH_TIME_NEVER / 64);
        assert_true(lh_rtt_overdue_ns(&rtt) > rtt.smoothed_ns);
        lh_rtt_on_sample(&rtt, 1);
    }
    for (int i = 0; i < 1000; i++)
        lh_rtt_on_sample(&rtt, 1000);
    assert_in_range(rtt.smoothed_ns, 993, 1007);
    assert_in_range(lh_rtt_overdue_ns(&rtt), 1100, 1200);
}

static int run_round_trip(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_sample),
        cmocka_unit_test(test_first_sample),
        cmocka_unit_test(test_later_samples),
        cmocka_unit_test(test_steady_samples_leave_the_floors),
        cmocka_unit_test(test_reorder_window_follows_the_variance),
        cmocka_unit_test(test_zero_counts_as_one),
        cmocka_unit_test(test_absurd_samples_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_path_mtu() + run_path() + run_qp_plan() + run_round_trip();
}
