/*
 * test_sr_arrivals.c -
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

#include "base/bitmap.h"
#include "base/prng.h"
#include "schemes/sr_arrivals.h"
#include "wire/scheme_messages.h"

/* ---- test answer ----------------------------------------------------------------------------------- */

#define CHUNKS (64u * 250) /* three messages */

static void test_an_answer_in_several_messages(void **state)
{
    (void)state;
    static uint64_t bits[250];
    static uint8_t bitmap[CHUNKS];
    struct sr_arrivals arrivals;
    struct sr_nack nack;
    struct sr_answer answer;
    struct lh_stats stats = {0};
    struct lh_actions actions = {.count = LH_ACTIONS_MAX - 1};
    sr_arrivals_init(&arrivals, CHUNKS, bits);
    sr_nack_init(&nack);
    sr_answer_init(&answer);
    memset(bitmap, 1, sizeof bitmap);
    bitmap[0] = 0;
    sr_arrivals_update(&arrivals, bitmap, CHUNKS - 1);
    sr_answer_begin(&answer, SR_ANSWER_NACK, &arrivals, &nack);
    sr_answer_write(&answer, &arrivals, &nack, &stats, &actions);
    assert_int_equal(answer.writing, SR_ANSWER_NACK); /* the list was full */
    actions.count = 0;
    sr_answer_write(&answer, &arrivals, &nack, &stats, &actions);
    assert_int_equal(answer.writing, SR_ANSWER_NONE);
    assert_true(actions.count == 2 && stats.nacks_sent == 3);
    struct sr_ack ack;
    const struct lh_action *last = &actions.list[1];
    assert_int_equal(sr_ack_decode(last->what.message.data, last->what.message.bytes, &ack), 0);
    assert_true(ack.flags == SR_FLAG_NACK && ack.base == 64 * 2 * SR_ACK_WORDS_MAX);
    assert_int_equal(ack.words, 250 - 2 * SR_ACK_WORDS_MAX);
}

/* What was shown as lost is part of it, though nothing has arrived there. */
static void test_up_to_the_horizon(void **state)
{
    (void)state;
    uint64_t bits[4];
    struct sr_arrivals arrivals;
    struct sr_nack nack;
    struct sr_answer answer;
    struct lh_stats stats = {0};
    struct lh_actions actions = {.count = 0};
    sr_arrivals_init(&arrivals, 256, bits);
    sr_nack_init(&nack);
    nack.horizon = 130;
    sr_answer_begin(&answer, SR_ANSWER_ACK, &arrivals, &nack);
    sr_answer_write(&answer, &arrivals, &nack, &stats, &actions);
    struct sr_ack ack;
    const struct lh_action *only = &actions.list[0];
    assert_int_equal(sr_ack_decode(only->what.message.data, only->what.message.bytes, &ack), 0);
    assert_true(ack.words == 3 && ack.horizon == 130 && ack.flags == 0 && stats.acks_sent == 1);
}

