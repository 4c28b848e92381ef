/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/receiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/selective_repeat.h"

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

static struct fixture f;

static void start(const char *scheme, uint32_t chunks)
{
    f = (struct fixture){.view = {.now = 1000,
                                  .path = {.rtt_ns = RTT,
                                           .rtt_minimum_ns = RTT,
                                           .overdue_ns = OVERDUE,
                                           .reorder_window_ns = WINDOW},
                                  .last_arrival_ns = NEVER,
                                  .later_seen_ns = NEVER,
                                  .length_known = true,
                                  .chunks = chunks}};
    size_t bytes = sr_receiver_bytes(chunks);
    f.machine = malloc(bytes);
    memset(f.machine, 0xA5, bytes);
    f.bitmap = calloc(chunks + 1, 1);
    f.view.chunk_bitmap = f.bitmap;
    struct lh_transfer transfer = {.chunks = chunks, .chunk_bytes = 4096, .stats = &f.stats};
    if (strcmp(scheme, "sr-rto") == 0)
        sr_rto_receiver_start(f.machine, &transfer, f.view.now);
    else
        sr_nack_receiver_start(f.machine, &transfer, f.view.now);
}

static int tear_down(void **state)
{
    (void)state;
    free(f.machine);
    free(f.bitmap);
    f.machine = NULL;
    f.bitmap = NULL;
    return 0;
}

static void arrive(uint32_t first, uint32_t end)
{
    memset(f.bitmap + first, 1, end - first);
    f.view.chunks_arrived += end - first;
}

static void step(lh_time now)
{
    f.view.now = now;
    memset(&f.actions, 0xA5, sizeof(f.actions));
    f.actions.count = 0;
    sr_receiver_step(f.machine, &f.view, &f.actions);
}

static void hear(struct sr_mark mark)
{
    uint8_t bytes[SR_MARK_BYTES];
    sr_receiver_on_message(f.machine, bytes, sr_mark_encode(&mark, bytes), &f.view);
}

static struct sr_ack ack_at(uint32_t at)
{
    struct sr_ack ack = {0};
    assert_true(at < f.actions.count);
    const struct lh_action *action = &f.actions.list[at];
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
        assert_true(f.actions.count == 0 || f.actions.list[0].kind != LH_ACTION_COMPLETE);
        arrive(99, 100);
        step(3000);
        assert_int_equal(f.actions.count, 1);
        assert_int_equal(f.actions.list[0].kind, LH_ACTION_COMPLETE);
        assert_int_equal(f.actions.next_ns, NEVER);
        step(4000); /* said once */
        assert_int_equal(f.actions.count, 0);
        tear_down(NULL);
    }
}

static void test_complete_without_chunks(void **state)
{
    (void)state;
    start("sr-nack", 0);
    f.view.length_known = false;
    step(1000);
    assert_int_equal(f.actions.count, 0);
    f.view.length_known = true;
    step(1000);
    assert_int_equal(f.actions.list[0].kind, LH_ACTION_COMPLETE);
}

static void test_not_complete_before_the_length_is_known(void **state)
{
    (void)state;
    start("sr-nack", 100);
    f.view.length_known = false;
    arrive(0, 40);
    step(2000);
    assert_int_not_equal(f.actions.count, 0);
    assert_int_not_equal(f.actions.list[0].kind, LH_ACTION_COMPLETE);
    f.view.length_known = true;
    f.view.chunks = 40;
    step(2001);
    assert_int_equal(f.actions.list[0].kind, LH_ACTION_COMPLETE);
}

/* ---- acknowledgements -------------------------------------------------------------------------------- */

static void test_rto_acknowledges_by_time_and_count(void **state)
{
    (void)state;
    start("sr-rto", 1000);
    step(1000 + RTT);
    assert_int_equal(f.actions.count, 0); /* nothing new */
    assert_int_equal(f.actions.next_ns, NEVER);
    arrive(0, 1);
    step(1000 + RTT);
    assert_int_equal(ack_at(0).cumulative, 1);
    arrive(1, 70);
    arrive(80, 81);
    step(1000 + RTT + RTT / 4 - 1);
    assert_int_equal(f.actions.count, 0);
    assert_int_equal(f.actions.next_ns, 1000 + RTT + RTT / 4);
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
    assert_int_equal(f.actions.count, 1);
    assert_int_equal(f.stats.acks_sent, 3);
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
        assert_int_equal(f.actions.count, 1); /* both */
        assert_int_equal(ack_at(0).cumulative, 0);
        assert_int_equal(ack_at(0).words, 0);
        step(1001);
        assert_int_equal(f.actions.count, 0);
        tear_down(NULL);
    }
}

static void test_a_plain_mark_is_not_answered_when_nothing_is_missing(void **state)
{
    (void)state;
    start("sr-nack", 100);
    arrive(0, 16);
    step(1000);
    assert_int_equal(f.actions.count, 1);
    hear((struct sr_mark){.mark = 1, .sent_through = 16});
    step(1000 + 10 * RTT);
    assert_int_equal(f.actions.count, 0);
    assert_int_equal(f.actions.next_ns, NEVER);
}

/* ---- reports ----------------------------------------------------------------------------------------- */

static void test_a_gap_is_reported_at_its_moment(void **state)
{
    (void)state;
    start("sr-nack", 100);
    arrive(0, 3);
    arrive(4, 10);
    step(2000);
    assert_int_equal(f.actions.count, 0);
    assert_int_equal(f.actions.next_ns, 2000 + WINDOW);
    step(2000 + WINDOW - 1);
    assert_int_equal(f.actions.count, 0);
    step(2000 + WINDOW);
    struct sr_ack ack = ack_at(0);
    assert_int_equal(ack.flags, SR_FLAG_NACK);
    assert_int_equal(ack.cumulative, 3);
    assert_int_equal(ack.horizon, 10);
    assert_int_equal(ack.bitmap[0], 0x3f7);
    assert_int_equal(f.stats.nacks_sent, 1);
    assert_int_equal(f.stats.acks_sent, 0);
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
    assert_int_equal(f.actions.count, LH_ACTIONS_MAX);
    for (uint32_t i = 0; i < LH_ACTIONS_MAX; i++) {
        assert_int_equal(ack_at(i).base, i * window);
        assert_int_equal(ack_at(i).words, SR_ACK_WORDS_MAX);
        assert_int_equal(ack_at(i).flags, SR_FLAG_NACK);
    }
    step(1000 + WINDOW);
    assert_int_equal(f.actions.count, 3);
    assert_int_equal(ack_at(0).base, LH_ACTIONS_MAX * window);
    assert_int_equal(ack_at(2).base, 10 * window);
    assert_int_equal(ack_at(2).words, 2);
    step(1000 + WINDOW);
    assert_int_equal(f.actions.count, 0);
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
    assert_int_equal(f.actions.count, LH_ACTIONS_MAX);
    arrive(0, chunks - 2); /* the rest of the answer would begin before the first missing chunk */
    step(1000 + WINDOW);
    assert_int_equal(f.actions.count, 2); /* that rest, and one for the arrivals */
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
    sr_receiver_on_message(f.machine, bytes, sizeof(bytes), &f.view);
    sr_receiver_on_message(f.machine, bytes, 0, &f.view);
    assert_int_equal(f.stats.bad_control, 3);
    step(1000 + RTT);
    assert_int_equal(f.actions.count, 0);
    hear((struct sr_mark){.mark = UINT32_MAX, .sent_through = 100});
    step(1000 + RTT);
    step(1000 + RTT + WINDOW);
    assert_int_equal(ack_at(0).mark, UINT32_MAX);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
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
