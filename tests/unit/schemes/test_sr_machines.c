/*
 * test_sr_machines.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "base/min_max.h"
#include "schemes/sr_scheme.h"
#include "wire/scheme_messages.h"

/* ---- test params ----------------------------------------------------------------------------------- */

static uint32_t alpha_of(const char *text)
{
    uint8_t params[LH_SCHEME_PARAMS];
    memset(params, 0xff, sizeof(params));
    assert_int_equal(sr_rto_parse(text, params), 0);
    assert_true(sr_rto_params_valid(params));
    return sr_rto_alpha_hundredths(params);
}

static void test_alpha(void **state)
{
    (void)state;
    assert_int_equal(alpha_of(""), 200);
    assert_int_equal(alpha_of("alpha=2"), 200);
    assert_int_equal(alpha_of("alpha=0.25"), 25);
    assert_int_equal(alpha_of("alpha=1.5"), 150);
    assert_int_equal(alpha_of("alpha=100"), 10000);
}

static void test_what_is_not_alpha(void **state)
{
    (void)state;
    static const char *const bad[] = {"alpha",     "alpha=",
                                      "alpha=x",   "alpha=2x",
                                      "alpha=-1",  "alpha=0.24",
                                      "alpha=0",   "alpha=100.01",
                                      "beta=2",    "alpha=2,b",
                                      "2",         " alpha=2",
                                      "alpha=1e1", "alpha=99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        uint8_t params[LH_SCHEME_PARAMS] = {7};
        assert_int_equal(sr_rto_parse(bad[i], params), -LH_EINVAL);
        assert_int_equal(params[0], 7); /* outputs only on success */
        assert_non_null(strstr(lh_last_error(), "alpha"));
    }
}

static void test_params_from_the_wire(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS] = {0, 24};
    assert_false(sr_rto_params_valid(params));
    params[1] = 25;
    assert_true(sr_rto_params_valid(params));
    params[7] = 1;
    assert_false(sr_rto_params_valid(params));
    uint8_t maximum[LH_SCHEME_PARAMS] = {0x27, 0x10};
    assert_true(sr_rto_params_valid(maximum));
    maximum[1]++;
    assert_false(sr_rto_params_valid(maximum));
}

static void test_sr_nack_has_none(void **state)
{
    (void)state;
    uint8_t params[LH_SCHEME_PARAMS] = {1};
    assert_int_equal(sr_nack_parse("alpha=2", params), -LH_EINVAL);
    assert_false(sr_nack_params_valid(params));
    assert_int_equal(sr_nack_parse("", params), 0);
    assert_true(sr_nack_params_valid(params));
    params[7] = 1;
    assert_false(sr_nack_params_valid(params));
}