static int run_answer(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_in_several_messages),
        cmocka_unit_test(test_up_to_the_horizon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test arrivals --------------------------------------------------------------------------------- */

static void test_follows_a_bitmap_of_any_length_and_alignment(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (uint32_t chunks = 1; chunks < 300; chunks += 7) {
        for (size_t shift = 0; shift < 9; shift += 4) {
            uint8_t *raw = calloc(chunks + shift, 1); /* exactly: a sanitizer sees a read past the end */
            uint8_t *bitmap = raw + shift;
            uint64_t *memory = malloc(sr_arrivals_bytes(chunks));
            struct sr_arrivals arrivals;
            sr_arrivals_init(&arrivals, chunks, memory);
            uint32_t arrived = 0;
            while (arrived < chunks) {
                for (uint64_t n = lh_prng_below(&prng, 20); n > 0; n--) {
                    size_t chunk = lh_prng_below(&prng, chunks);
                    arrived += bitmap[chunk] == 0;
                    bitmap[chunk] = (uint8_t)(1 + lh_prng_below(&prng, 255));
                }
                sr_arrivals_update(&arrivals, bitmap, arrived);
                assert_int_equal(arrivals.seen, arrived);
                uint32_t highest = 0;
                for (uint32_t i = 0; i < chunks; i++) {
                    assert_int_equal(lh_bitmap_get(arrivals.bits, i), bitmap[i] != 0);
                    if (bitmap[i])
                        highest = i + 1;
                }
                assert_int_equal(arrivals.highest, highest);
                for (uint32_t i = 0; i < arrivals.cumulative; i++)
                    assert_int_not_equal(bitmap[i], 0);
                assert_true(arrivals.cumulative == chunks || bitmap[arrivals.cumulative] == 0);
            }
            free(memory);
            free(raw);
        }
    }
}

static struct sr_arrivals fresh(uint64_t *memory, uint32_t chunks)
{
    struct sr_arrivals arrivals;
    sr_arrivals_init(&arrivals, chunks, memory);
    return arrivals;
}

static void test_count_and_bitmap_of_different_moments(void **state)
{
    (void)state;
    uint64_t memory[4];
    uint8_t bitmap[256] = {1, 1, 1};
    struct sr_arrivals arrivals = fresh(memory, 256);
    assert_int_equal(sr_arrivals_update(&arrivals, bitmap, 2), 3); /* the bitmap was ahead */
    assert_int_equal(sr_arrivals_update(&arrivals, bitmap, 3), 0);
    assert_int_equal(sr_arrivals_update(&arrivals, bitmap, 5), 0); /* the count is ahead */
    bitmap[200] = 9;
    assert_int_equal(sr_arrivals_update(&arrivals, bitmap, 5), 1);
    assert_int_equal(arrivals.highest, 201);
    assert_int_equal(arrivals.cumulative, 3);
}

static void test_gaps(void **state)
{
    (void)state;
    uint64_t memory[2];
    uint8_t bitmap[128];
    memset(bitmap, 1, sizeof(bitmap));
    bitmap[70] = 0;
    struct sr_arrivals arrivals = fresh(memory, 128);
    sr_arrivals_update(&arrivals, bitmap, 127);
    assert_false(sr_arrivals_gap(&arrivals, 0, 70));
    assert_true(sr_arrivals_gap(&arrivals, 0, 71));
    assert_true(sr_arrivals_gap(&arrivals, 70, 71));
    assert_false(sr_arrivals_gap(&arrivals, 71, 128));
    assert_false(sr_arrivals_gap(&arrivals, 70, 70));
    assert_false(sr_arrivals_gap(&arrivals, 128, 128));
}

static void test_a_shorter_message_than_the_buffer(void **state)
{
    (void)state;
    uint64_t memory[4];
    uint8_t bitmap[256] = {0};
    memset(bitmap, 1, 100);
    memset(bitmap + 150, 1, 106); /* past the end, as the SDR layer counts them */
    struct sr_arrivals arrivals = fresh(memory, 256);
    sr_arrivals_limit(&arrivals, 150);
    sr_arrivals_update(&arrivals, bitmap, 206);
    assert_int_equal(arrivals.seen, 100);
    assert_int_equal(arrivals.highest, 100);

    arrivals = fresh(memory, 256);
    sr_arrivals_update(&arrivals, bitmap, 206); /* seen before the length was known */
    assert_int_equal(arrivals.highest, 256);
    sr_arrivals_limit(&arrivals, 150);
    assert_int_equal(arrivals.seen, 100);
    assert_int_equal(arrivals.highest, 100);
    sr_arrivals_limit(&arrivals, 64);
    assert_int_equal(arrivals.seen, 64);
    assert_int_equal(arrivals.cumulative, 64);
    sr_arrivals_limit(&arrivals, 0);
    assert_int_equal(arrivals.seen, 0);
    assert_int_equal(arrivals.highest, 0);
    assert_int_equal(arrivals.cumulative, 0);
}

static int run_arrivals(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_a_bitmap_of_any_length_and_alignment),
        cmocka_unit_test(test_count_and_bitmap_of_different_moments),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_a_shorter_message_than_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test nack ------------------------------------------------------------------------------------- */

#define NACK_CHUNKS 128u
#define WINDOW      ((lh_time)1600)

static const struct sr_timing nack_timing = {
    .rtt_ns = 12800, .overdue_ns = 14000, .window_ns = WINDOW, .measured = true};

struct fixture {
    struct sr_nack nack;
    struct sr_arrivals arrivals;
    uint64_t bits[NACK_CHUNKS / 64];
    uint8_t bitmap[NACK_CHUNKS];
    struct lh_receiver_view view;
};

static int set_up(void **state)
{
    static struct fixture f;
    f = (struct fixture){
        .view = {.later_seen_ns = LH_TIME_NEVER, .length_known = true, .chunks = NACK_CHUNKS}};
    sr_nack_init(&f.nack);
    sr_arrivals_init(&f.arrivals, NACK_CHUNKS, f.bits);
    *state = &f;
    return 0;
}

static void arrive(struct fixture *f, uint32_t first, uint32_t end, lh_time now)
{
    memset(f->bitmap + first, 1, end - first);
    sr_arrivals_update(&f->arrivals, f->bitmap, f->arrivals.seen + end - first);
    sr_nack_on_arrivals(&f->nack, &f->arrivals, &nack_timing, now);
}

static bool report_at(struct fixture *f, lh_time now)
{
    f->view.now = now;
    return sr_nack_on_step(&f->nack, &f->arrivals, &f->view, &nack_timing);
}

static lh_time expiry(struct fixture *f)
{
    return sr_nack_expiry(&f->nack, &f->arrivals, &f->view, &nack_timing);
}

static void test_no_gap_no_report(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 50, 1000);
    assert_int_equal(expiry(f), LH_TIME_NEVER);
    assert_false(report_at(f, 100000));
    sr_nack_on_mark(&f->nack, 1, 50, &nack_timing, 100000);
    assert_false(report_at(f, 200000));
    assert_int_equal(expiry(f), LH_TIME_NEVER);
}

