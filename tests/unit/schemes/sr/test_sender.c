/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/least.h"
#include "schemes/sr/params.h"
#include "wire/selective_repeat.h"

#define RTT     ((lh_time)80000)
#define OVERDUE ((lh_time)90000)
#define WINDOW  ((lh_time)10000)

struct fixture {
    void *machine;
    struct lh_stats stats;
    struct lh_sender_view view;
    struct lh_actions actions;
};

static struct fixture f;

static void start(const char *scheme, uint32_t chunks)
{
    f = (struct fixture){.view = {.now = 1000,
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

static int tear_down(void **state)
{
    (void)state;
    free(f.machine);
    f.machine = NULL;
    return 0;
}

static void step(lh_time now, uint32_t budget)
{
    f.view.now = now;
    f.view.budget_chunks = budget;
    memset(&f.actions, 0xA5, sizeof(f.actions));
    f.actions.count = 0;
    sr_sender_step(f.machine, &f.view, &f.actions);
}

static void hear(struct sr_ack ack)
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
    start("sr-nack", 1000);
    step(1000, 0);
    assert_int_equal(f.actions.count, 0);
    assert_int_equal(f.actions.next_ns, LH_TIME_NEVER);
    step(1000, 300);
    assert_int_equal(f.actions.count, 1);
    expect_chunks(0, 0, 300, false);
    assert_int_equal(f.actions.in_flight_chunks, 300);
    step(1000, 10000);
    assert_int_equal(f.actions.count, 2);
    expect_chunks(0, 300, 700, false);
    expect_mark(1, 1, 1000, 0); /* at once: no later chunk will show the loss of the last */
    assert_int_equal(f.actions.in_flight_chunks, 1000);
}

static void test_repairs_come_before_new_chunks(void **state)
{
    (void)state;
    start("sr-nack", 1000);
    step(1000, 100);
    hear((struct sr_ack){.flags = SR_FLAG_NACK,
                         .cumulative = 5,
                         .horizon = 64,
                         .arrived = 62,
                         .words = 1,
                         .bitmap = {~((uint64_t)3 << 5 | (uint64_t)1 << 9)}});
    assert_int_equal(f.stats.nacks_received, 1);
    step(2000, 4);
    assert_int_equal(f.actions.count, 4);
    expect_chunks(0, 5, 2, true);
    expect_chunks(1, 9, 1, true);
    expect_chunks(2, 100, 1, false);
    expect_mark(3, 1, 101, 0);
}

static void test_a_full_list_goes_on_in_the_next_call(void **state)
{
    (void)state;
    start("sr-nack", 64);
    step(1000, 64);
    uint64_t every_second = UINT64_C(0x5555555555555555);
    hear((struct sr_ack){
        .horizon = 64, .cumulative = 1, .arrived = 32, .words = 1, .bitmap = {every_second}});
    for (uint32_t first = 1; first < 64; first += 2 * LH_ACTIONS_MAX) {
        step(2000, 64);
        assert_int_equal(f.actions.count, LH_ACTIONS_MAX);
        for (uint32_t i = 0; i < LH_ACTIONS_MAX; i++)
            expect_chunks(i, first + 2 * i, 1, true);
    }
    step(2000, 64);
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
    start("sr-nack", 64);
    step(1000, 64);
    hear(nack_of(~UINT64_C(1), 64, 0));
    hear(nack_of(~UINT64_C(1), 64, 0));
    step(2000, 64);
    assert_int_equal(f.actions.count, 2);
    expect_chunks(0, 0, 1, true);
    expect_mark(1, 2, 64, 0);
    hear(nack_of(~UINT64_C(1), 64, 0)); /* after the repair, too */
    hear(nack_of(~UINT64_C(1), 64, 1)); /* that MARK went before the repair */
    step(2500, 64);
    assert_int_equal(f.actions.count, 0);
    hear(nack_of(~UINT64_C(1), 64, 2)); /* that one went behind it */
    step(3000, 64);
    expect_chunks(0, 0, 1, true);
    expect_mark(1, 3, 64, 0);
    hear(nack_of(~UINT64_C(1), 64, 1)); /* an old one, late */
    step(3500, 64);
    assert_int_equal(f.actions.count, 0);
}

static void test_only_what_lies_before_the_horizon_is_lost(void **state)
{
    (void)state;
    start("sr-nack", 64);
    step(1000, 64);
    hear(nack_of(0, 10, 0));
    assert_int_equal(f.stats.bad_control, 0);
    step(2000, 64);
    expect_chunks(0, 0, 10, true);
    assert_int_equal(f.actions.count, 2);
    assert_int_equal(f.actions.in_flight_chunks, 64);
}

static void test_an_old_ack_takes_nothing_back(void **state)
{
    (void)state;
    start("sr-nack", 64);
    step(1000, 64);
    hear((struct sr_ack){.cumulative = 20, .arrived = 20});
    hear((struct sr_ack){.cumulative = 10, .arrived = 10, .horizon = 20, .words = 1});
    step(2000, 64);
    assert_int_equal(f.actions.count, 0);
    assert_int_equal(f.actions.in_flight_chunks, 44);
}

static void test_more_chunks_than_one_ack_can_name(void **state)
{
    (void)state;
    const uint32_t chunks = 3 * 64 * SR_ACK_WORDS_MAX;
    start("sr-nack", chunks);
    step(1000, chunks);
    struct sr_ack ack = {.arrived = chunks - 2, .horizon = chunks, .words = SR_ACK_WORDS_MAX};
    memset(ack.bitmap, 0xff, sizeof(ack.bitmap));
    ack.bitmap[0] &= ~UINT64_C(1);
    hear(ack);
    step(2000, chunks);
    expect_chunks(0, 0, 1, true);
    assert_int_equal(f.actions.count, 2);            /* what the ACK did not name is not lost */
    assert_int_equal(f.actions.in_flight_chunks, 2); /* but is believed to be there */
    ack.bitmap[0] |= 1;
    ack.base = 2 * 64 * SR_ACK_WORDS_MAX;
    ack.bitmap[SR_ACK_WORDS_MAX - 1] = UINT64_MAX >> 1;
    hear(ack);
    step(3000, chunks);
    expect_chunks(0, chunks - 1, 1, true);
}

static void test_impossible_acks_are_passed_over(void **state)
{
    (void)state;
    start("sr-nack", 200);
    step(1000, 100);
    hear((struct sr_ack){.cumulative = 101, .base = 64, .arrived = 101});
    hear((struct sr_ack){.arrived = 101});
    hear((struct sr_ack){.mark = 1}); /* none was sent yet */
    uint8_t bytes[] = {1, 2, 3};
    sr_sender_on_message(f.machine, bytes, sizeof(bytes), &f.view);
    sr_sender_on_message(f.machine, bytes, 0, &f.view);
    assert_int_equal(f.stats.bad_control, 5);
    assert_int_equal(f.stats.acks_received, 0);
    /* Bits and horizons past what was sent are cut. */
    struct sr_ack far = {.horizon = UINT32_MAX, .base = 64, .arrived = 100, .words = SR_ACK_WORDS_MAX};
    memset(far.bitmap, 0xff, sizeof(far.bitmap));
    hear(far);
    far.base = (UINT32_MAX - 64 * SR_ACK_WORDS_MAX) / 64 * 64;
    hear(far);
    assert_int_equal(f.stats.bad_control, 5);
    step(2000, 200);
    assert_int_equal(f.actions.count, 2);
    expect_chunks(0, 100, 100, false);
}

/* ---- timers ------------------------------------------------------------------------------------------ */

static void test_cover_in_mid_injection(void **state)
{
    (void)state;
    start("sr-nack", 1000);
    step(1000, 10);
    assert_int_equal(f.actions.next_ns, 1000 + RTT / 4);
    step(1000 + RTT / 4 - 1, 10);
    assert_int_equal(f.actions.count, 1);
    step(1000 + RTT / 4, 10);
    assert_int_equal(f.actions.count, 2);
    expect_mark(0, 1, 20, 0); /* of what was injected before */
    expect_chunks(1, 20, 10, false);
}

static void test_repairs_without_budget_are_covered_in_time(void **state)
{
    (void)state;
    start("sr-nack", 64);
    step(1000, 64);
    hear(nack_of(0, 64, 0));
    step(2000, 5);
    assert_int_equal(f.actions.count, 1); /* more repairs wait */
    assert_int_equal(f.actions.next_ns, 2000 + WINDOW / 4);
    step(2000 + WINDOW / 4 - 1, 0);
    assert_int_equal(f.actions.count, 0);
    step(2000 + WINDOW / 4, 0);
    assert_int_equal(f.actions.count, 1);
    expect_mark(0, 2, 64, 0);
}

static void test_silence_after_the_end(void **state)
{
    (void)state;
    start("sr-nack", 64);
    step(1000, 64);
    static const lh_time repeats[] = {WINDOW, 3 * WINDOW, 7 * WINDOW};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(f.actions.next_ns, 1000 + repeats[i]);
        step(1000 + repeats[i], 64);
        assert_int_equal(f.actions.count, 1);
        expect_mark(0, 1, 64, 0);
    }
    assert_int_equal(f.actions.next_ns, 1000 + OVERDUE);
    step(1000 + OVERDUE - 1, 64);
    assert_int_equal(f.actions.count, 0);
    step(1000 + OVERDUE, 64);
    expect_mark(0, 1, 64, SR_FLAG_PROBE);
    assert_int_equal(f.stats.probes_sent, 1);
}

static void test_probes_never_end(void **state)
{
    (void)state;
    start("sr-nack", 1);
    step(1000, 1);
    for (int probes = 0; probes < 100;) {
        lh_time next = f.actions.next_ns;
        assert_in_range(next - f.view.now, 1, lh_most(8 * OVERDUE, f.view.now / 8));
        step(next, 1);
        probes += f.stats.probes_sent > (uint64_t)probes;
    }
    hear((struct sr_ack){0});
    step(f.view.now + OVERDUE - 1, 1);
    assert_int_equal(f.actions.count, 0);
    step(f.view.now + 1, 1);
    assert_int_equal(f.actions.count, 1);
}

static void test_a_probe_covers_what_is_uncovered(void **state)
{
    (void)state;
    start("sr-nack", 100);
    f.view.path.overdue_ns = RTT; /* as early as it gets */
    step(1000, 10);
    step(1000 + RTT / 4, 0);
    expect_mark(0, 1, 10, 0);
    step(1000 + RTT - 1, 10);
    expect_chunks(0, 10, 10, false);
    step(1000 + 5 * RTT, 0); /* called late: cover and probe are both due */
    expect_mark(0, 2, 20, 0);
    expect_mark(1, 2, 20, SR_FLAG_PROBE);
}

static void test_rto_expires_and_sends_again(void **state)
{
    (void)state;
    start("sr-rto", 100);
    step(1000, 100);
    assert_int_equal(f.actions.count, 1); /* no MARK */
    assert_int_equal(f.actions.next_ns, 1000 + OVERDUE);
    hear((struct sr_ack){.cumulative = 40, .arrived = 41, .words = 1, .bitmap = {UINT64_MAX >> 23}});
    step(1000 + 3 * RTT - 1, 100);
    assert_int_equal(f.stats.timeouts, 0);
    assert_int_equal(f.actions.in_flight_chunks, 59);
    step(1000 + 3 * RTT, 100);
    expect_chunks(0, 41, 59, true);
    assert_int_equal(f.stats.timeouts, 59);
    assert_int_equal(f.actions.in_flight_chunks, 59);
    step(1000 + 6 * RTT - 1, 100);
    assert_int_equal(f.stats.timeouts, 59);
    step(1000 + 6 * RTT, 100);
    assert_int_equal(f.stats.timeouts, 118);
}

static void test_rto_takes_no_word_of_a_loss(void **state)
{
    (void)state;
    start("sr-rto", 64);
    step(1000, 64);
    hear(nack_of(0, 64, 0));
    step(2000, 64);
    assert_int_equal(f.actions.count, 0);
}

static void test_rto_asks_though_it_repairs(void **state)
{
    (void)state;
    start("sr-rto", 1);
    step(1000, 1);
    for (int i = 0; i < 100; i++) /* all ACKs are lost */
        step(f.actions.next_ns, 1);
    assert_true(f.stats.probes_sent > 10);
    assert_true(f.stats.timeouts > 10);
}

static void test_nothing_to_send(void **state)
{
    (void)state;
    static const char *const names[] = {"sr-nack", "sr-rto"};
    for (size_t i = 0; i < 2; i++) {
        free(f.machine);
        start(names[i], 0);
        step(1000, 100);
        assert_int_equal(f.actions.count, 0);
        assert_int_equal(f.actions.next_ns, LH_TIME_NEVER);
        assert_int_equal(f.actions.in_flight_chunks, 0);
        hear((struct sr_ack){0});
        step(2000, 100);
        assert_int_equal(f.actions.next_ns, LH_TIME_NEVER);
    }
}

/* After rounds of repairs that bring nothing the next one waits for two round trips (backoff.h). */
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
    start("sr-nack", 64);
    step(now, 1000);
    for (ack.mark = 1; ack.mark <= 4; ack.mark++) {
        now += RTT;
        hear(ack);
        step(now, 10);
        expect_chunks(0, 5, 1, true);
    }
    hear(ack);
    step(now + 2 * RTT - 1, 10);
    for (uint32_t i = 0; i < f.actions.count; i++)
        assert_int_not_equal(f.actions.list[i].kind, LH_ACTION_SEND_CHUNKS);
    step(now + 2 * RTT, 10);
    expect_chunks(0, 5, 1, true);
}

#define TEST(name) cmocka_unit_test_teardown(name, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_fills_the_budget_in_long_runs),
        TEST(test_repairs_come_before_new_chunks),
        TEST(test_a_full_list_goes_on_in_the_next_call),
        TEST(test_a_repeated_report_changes_nothing),
        TEST(test_only_what_lies_before_the_horizon_is_lost),
        TEST(test_an_old_ack_takes_nothing_back),
        TEST(test_more_chunks_than_one_ack_can_name),
        TEST(test_impossible_acks_are_passed_over),
        TEST(test_cover_in_mid_injection),
        TEST(test_repairs_without_budget_are_covered_in_time),
        TEST(test_silence_after_the_end),
        TEST(test_probes_never_end),
        TEST(test_a_probe_covers_what_is_uncovered),
        TEST(test_rto_expires_and_sends_again),
        TEST(test_rto_takes_no_word_of_a_loss),
        TEST(test_rto_asks_though_it_repairs),
        TEST(test_nothing_to_send),
        TEST(test_repairs_that_bring_nothing_become_rarer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
