/* SPDX-License-Identifier: BSD-3-Clause */
#include "sdr/run/path_mtu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MS         LH_NS_PER_MS
#define MTU        4096u
#define OVERDUE_NS (80 * MS)
#define WAIT_NS    (OVERDUE_NS * 3 / 2 + PATH_MTU_WAIT_MIN_NS)
#define ROUND_NS   (OVERDUE_NS / 2)
#define FIRST_NS   (2 * OVERDUE_NS + PATH_MTU_WAIT_MIN_NS)

static struct path_mtu mtu;
static struct path_mtu_view view;

/* Ids of the probes that were sent last, by length. */
static uint32_t ids[PATH_MTU_LENGTHS];

static int begin(void **state)
{
    (void)state;
    path_mtu_init(&mtu, MTU);
    path_mtu_start(&mtu, PATH_MTU_LENGTHS);
    view = (struct path_mtu_view){.overdue_ns = OVERDUE_NS, .now = 1};
    return 0;
}

/* A bit for each length that is probed. */
static uint32_t step(void)
{
    uint32_t id, shift, lengths = 0;
    path_mtu_on_time(&mtu, &view);
    while (path_mtu_take_probe(&mtu, &id, &shift)) {
        ids[shift] = id;
        lengths |= 1u << shift;
    }
    return lengths;
}

/* Steps at the moment that it asks for; nothing is due a nanosecond before. */
static uint32_t step_next(void)
{
    lh_time next = path_mtu_next(&mtu);
    assert_int_not_equal(next, LH_TIME_NEVER);
    if (next > view.now + 1) {
        view.now = next - 1;
        assert_int_equal(step(), 0);
        assert_int_equal(path_mtu_next(&mtu), next);
    }
    view.now = next;
    return step();
}

/* The rest of a round, of which one probe was sent: the others follow at equal distances. */
static void step_round(void)
{
    for (uint32_t s = 1; s < PATH_MTU_LENGTHS; s++) {
        assert_int_equal(path_mtu_next(&mtu), view.now + ROUND_NS / PATH_MTU_LENGTHS);
        assert_int_equal(step_next(), 1u << s);
    }
}

static bool answer(uint32_t shift)
{
    return path_mtu_on_answer(&mtu, ids[shift], false, &view);
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
    assert_int_equal(step_next(), 1u << mtu.shift);
    assert_int_equal(path_mtu_next(&mtu), view.now + WAIT_NS);
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
    assert_int_equal(mtu.shift, shift);
}

static void test_nothing_is_probed_before_data_leave(void **state)
{
    (void)state;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&mtu), LH_TIME_NEVER);
    view.sent_bytes = MTU - 1;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&mtu), LH_TIME_NEVER);
    view.sent_bytes++;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&mtu), view.now + FIRST_NS);
    assert_int_equal(step_next(), 1);
    assert_false(answer(0));
    /* Nor after that, until more leaves, and not within a second. */
    lh_time answered = view.now;
    view.now += 100 * LH_NS_PER_S;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&mtu), LH_TIME_NEVER);
    view.now = answered;
    send();
    assert_int_equal(path_mtu_next(&mtu), answered + PATH_MTU_CONFIRM_NS);
    assert_int_equal(step_next(), 1);
}

static void test_a_peer_that_answers_no_probes(void **state)
{
    (void)state;
    path_mtu_init(&mtu, MTU);
    view.sent_bytes = 100 * MTU;
    assert_int_equal(step(), 0);
    assert_int_equal(path_mtu_next(&mtu), LH_TIME_NEVER);
    assert_false(path_mtu_on_answer(&mtu, 0, true, &view));
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
    assert_int_equal(mtu.shift, 1);
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
    assert_int_equal(mtu.answers[2], 1);
    assert_false(path_mtu_on_answer(&mtu, confirmation, false, &view));
    assert_int_equal(mtu.state, PATH_MTU_IDLE);
    assert_int_equal(mtu.shift, 0);
    for (uint32_t i = 0; i < 2 * PATH_MTU_SEARCH_ANSWERS; i++) /* of a search that is over */
        assert_false(answer(2));
}

/* Data that arrive show more than probes; but not those before the first probe. */
static void test_data_of_the_whole_mtu_arrive(void **state)
{
    (void)state;
    lose_confirmation();
    assert_false(path_mtu_on_answer(&mtu, ids[2], true, &view));
    assert_false(path_mtu_on_answer(&mtu, ids[1], true, &view)); /* sent before it */
    assert_int_equal(mtu.state, PATH_MTU_SEARCHING);
    assert_false(path_mtu_on_answer(&mtu, ids[3], true, &view));
    assert_int_equal(mtu.state, PATH_MTU_IDLE);
    assert_int_equal(mtu.shift, 0);
}

/* Nothing is answered: one short probe a round, at doubling intervals, and not for ever. */
static void test_an_outage(void **state)
{
    (void)state;
    uint32_t probes = 0;
    lh_time before = 0;
    lose_confirmation();
    while (mtu.silent == 0) { /* answers may come */
        before = view.now;
        probes = step_next();
    }
    assert_true(before - mtu.answered_ns <= WAIT_NS && view.now - mtu.answered_ns > WAIT_NS);
    assert_int_equal(probes, 8);
    lh_time interval = 2 * ROUND_NS;
    for (uint32_t i = 1; i < PATH_MTU_SILENT_ROUNDS; i++) {
        assert_int_equal(path_mtu_next(&mtu) - view.now, interval);
        assert_int_equal(step_next(), 8);
        interval = 2 * interval < PATH_MTU_SEARCH_SPAN_NS ? 2 * interval : PATH_MTU_SEARCH_SPAN_NS;
    }
    assert_int_equal(step_next(), 0);
    assert_int_equal(path_mtu_next(&mtu), LH_TIME_NEVER);
    /* The first answer after it brings all lengths at once. */
    begin(NULL);
    lose_confirmation();
    do
        step_next();
    while (mtu.silent < 2);
    assert_false(answer(3));
    assert_int_equal(path_mtu_next(&mtu), view.now);
    for (probes = step(); probes != 1;)
        probes = step_next();
    step_round();
    assert_false(answer(0));
    assert_int_equal(mtu.state, PATH_MTU_IDLE);
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
        if (probes != 0 && probes != 1u << mtu.shift)
            return view.now - from;
        if (probes != 0)
            answer(mtu.shift);
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
            assert_int_equal(path_mtu_next(&mtu), view.now + ROUND_NS);
            assert_int_equal(step_next(), 1u << n % 2);
        }
        assert_int_equal(path_mtu_next(&mtu), view.now + WAIT_NS);
        assert_int_equal(step_next(), 0);
        assert_int_equal(mtu.state, PATH_MTU_IDLE);
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
    assert_int_equal(mtu.shift, 2);
    assert_true(answer(1));
    assert_true(path_mtu_on_answer(&mtu, whole, false, &view));
    assert_int_equal(mtu.shift, 0);
    assert_int_equal(mtu.state, PATH_MTU_IDLE);
    assert_false(path_mtu_on_answer(&mtu, whole, false, &view));
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
    assert_int_equal(path_mtu_next(&mtu), view.now + LH_NS_PER_S);
}

#define MTU_TEST(function) cmocka_unit_test_setup(function, begin)

int main(void)
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