static void test_a_gap_is_reported_a_window_after_its_successor(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 5, 1000);
    arrive(f, 6, 7, 2000);
    assert_false(report_at(f, 2000 + WINDOW - 1));
    assert_int_equal(expiry(f), 2000 + WINDOW);
    assert_true(report_at(f, 2000 + WINDOW));
    assert_int_equal(f->nack.horizon, 7);
    assert_false(report_at(f, 2000 + WINDOW)); /* once */
}

static void test_a_gap_that_closes_in_time_is_not_reported(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 5, 1000);
    arrive(f, 6, 7, 2000);
    arrive(f, 5, 6, 2000 + WINDOW);
    assert_false(report_at(f, 2000 + WINDOW));
    assert_int_equal(expiry(f), LH_TIME_NEVER);
}

static void test_repeats_three_times_then_waits_to_be_asked(void **state)
{
    struct fixture *f = *state;
    arrive(f, 1, 2, 0);
    lh_time now = WINDOW;
    assert_true(report_at(f, now));
    for (lh_time span = WINDOW; span <= 4 * WINDOW; span *= 2) {
        assert_int_equal(expiry(f), now + span);
        assert_false(report_at(f, now + span - 1));
        now += span;
        assert_true(report_at(f, now));
    }
    assert_int_equal(expiry(f), LH_TIME_NEVER);
    assert_false(report_at(f, now + 1000 * WINDOW));
}

static void test_a_new_gap_is_news_and_an_old_one_is_not(void **state)
{
    struct fixture *f = *state;
    arrive(f, 1, 10, 0);
    assert_true(report_at(f, WINDOW));
    arrive(f, 10, 20, 500 + WINDOW);       /* the horizon moves on, over nothing missing */
    assert_true(report_at(f, 2 * WINDOW)); /* the repetition */
    assert_false(report_at(f, 500 + 2 * WINDOW));
    assert_int_equal(f->nack.horizon, 20);
    arrive(f, 21, 22, 500 + 2 * WINDOW);
    assert_true(report_at(f, 500 + 3 * WINDOW));
}