static int run_params(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alpha),
        cmocka_unit_test(test_what_is_not_alpha),
        cmocka_unit_test(test_params_from_the_wire),
        cmocka_unit_test(test_sr_nack_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test receiver --------------------------------------------------------------------------------- */

#define RTT     ((lh_time)80000)
#define OVERDUE ((lh_time)90000)
#define WINDOW  ((lh_time)10000)
#define NEVER   LH_TIME_NEVER

struct fixture {
    void *machine;
    uint8_t *bitmap;
    struct lh_stats stats;
    struct lh_receiver_view view;
    struct lh_actions actions;
};

static struct fixture receiver_f;

static void start(const char *scheme, uint32_t chunks)
{
    receiver_f = (struct fixture){.view = {.now = 1000,
                                           .path = {.rtt_ns = RTT,
                                                    .rtt_minimum_ns = RTT,
                                                    .overdue_ns = OVERDUE,
                                                    .reorder_window_ns = WINDOW},
                                           .last_arrival_ns = NEVER,
                                           .later_seen_ns = NEVER,
                                           .length_known = true,
                                           .chunks = chunks}};
    size_t bytes = sr_receiver_bytes(chunks);
    receiver_f.machine = malloc(bytes);
    memset(receiver_f.machine, 0xA5, bytes);
    receiver_f.bitmap = calloc(chunks + 1, 1);
    receiver_f.view.chunk_bitmap = receiver_f.bitmap;
    struct lh_transfer transfer = {.chunks = chunks, .chunk_bytes = 4096, .stats = &receiver_f.stats};
    if (strcmp(scheme, "sr-rto") == 0)
        sr_rto_receiver_start(receiver_f.machine, &transfer, receiver_f.view.now);
    else
        sr_nack_receiver_start(receiver_f.machine, &transfer, receiver_f.view.now);
}

static int tear_down(void **state)
{
    (void)state;
    free(receiver_f.machine);
    free(receiver_f.bitmap);
    receiver_f.machine = NULL;
    receiver_f.bitmap = NULL;
    return 0;
}

static void arrive(uint32_t first, uint32_t end)
{
    memset(receiver_f.bitmap + first, 1, end - first);
    receiver_f.view.chunks_arrived += end - first;
}

static void step(lh_time now)
{
    receiver_f.view.now = now;
    memset(&receiver_f.actions, 0xA5, sizeof(receiver_f.actions));
    receiver_f.actions.count = 0;
    sr_receiver_step(receiver_f.machine, &receiver_f.view, &receiver_f.actions);
}

static void hear(struct sr_mark mark)
{
    uint8_t bytes[SR_MARK_BYTES];
    sr_receiver_on_message(receiver_f.machine, bytes, sr_mark_encode(&mark, bytes), &receiver_f.view);
}

static struct sr_ack ack_at(uint32_t at)
{
    struct sr_ack ack = {0};
    assert_true(at < receiver_f.actions.count);
    const struct lh_action *action = &receiver_f.actions.list[at];
    assert_int_equal(action->kind, LH_ACTION_SEND_MESSAGE);
    assert_int_equal(sr_ack_decode(action->what.message.data, action->what.message.bytes, &ack), 0);
    return ack;
}

/* ---- completion -------------------------------------------------------------------------------------- */

static void test_complete_when_all_is_there(void **state)
{
    (void)state;
    static const char *const names[] = {"sr-nack", "sr-rto"};
    for (size_t i = 0; i < 2; i++) {
        start(names[i], 100);
        arrive(0, 99);
        step(2000);
        assert_true(receiver_f.actions.count == 0 || receiver_f.actions.list[0].kind != LH_ACTION_COMPLETE);
        arrive(99, 100);
        step(3000);
        assert_int_equal(receiver_f.actions.count, 1);
        assert_int_equal(receiver_f.actions.list[0].kind, LH_ACTION_COMPLETE);
        assert_int_equal(receiver_f.actions.next_ns, NEVER);
        step(4000); /* said once */
        assert_int_equal(receiver_f.actions.count, 0);
        tear_down(NULL);
    }
}

static void test_complete_without_chunks(void **state)
{
    (void)state;
    start("sr-nack", 0);
    receiver_f.view.length_known = false;
    step(1000);
    assert_int_equal(receiver_f.actions.count, 0);
    receiver_f.view.length_known = true;
    step(1000);
    assert_int_equal(receiver_f.actions.list[0].kind, LH_ACTION_COMPLETE);
}

static void test_not_complete_before_the_length_is_known(void **state)
{
    (void)state;
    start("sr-nack", 100);
    receiver_f.view.length_known = false;
    arrive(0, 40);
    step(2000);
    assert_int_not_equal(receiver_f.actions.count, 0);
    assert_int_not_equal(receiver_f.actions.list[0].kind, LH_ACTION_COMPLETE);
    receiver_f.view.length_known = true;
    receiver_f.view.chunks = 40;
    step(2001);
    assert_int_equal(receiver_f.actions.list[0].kind, LH_ACTION_COMPLETE);
}

/* ---- acknowledgements -------------------------------------------------------------------------------- */

static void test_rto_acknowledges_by_time_and_count(void **state)
{
    (void)state;
    start("sr-rto", 1000);
    step(1000 + RTT);
    assert_int_equal(receiver_f.actions.count, 0); /* nothing new */
    assert_int_equal(receiver_f.actions.next_ns, NEVER);
    arrive(0, 1);
    step(1000 + RTT);
    assert_int_equal(ack_at(0).cumulative, 1);
    arrive(1, 70);
    arrive(80, 81);
    step(1000 + RTT + RTT / 4 - 1);
    assert_int_equal(receiver_f.actions.count, 0);
    assert_int_equal(receiver_f.actions.next_ns, 1000 + RTT + RTT / 4);
    step(1000 + RTT + RTT / 4);
    struct sr_ack ack = ack_at(0);
    assert_int_equal(ack.flags, 0); /* a gap, and no word of it */
    assert_int_equal(ack.cumulative, 70);
    assert_int_equal(ack.base, 64);
    assert_int_equal(ack.words, 1);
    assert_int_equal(ack.bitmap[0], UINT64_C(0x3f) | (uint64_t)1 << 16);
    assert_int_equal(ack.horizon, 0);
    assert_int_equal(ack.arrived, 71);
    arrive(100, 225);
    step(1000 + RTT + RTT / 4 + 1); /* 125: an eighth */
    assert_int_equal(receiver_f.actions.count, 1);
    assert_int_equal(receiver_f.stats.acks_sent, 3);
}

static void test_a_probe_is_answered_at_once(void **state)
{
    (void)state;
    static const char *const names[] = {"sr-nack", "sr-rto"};
    for (size_t i = 0; i < 2; i++) {
        start(names[i], 100);
        hear((struct sr_mark){.flags = SR_FLAG_PROBE, .mark = 1, .sent_through = 10});
        hear((struct sr_mark){.flags = SR_FLAG_PROBE, .mark = 1, .sent_through = 10});
        step(1000);
        assert_int_equal(receiver_f.actions.count, 1); /* both */
        assert_int_equal(ack_at(0).cumulative, 0);
        assert_int_equal(ack_at(0).words, 0);
        step(1001);
        assert_int_equal(receiver_f.actions.count, 0);
        tear_down(NULL);
    }
}

static void test_a_plain_mark_is_not_answered_when_nothing_is_missing(void **state)
{
    (void)state;
    start("sr-nack", 100);
    arrive(0, 16);
    step(1000);
    assert_int_equal(receiver_f.actions.count, 1);
    hear((struct sr_mark){.mark = 1, .sent_through = 16});
    step(1000 + 10 * RTT);
    assert_int_equal(receiver_f.actions.count, 0);
    assert_int_equal(receiver_f.actions.next_ns, NEVER);
}

/* ---- reports ----------------------------------------------------------------------------------------- */

static void test_a_gap_is_reported_at_its_moment(void **state)
{
    (void)state;
    start("sr-nack", 100);
    arrive(0, 3);
    arrive(4, 10);
    step(2000);
    assert_int_equal(receiver_f.actions.count, 0);
    assert_int_equal(receiver_f.actions.next_ns, 2000 + WINDOW);
    step(2000 + WINDOW - 1);
    assert_int_equal(receiver_f.actions.count, 0);
    step(2000 + WINDOW);
    struct sr_ack ack = ack_at(0);
    assert_int_equal(ack.flags, SR_FLAG_NACK);
    assert_int_equal(ack.cumulative, 3);
    assert_int_equal(ack.horizon, 10);
    assert_int_equal(ack.bitmap[0], 0x3f7);
    assert_int_equal(receiver_f.stats.nacks_sent, 1);
    assert_int_equal(receiver_f.stats.acks_sent, 0);
}

static void test_a_report_names_chunks_past_the_highest(void **state)
{
    (void)state;
    start("sr-nack", 200);
    arrive(0, 10);
    step(1000);
    hear((struct sr_mark){.mark = 1, .sent_through = 200});
    step(1000 + WINDOW);
    struct sr_ack ack = ack_at(0);
    assert_int_equal(ack.horizon, 200);
    assert_int_equal(ack.words, 4); /* zeros, but said */
    assert_int_equal(ack.mark, 1);
}

static void test_a_probe_is_answered_with_what_is_lost(void **state)
{
    (void)state;
    start("sr-nack", 200);
    arrive(0, 10);
    step(1000);
    hear((struct sr_mark){.mark = 1, .sent_through = 200});
    step(1000 + WINDOW);
    hear((struct sr_mark){.flags = SR_FLAG_PROBE, .mark = 1, .sent_through = 200});
    step(1000 + WINDOW + 1);
    assert_int_equal(ack_at(0).flags, SR_FLAG_NACK);
    assert_int_equal(ack_at(0).mark, 1);
}

/* More than one message holds: as many as it takes, in as many calls as it takes. */
static void test_an_answer_of_several_messages(void **state)
{
    (void)state;
    const uint32_t window = 64 * SR_ACK_WORDS_MAX;
    const uint32_t chunks = 10 * window + 100;
    start("sr-nack", chunks);
    arrive(70, 71);
    arrive(chunks - 1, chunks);
    step(1000);
    step(1000 + WINDOW);
    assert_int_equal(receiver_f.actions.count, LH_ACTIONS_MAX);
    for (uint32_t i = 0; i < LH_ACTIONS_MAX; i++) {
        assert_int_equal(ack_at(i).base, i * window);
        assert_int_equal(ack_at(i).words, SR_ACK_WORDS_MAX);
        assert_int_equal(ack_at(i).flags, SR_FLAG_NACK);
    }
    step(1000 + WINDOW);
    assert_int_equal(receiver_f.actions.count, 3);
    assert_int_equal(ack_at(0).base, LH_ACTIONS_MAX * window);
    assert_int_equal(ack_at(2).base, 10 * window);
    assert_int_equal(ack_at(2).words, 2);
    step(1000 + WINDOW);
    assert_int_equal(receiver_f.actions.count, 0);
}

static void test_what_arrives_between_two_parts_of_an_answer(void **state)
{
    (void)state;
    const uint32_t window = 64 * SR_ACK_WORDS_MAX;
    const uint32_t chunks = 10 * window;
    start("sr-nack", chunks);
    arrive(chunks - 2, chunks - 1);
    step(1000);
    step(1000 + WINDOW);
    assert_int_equal(receiver_f.actions.count, LH_ACTIONS_MAX);
    arrive(0, chunks - 2); /* the rest of the answer would begin before the first missing chunk */
    step(1000 + WINDOW);
    assert_int_equal(receiver_f.actions.count, 2); /* that rest, and one for the arrivals */
    assert_int_equal(ack_at(0).cumulative, chunks - 1);
    assert_int_equal(ack_at(0).arrived, chunks - 1);
}

/* ---- what nobody of ours would say ------------------------------------------------------------------- */

static void test_impossible_marks_are_passed_over(void **state)
{
    (void)state;
    start("sr-nack", 100);
    hear((struct sr_mark){.flags = SR_FLAG_PROBE, .mark = 1, .sent_through = 101});
    uint8_t bytes[] = {1, 2, 3};
    sr_receiver_on_message(receiver_f.machine, bytes, sizeof(bytes), &receiver_f.view);
    sr_receiver_on_message(receiver_f.machine, bytes, 0, &receiver_f.view);
    assert_int_equal(receiver_f.stats.bad_control, 3);
    step(1000 + RTT);
    assert_int_equal(receiver_f.actions.count, 0);
    hear((struct sr_mark){.mark = UINT32_MAX, .sent_through = 100});
    step(1000 + RTT);
    step(1000 + RTT + WINDOW);
    assert_int_equal(ack_at(0).mark, UINT32_MAX);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

static int run_receiver(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_complete_when_all_is_there),
        TEST(test_complete_without_chunks),
        TEST(test_not_complete_before_the_length_is_known),
        TEST(test_rto_acknowledges_by_time_and_count),
        TEST(test_a_probe_is_answered_at_once),
        TEST(test_a_plain_mark_is_not_answered_when_nothing_is_missing),
        TEST(test_a_gap_is_reported_at_its_moment),
        TEST(test_a_report_names_chunks_past_the_highest),
        TEST(test_a_probe_is_answered_with_what_is_lost),
        TEST(test_an_answer_of_several_messages),
        TEST(test_what_arrives_between_two_parts_of_an_answer),
        TEST(test_impossible_marks_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test sender ----------------------------------------------------------------------------------- */

struct sender_fixture {
    void *machine;
    struct lh_stats stats;
    struct lh_sender_view view;
    struct lh_actions actions;
};

static struct sender_fixture f;

static void sender_start(const char *scheme, uint32_t chunks)
{
    f = (struct sender_fixture){.view = {.now = 1000,
                                         .path = {.rtt_ns = RTT,
                                                  .rtt_minimum_ns = RTT,
                                                  .overdue_ns = OVERDUE,
                                                  .reorder_window_ns = WINDOW}}};
    size_t bytes = sr_sender_bytes(chunks);
    f.machine = malloc(bytes);
    memset(f.machine, 0xA5, bytes);
    struct lh_transfer transfer = {.chunks = chunks, .chunk_bytes = 4096, .stats = &f.stats};
    if (strcmp(scheme, "sr-rto") == 0) {
        assert_int_equal(sr_rto_parse("", transfer.params), 0);
        sr_rto_sender_start(f.machine, &transfer, f.view.now);
    } else {
        sr_nack_sender_start(f.machine, &transfer, f.view.now);
    }
}

static int sender_tear_down(void **state)
{
    (void)state;
    free(f.machine);
    f.machine = NULL;
    return 0;
}

static void test_sender_step(lh_time now, uint32_t budget)
{
    f.view.now = now;
    f.view.budget_chunks = budget;
    memset(&f.actions, 0xA5, sizeof(f.actions));
    f.actions.count = 0;
    sr_sender_step(f.machine, &f.view, &f.actions);
}

static void sender_hear(struct sr_ack ack)
{
    uint8_t bytes[SR_ACK_BYTES_MAX];
    sr_sender_on_message(f.machine, bytes, sr_ack_encode(&ack, bytes), &f.view);
}

static void expect_chunks(uint32_t at, uint32_t first, uint32_t count, bool again)
{
    assert_true(at < f.actions.count);
    const struct lh_action *action = &f.actions.list[at];
    assert_int_equal(action->kind, LH_ACTION_SEND_CHUNKS);
    assert_int_equal(action->what.chunks.first, first);
    assert_int_equal(action->what.chunks.count, count);
    assert_int_equal(action->what.chunks.again, again);
}

static void expect_mark(uint32_t at, uint32_t number, uint32_t sent_through, uint8_t flags)
{
    assert_true(at < f.actions.count);
    const struct lh_action *action = &f.actions.list[at];
    assert_int_equal(action->kind, LH_ACTION_SEND_MESSAGE);
    struct sr_mark mark;
    assert_int_equal(sr_mark_decode(action->what.message.data, action->what.message.bytes, &mark), 0);
    assert_int_equal(mark.mark, number);
    assert_int_equal(mark.sent_through, sent_through);
    assert_int_equal(mark.flags, flags);
}

/* ---- injection --------------------------------------------------------------------------------------- */

static void test_fills_the_budget_in_long_runs(void **state)
{
    (void)state;
    sender_start("sr-nack", 1000);
    test_sender_step(1000, 0);
    assert_int_equal(f.actions.count, 0);
    assert_int_equal(f.actions.next_ns, LH_TIME_NEVER);
    test_sender_step(1000, 300);
    assert_int_equal(f.actions.count, 1);
    expect_chunks(0, 0, 300, false);
    assert_int_equal(f.actions.in_flight_chunks, 300);
    test_sender_step(1000, 10000);
    assert_int_equal(f.actions.count, 2);
    expect_chunks(0, 300, 700, false);
    expect_mark(1, 1, 1000, 0); /* at once: no later chunk will show the loss of the last */
    assert_int_equal(f.actions.in_flight_chunks, 1000);
}

static void test_repairs_come_before_new_chunks(void **state)
{
    (void)state;
    sender_start("sr-nack", 1000);
    test_sender_step(1000, 100);
    sender_hear((struct sr_ack){.flags = SR_FLAG_NACK,
                                .cumulative = 5,
                                .horizon = 64,
                                .arrived = 62,
                                .words = 1,
                                .bitmap = {~((uint64_t)3 << 5 | (uint64_t)1 << 9)}});
    assert_int_equal(f.stats.nacks_received, 1);
    test_sender_step(2000, 4);
    assert_int_equal(f.actions.count, 4);
    expect_chunks(0, 5, 2, true);
    expect_chunks(1, 9, 1, true);
    expect_chunks(2, 100, 1, false);
    expect_mark(3, 1, 101, 0);
}

static void test_a_full_list_goes_on_in_the_next_call(void **state)
{
    (void)state;
    sender_start("sr-nack", 64);
    test_sender_step(1000, 64);
    uint64_t every_second = UINT64_C(0x5555555555555555);
    sender_hear((struct sr_ack){
        .horizon = 64, .cumulative = 1, .arrived = 32, .words = 1, .bitmap = {every_second}});
    for (uint32_t first = 1; first < 64; first += 2 * LH_ACTIONS_MAX) {
        test_sender_step(2000, 64);
        assert_int_equal(f.actions.count, LH_ACTIONS_MAX);
        for (uint32_t i = 0; i < LH_ACTIONS_MAX; i++)
            expect_chunks(i, first + 2 * i, 1, true);
    }
    test_sender_step(2000, 64);
    assert_int_equal(f.actions.count, 1);
    expect_mark(0, 2, 64, 0);
}

/* ---- what counts as lost ----------------------------------------------------------------------------- */

static struct sr_ack nack_of(uint64_t bitmap, uint32_t horizon, uint32_t mark)
{
    return (struct sr_ack){.flags = SR_FLAG_NACK,
                           .mark = mark,
                           .horizon = horizon,
                           .arrived = (uint32_t)__builtin_popcountll(bitmap),
                           .words = 1,
                           .bitmap = {bitmap}};
}

static void test_a_repeated_report_changes_nothing(void **state)
{
    (void)state;
    sender_start("sr-nack", 64);
    test_sender_step(1000, 64);
    sender_hear(nack_of(~UINT64_C(1), 64, 0));
    sender_hear(nack_of(~UINT64_C(1), 64, 0));
    test_sender_step(2000, 64);
    assert_int_equal(f.actions.count, 2);
    expect_chunks(0, 0, 1, true);
    expect_mark(1, 2, 64, 0);
    sender_hear(nack_of(~UINT64_C(1), 64, 0)); /* after the repair, too */
    sender_hear(nack_of(~UINT64_C(1), 64, 1)); /* that MARK went before the repair */
    test_sender_step(2500, 64);
    assert_int_equal(f.actions.count, 0);
    sender_hear(nack_of(~UINT64_C(1), 64, 2)); /* that one went behind it */
    test_sender_step(3000, 64);
    expect_chunks(0, 0, 1, true);
    expect_mark(1, 3, 64, 0);
    sender_hear(nack_of(~UINT64_C(1), 64, 1)); /* an old one, late */
    test_sender_step(3500, 64);
    assert_int_equal(f.actions.count, 0);
}

static void test_only_what_lies_before_the_horizon_is_lost(void **state)
{
    (void)state;
    sender_start("sr-nack", 64);
    test_sender_step(1000, 64);
    sender_hear(nack_of(0, 10, 0));
    assert_int_equal(f.stats.bad_control, 0);
    test_sender_step(2000, 64);
    expect_chunks(0, 0, 10, true);
    assert_int_equal(f.actions.count, 2);
    assert_int_equal(f.actions.in_flight_chunks, 64);
}

static void test_an_old_ack_takes_nothing_back(void **state)
{
    (void)state;
    sender_start("sr-nack", 64);
    test_sender_step(1000, 64);
    sender_hear((struct sr_ack){.cumulative = 20, .arrived = 20});
    sender_hear((struct sr_ack){.cumulative = 10, .arrived = 10, .horizon = 20, .words = 1});
    test_sender_step(2000, 64);
    assert_int_equal(f.actions.count, 0);
    assert_int_equal(f.actions.in_flight_chunks, 44);
}

static void test_more_chunks_than_one_ack_can_name(void **state)
{
    (void)state;
    const uint32_t chunks = 3 * 64 * SR_ACK_WORDS_MAX;
    sender_start("sr-nack", chunks);
    test_sender_step(1000, chunks);
    struct sr_ack ack = {.arrived = chunks - 2, .horizon = chunks, .words = SR_ACK_WORDS_MAX};
    memset(ack.bitmap, 0xff, sizeof(ack.bitmap));
    ack.bitmap[0] &= ~UINT64_C(1);
    sender_hear(ack);
    test_sender_step(2000, chunks);
    expect_chunks(0, 0, 1, true);
    assert_int_equal(f.actions.count, 2);            /* what the ACK did not name is not lost */
    assert_int_equal(f.actions.in_flight_chunks, 2); /* but is believed to be there */
    ack.bitmap[0] |= 1;
    ack.base = 2 * 64 * SR_ACK_WORDS_MAX;
    ack.bitmap[SR_ACK_WORDS_MAX - 1] = UINT64_MAX >> 1;
    sender_hear(ack);
    test_sender_step(3000, chunks);
    expect_chunks(0, chunks - 1, 1, true);
}

static void test_impossible_acks_are_passed_over(void **state)
{
    (void)state;
    sender_start("sr-nack", 200);
    test_sender_step(1000, 100);
    sender_hear((struct sr_ack){.cumulative = 101, .base = 64, .arrived = 101});
    sender_hear((struct sr_ack){.arrived = 101});
    sender_hear((struct sr_ack){.mark = 1}); /* none was sent yet */
    uint8_t bytes[] = {1, 2, 3};
    sr_sender_on_message(f.machine, bytes, sizeof(bytes), &f.view);
    sr_sender_on_message(f.machine, bytes, 0, &f.view);
    assert_int_equal(f.stats.bad_control, 5);
    assert_int_equal(f.stats.acks_received, 0);
    /* Bits and horizons past what was sent are cut. */
    struct sr_ack far = {.horizon = UINT32_MAX, .base = 64, .arrived = 100, .words = SR_ACK_WORDS_MAX};
    memset(far.bitmap, 0xff, sizeof(far.bitmap));
    sender_hear(far);
    far.base = (UINT32_MAX - 64 * SR_ACK_WORDS_MAX) / 64 * 64;
    sender_hear(far);
    assert_int_equal(f.stats.bad_control, 5);
    test_sender_step(2000, 200);
    assert_int_equal(f.actions.count, 2);
    expect_chunks(0, 100, 100, false);
}

/* ---- timers ------------------------------------------------------------------------------------------ */

static void test_cover_in_mid_injection(void **state)
{
    (void)state;
    sender_start("sr-nack", 1000);
    test_sender_step(1000, 10);
    assert_int_equal(f.actions.next_ns, 1000 + RTT / 4);
    test_sender_step(1000 + RTT / 4 - 1, 10);
    assert_int_equal(f.actions.count, 1);
    test_sender_step(1000 + RTT / 4, 10);
    assert_int_equal(f.actions.count, 2);
    expect_mark(0, 1, 20, 0); /* of what was injected before */
    expect_chunks(1, 20, 10, false);
}

static void test_repairs_without_budget_are_covered_in_time(void **state)
{
    (void)state;
    sender_start("sr-nack", 64);
    test_sender_step(1000, 64);
    sender_hear(nack_of(0, 64, 0));
    test_sender_step(2000, 5);
    assert_int_equal(f.actions.count, 1); /* more repairs wait */
    assert_int_equal(f.actions.next_ns, 2000 + WINDOW / 4);
    test_sender_step(2000 + WINDOW / 4 - 1, 0);
    assert_int_equal(f.actions.count, 0);
    test_sender_step(2000 + WINDOW / 4, 0);
    assert_int_equal(f.actions.count, 1);
    expect_mark(0, 2, 64, 0);
}

static void test_silence_after_the_end(void **state)
{
    (void)state;
    sender_start("sr-nack", 64);
    test_sender_step(1000, 64);
    static const lh_time repeats[] = {WINDOW, 3 * WINDOW, 7 * WINDOW};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(f.actions.next_ns, 1000 + repeats[i]);
        test_sender_step(1000 + repeats[i], 64);
        assert_int_equal(f.actions.count, 1);
        expect_mark(0, 1, 64, 0);
    }
    assert_int_equal(f.actions.next_ns, 1000 + OVERDUE);
    test_sender_step(1000 + OVERDUE - 1, 64);
    assert_int_equal(f.actions.count, 0);
    test_sender_step(1000 + OVERDUE, 64);
    expect_mark(0, 1, 64, SR_FLAG_PROBE);
    assert_int_equal(f.stats.probes_sent, 1);
}

static void test_probes_never_end(void **state)
{
    (void)state;
    sender_start("sr-nack", 1);
    test_sender_step(1000, 1);
    for (int probes = 0; probes < 100;) {
        lh_time next = f.actions.next_ns;
        assert_in_range(next - f.view.now, 1, lh_max(8 * OVERDUE, f.view.now / 8));
        test_sender_step(next, 1);
        probes += f.stats.probes_sent > (uint64_t)probes;
    }
    sender_hear((struct sr_ack){0});
    test_sender_step(f.view.now + OVERDUE - 1, 1);
    assert_int_equal(f.actions.count, 0);
    test_sender_step(f.view.now + 1, 1);
    assert_int_equal(f.actions.count, 1);
}

static void test_a_probe_covers_what_is_uncovered(void **state)
{
    (void)state;
    sender_start("sr-nack", 100);
    f.view.path.overdue_ns = RTT; /* as early as it gets */
    test_sender_step(1000, 10);
    test_sender_step(1000 + RTT / 4, 0);
    expect_mark(0, 1, 10, 0);
    test_sender_step(1000 + RTT - 1, 10);
    expect_chunks(0, 10, 10, false);
    test_sender_step(1000 + 5 * RTT, 0); /* called late: cover and probe are both due */
    expect_mark(0, 2, 20, 0);
    expect_mark(1, 2, 20, SR_FLAG_PROBE);
}

static void test_rto_expires_and_sends_again(void **state)
{
    (void)state;
    sender_start("sr-rto", 100);
    test_sender_step(1000, 100);
    assert_int_equal(f.actions.count, 1); /* no MARK */
    assert_int_equal(f.actions.next_ns, 1000 + OVERDUE);
    sender_hear((struct sr_ack){.cumulative = 40, .arrived = 41, .words = 1, .bitmap = {UINT64_MAX >> 23}});
    test_sender_step(1000 + 3 * RTT - 1, 100);
    assert_int_equal(f.stats.timeouts, 0);
    assert_int_equal(f.actions.in_flight_chunks, 59);
    test_sender_step(1000 + 3 * RTT, 100);
    expect_chunks(0, 41, 59, true);
    assert_int_equal(f.stats.timeouts, 59);
    assert_int_equal(f.actions.in_flight_chunks, 59);
    test_sender_step(1000 + 6 * RTT - 1, 100);
    assert_int_equal(f.stats.timeouts, 59);
    test_sender_step(1000 + 6 * RTT, 100);
    assert_int_equal(f.stats.timeouts, 118);
}

static void test_rto_takes_no_word_of_a_loss(void **state)
{
    (void)state;
    sender_start("sr-rto", 64);
    test_sender_step(1000, 64);
    sender_hear(nack_of(0, 64, 0));
    test_sender_step(2000, 64);
    assert_int_equal(f.actions.count, 0);
}

static void test_rto_asks_though_it_repairs(void **state)
{
    (void)state;
    sender_start("sr-rto", 1);
    test_sender_step(1000, 1);
    for (int i = 0; i < 100; i++) /* all ACKs are lost */
        test_sender_step(f.actions.next_ns, 1);
    assert_true(f.stats.probes_sent > 10);
    assert_true(f.stats.timeouts > 10);
}

static void test_nothing_to_send(void **state)
{
    (void)state;
    static const char *const names[] = {"sr-nack", "sr-rto"};
    for (size_t i = 0; i < 2; i++) {
        free(f.machine);
        sender_start(names[i], 0);
        test_sender_step(1000, 100);
        assert_int_equal(f.actions.count, 0);
        assert_int_equal(f.actions.next_ns, LH_TIME_NEVER);
        assert_int_equal(f.actions.in_flight_chunks, 0);
        sender_hear((struct sr_ack){0});
        test_sender_step(2000, 100);
        assert_int_equal(f.actions.next_ns, LH_TIME_NEVER);
    }
}

/* After rounds of repairs that bring nothing the next one waits for two round trips (sr_timers.h). */
static void test_repairs_that_bring_nothing_become_rarer(void **state)
{
    (void)state;
    struct sr_ack ack = {.flags = SR_FLAG_NACK,
                         .cumulative = 5,
                         .horizon = 64,
                         .arrived = 63,
                         .words = 1,
                         .bitmap = {~((uint64_t)1 << 5)}};
    lh_time now = 1000;
    sender_start("sr-nack", 64);
    test_sender_step(now, 1000);
    for (ack.mark = 1; ack.mark <= 4; ack.mark++) {
        now += RTT;
        sender_hear(ack);
        test_sender_step(now, 10);
        expect_chunks(0, 5, 1, true);
    }
    sender_hear(ack);
    test_sender_step(now + 2 * RTT - 1, 10);
    for (uint32_t i = 0; i < f.actions.count; i++)
        assert_int_not_equal(f.actions.list[i].kind, LH_ACTION_SEND_CHUNKS);
    test_sender_step(now + 2 * RTT, 10);
    expect_chunks(0, 5, 1, true);
}

#define SENDER_TEST(name) cmocka_unit_test_teardown(name, sender_tear_down)

static int run_sender(void)
{
    const struct CMUnitTest tests[] = {
        SENDER_TEST(test_fills_the_budget_in_long_runs),
        SENDER_TEST(test_repairs_come_before_new_chunks),
        SENDER_TEST(test_a_full_list_goes_on_in_the_next_call),
        SENDER_TEST(test_a_repeated_report_changes_nothing),
        SENDER_TEST(test_only_what_lies_before_the_horizon_is_lost),
        SENDER_TEST(test_an_old_ack_takes_nothing_back),
        SENDER_TEST(test_more_chunks_than_one_ack_can_name),
        SENDER_TEST(test_impossible_acks_are_passed_over),
        SENDER_TEST(test_cover_in_mid_injection),
        SENDER_TEST(test_repairs_without_budget_are_covered_in_time),
        SENDER_TEST(test_silence_after_the_end),
        SENDER_TEST(test_probes_never_end),
        SENDER_TEST(test_a_probe_covers_what_is_uncovered),
        SENDER_TEST(test_rto_expires_and_sends_again),
        SENDER_TEST(test_rto_takes_no_word_of_a_loss),
        SENDER_TEST(test_rto_asks_though_it_repairs),
        SENDER_TEST(test_nothing_to_send),
        SENDER_TEST(test_repairs_that_bring_nothing_become_rarer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_params() + run_receiver() + run_sender();
}