static void test_a_mark_shows_a_lost_end(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 100, 1000);
    sr_nack_on_mark(&f->nack, 1, NACK_CHUNKS, &nack_timing, 1500);
    assert_int_equal(expiry(f), 1500 + WINDOW);
    assert_false(report_at(f, 1500 + WINDOW - 1));
    assert_true(report_at(f, 1500 + WINDOW));
    assert_int_equal(f->nack.horizon, NACK_CHUNKS);
    assert_int_equal(f->nack.mark, 1);
}

static void test_a_newer_mark_shows_a_lost_repair(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 100, 0);
    sr_nack_on_mark(&f->nack, 1, NACK_CHUNKS, &nack_timing, 0);
    assert_true(report_at(f, WINDOW));
    f->nack.repeats_left = 0;
    sr_nack_on_mark(&f->nack, 1, NACK_CHUNKS, &nack_timing, 2 * WINDOW); /* the same again says nothing */
    assert_false(report_at(f, 10 * WINDOW));
    sr_nack_on_mark(&f->nack, 2, NACK_CHUNKS, &nack_timing, 10 * WINDOW);
    assert_false(report_at(f, 11 * WINDOW - 1));
    assert_true(report_at(f, 11 * WINDOW));
    assert_int_equal(f->nack.mark, 2);
    sr_nack_on_mark(&f->nack, 1, 50, &nack_timing, 11 * WINDOW); /* an old one that comes late */
    assert_false(report_at(f, 11 * WINDOW + 1));
    assert_int_equal(f->nack.mark, 2);
    assert_int_equal(f->nack.horizon, NACK_CHUNKS);
}

static void test_a_mark_that_overtakes_waits_for_the_flow_to_pause(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 10, 0);
    sr_nack_on_mark(&f->nack, 1, NACK_CHUNKS, &nack_timing, 100);
    for (uint32_t i = 1; i <= 10; i++) {
        arrive(f, i * 10, i * 10 + 10, i * 1000);
        assert_false(report_at(f, i * 1000 + 900));
        assert_int_equal(f->nack.mark, 0);
    }
    assert_false(report_at(f, 10000 + WINDOW - 1));
    assert_true(report_at(f, 10000 + WINDOW));
    assert_int_equal(f->nack.mark, 1);
}

static void test_a_mark_waits_until_arrivals_were_looked_at(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 100, 0);
    sr_nack_on_mark(&f->nack, 1, NACK_CHUNKS, &nack_timing, 1000);
    f->view.caught_up_ns = 1000 + WINDOW - 1;
    assert_false(report_at(f, 9000));
    assert_in_range(expiry(f), 9001, 9000 + WINDOW); /* soon, but no busy waiting */
    f->view.caught_up_ns = 1000 + WINDOW;
    assert_true(report_at(f, 9000));
}

/* A connection may begin a later message before this one was injected. */
static void test_a_later_message_proves_nothing(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 100, 0);
    f->view.later_seen_ns = 500;
    assert_false(report_at(f, 500 + 10 * WINDOW));
    assert_int_equal(f->nack.horizon, 100);
    assert_int_equal(expiry(f), LH_TIME_NEVER);
}

static void test_no_horizon_past_the_end(void **state)
{
    struct fixture *f = *state;
    arrive(f, 0, 64, 0);
    sr_nack_on_mark(&f->nack, 1, NACK_CHUNKS, &nack_timing, 0);
    sr_arrivals_limit(&f->arrivals, 70);
    f->view.chunks = 70;
    assert_true(report_at(f, WINDOW));
    assert_int_equal(f->nack.horizon, 70);
}

static int run_nack(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_no_gap_no_report, set_up),
        cmocka_unit_test_setup(test_a_gap_is_reported_a_window_after_its_successor, set_up),
        cmocka_unit_test_setup(test_a_gap_that_closes_in_time_is_not_reported, set_up),
        cmocka_unit_test_setup(test_repeats_three_times_then_waits_to_be_asked, set_up),
        cmocka_unit_test_setup(test_a_new_gap_is_news_and_an_old_one_is_not, set_up),
        cmocka_unit_test_setup(test_a_mark_shows_a_lost_end, set_up),
        cmocka_unit_test_setup(test_a_newer_mark_shows_a_lost_repair, set_up),
        cmocka_unit_test_setup(test_a_mark_that_overtakes_waits_for_the_flow_to_pause, set_up),
        cmocka_unit_test_setup(test_a_mark_waits_until_arrivals_were_looked_at, set_up),
        cmocka_unit_test_setup(test_a_later_message_proves_nothing, set_up),
        cmocka_unit_test_setup(test_no_horizon_past_the_end, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test settle ----------------------------------------------------------------------------------- */

/* Samples within 100 share an entry. */
static const struct sr_timing timing = {
    .rtt_ns = 8000, .overdue_ns = 9000, .window_ns = 1600, .measured = true};

/* Settles what is due, as the receiver does. */
static uint32_t settle_until(struct sr_settle *settle, lh_time now)
{
    while (sr_settle_expiry(settle, &timing) <= now)
        sr_settle_on_expired(settle);
    return settle->settled.through;
}

static void test_settles_after_a_window(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    assert_int_equal(sr_settle_expiry(&settle, &timing), LH_TIME_NEVER);
    sr_settle_add(&settle, 5, 0, &timing, 1000);
    assert_int_equal(settle_until(&settle, 2599), 0);
    assert_int_equal(settle_until(&settle, 2600), 5);
    assert_int_equal(sr_settle_expiry(&settle, &timing), LH_TIME_NEVER);
}

static void test_close_samples_share_and_none_settles_early(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    sr_settle_add(&settle, 5, 0, &timing, 1000);
    sr_settle_add(&settle, 6, 0, &timing, 1099);
    sr_settle_add(&settle, 7, 0, &timing, 1100);
    assert_int_equal(settle.count, 2);
    assert_int_equal(settle_until(&settle, 2698), 0);
    assert_int_equal(settle_until(&settle, 2699), 6);
    assert_int_equal(settle_until(&settle, 2700), 7);
}

static void test_numbers_only_grow(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    sr_settle_add(&settle, 5, 3, &timing, 0);
    sr_settle_add(&settle, 5, 3, &timing, 500); /* says nothing new: the first time counts */
    sr_settle_add(&settle, 4, 2, &timing, 600);
    assert_int_equal(settle.count, 1);
    sr_settle_add(&settle, 4, 4, &timing, 700); /* an old number of chunks with a new MARK */
    assert_int_equal(settle.count, 2);
    assert_int_equal(settle_until(&settle, 1600), 5);
    assert_int_equal(settle.settled.mark, 3);
    assert_int_equal(settle_until(&settle, 2300), 5);
    assert_int_equal(settle.settled.mark, 4);
}

static void test_a_full_ring_settles_late_not_early(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    /* Nothing is settled meanwhile, as when the receiver is not called. */
    for (uint32_t i = 1; i <= SR_SAMPLES + 10; i++)
        sr_settle_add(&settle, i, 0, &timing, i * 100);
    assert_int_equal(settle.count, SR_SAMPLES);
    assert_int_equal(settle_until(&settle, SR_SAMPLES * 100 + 1599), SR_SAMPLES - 1);
    assert_int_equal(settle_until(&settle, (SR_SAMPLES + 10) * 100 + 1599), SR_SAMPLES - 1);
    assert_int_equal(settle_until(&settle, (SR_SAMPLES + 10) * 100 + 1600), SR_SAMPLES + 10);
}

static void test_goes_round_the_ring(void **state)
{
    (void)state;
    struct sr_settle settle;
    sr_settle_init(&settle);
    for (uint32_t i = 1; i <= 5 * SR_SAMPLES; i++) {
        sr_settle_add(&settle, i, i, &timing, i * 100);
        assert_int_equal(settle_until(&settle, i * 100), i > 16 ? i - 16 : 0);
        assert_true(settle.count <= 17);
    }
}

static int run_settle(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settles_after_a_window),
        cmocka_unit_test(test_close_samples_share_and_none_settles_early),
        cmocka_unit_test(test_numbers_only_grow),
        cmocka_unit_test(test_a_full_ring_settles_late_not_early),
        cmocka_unit_test(test_goes_round_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_answer() + run_arrivals() + run_nack() + run_settle();
}
