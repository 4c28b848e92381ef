/*
 * test_sr_ledger.c -
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

#include "schemes/sr_ledger.h"

/* ---- test ledger ----------------------------------------------------------------------------------- */

#define CHUNKS 200u

struct fixture {
    struct sr_ledger ledger;
    void *memory;
};

static int set_up(void **state)
{
    struct fixture *f = malloc(sizeof(*f));
    f->memory = malloc(sr_ledger_bytes(CHUNKS));
    sr_ledger_init(&f->ledger, CHUNKS, f->memory);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    free(f->memory);
    free(f);
    return 0;
}

static void expect_run(struct sr_run run, uint32_t first, uint32_t count)
{
    assert_int_equal(run.first, first);
    assert_int_equal(run.count, count);
}

static void test_new_chunks_come_in_order_within_the_limit(void **state)
{
    struct sr_ledger *ledger = &((struct fixture *)*state)->ledger;
    struct sr_run run;
    assert_false(sr_ledger_take_new(ledger, 0, 1, &run));
    assert_true(sr_ledger_take_new(ledger, 130, 1, &run));
    expect_run(run, 0, 130);
    assert_true(sr_ledger_take_new(ledger, 1000, 2, &run));
    expect_run(run, 130, 70);
    assert_false(sr_ledger_take_new(ledger, 1, 3, &run));
    assert_true(sr_ledger_all_sent(ledger));
    assert_int_equal(ledger->stamps[129], 1);
    assert_int_equal(ledger->stamps[130], 2);
    assert_int_equal(sr_ledger_in_flight(ledger), CHUNKS);
}

static void test_lost_chunks_come_lowest_first_in_runs(void **state)
{
    struct sr_ledger *ledger = &((struct fixture *)*state)->ledger;
    struct sr_run run;
    sr_ledger_take_new(ledger, CHUNKS, 1, &run);
    assert_false(sr_ledger_take_lost(ledger, 10, 2, &run));
    sr_ledger_lose_word(ledger, 2, 0x3);                      /* 128, 129 */
    sr_ledger_lose_word(ledger, 1, (uint64_t)1 << 63 | 0x10); /* 127, 68 */
    assert_int_equal(ledger->lost, 4);
    assert_int_equal(sr_ledger_in_flight(ledger), CHUNKS - 4);
    assert_false(sr_ledger_take_lost(ledger, 0, 2, &run));
    assert_true(sr_ledger_take_lost(ledger, 10, 2, &run));
    expect_run(run, 68, 1);
    assert_true(sr_ledger_take_lost(ledger, 2, 2, &run)); /* across words, cut by the limit */
    expect_run(run, 127, 2);
    assert_true(sr_ledger_take_lost(ledger, 2, 3, &run));
    expect_run(run, 129, 1);
    assert_false(sr_ledger_take_lost(ledger, 2, 3, &run));
    assert_int_equal(ledger->stamps[127], 2);
    assert_int_equal(ledger->stamps[129], 3);
    assert_int_equal(sr_ledger_in_flight(ledger), CHUNKS);
    sr_ledger_lose_word(ledger, 1, 0x30); /* 68, 69 */
    sr_ledger_take_one(ledger, 69, 5);
    assert_true(ledger->lost == 1 && ledger->stamps[69] == 5);
    assert_true(sr_ledger_take_lost(ledger, 9, 4, &run));
    expect_run(run, 68, 1);
    sr_ledger_lose_word(ledger, 0, 1); /* lower than all that was taken */
    assert_true(sr_ledger_take_lost(ledger, 1, 4, &run));
    expect_run(run, 0, 1);
}

static void test_what_was_never_sent_is_not_acknowledged(void **state)
{
    struct sr_ledger *ledger = &((struct fixture *)*state)->ledger;
    struct sr_run run;
    sr_ledger_take_new(ledger, 70, 1, &run);
    sr_ledger_ack_word(ledger, 1, UINT64_MAX);
    assert_int_equal(ledger->acked, 6);
    sr_ledger_ack_word(ledger, 2, UINT64_MAX);
    sr_ledger_ack_word(ledger, 3, UINT64_MAX);
    sr_ledger_ack_word(ledger, 4, UINT64_MAX); /* past the end */
    sr_ledger_ack_word(ledger, UINT32_MAX / 64, UINT64_MAX);
    assert_int_equal(ledger->acked, 6);
    assert_int_equal(sr_ledger_outstanding(ledger, 0), UINT64_MAX);
    assert_int_equal(sr_ledger_outstanding(ledger, 1), 0);
    assert_int_equal(sr_ledger_outstanding(ledger, UINT32_MAX / 64), 0);
}

static void test_acknowledged_twice_counts_once(void **state)
{
    struct sr_ledger *ledger = &((struct fixture *)*state)->ledger;
    struct sr_run run;
    sr_ledger_take_new(ledger, CHUNKS, 1, &run);
    sr_ledger_lose_word(ledger, 0, 0x6);
    sr_ledger_ack_word(ledger, 0, 0x3); /* one lost, one under way */
    assert_int_equal(ledger->acked, 2);
    assert_int_equal(ledger->lost, 1);
    sr_ledger_ack_word(ledger, 0, 0x3);
    assert_int_equal(ledger->acked, 2);
    struct sr_run lost;
    assert_true(sr_ledger_take_lost(ledger, 10, 2, &lost)); /* what was acknowledged is not sent again */
    expect_run(lost, 2, 1);
    sr_ledger_lose_word(ledger, 0, 0x4);
    sr_ledger_ack_below(ledger, 1);
    assert_int_equal(ledger->acked, 2);
    sr_ledger_ack_below(ledger, 64);
    assert_int_equal(ledger->acked, 64);
    assert_int_equal(ledger->lost, 0);
    assert_false(sr_ledger_take_lost(ledger, 1, 1, &run));
    sr_ledger_ack_below(ledger, 10); /* an old one */
    assert_int_equal(ledger->cumulative, 64);
    sr_ledger_ack_below(ledger, CHUNKS);
    assert_int_equal(ledger->acked, CHUNKS);
    assert_int_equal(sr_ledger_in_flight(ledger), 0);
}

static void test_in_flight_believes_the_count_of_arrivals(void **state)
{
    struct sr_ledger *ledger = &((struct fixture *)*state)->ledger;
    struct sr_run run;
    sr_ledger_take_new(ledger, 100, 1, &run);
    sr_ledger_ack_below(ledger, 10);
    ledger->arrived = 40; /* an ACK whose bitmap could not name them all */
    assert_int_equal(sr_ledger_in_flight(ledger), 60);
    sr_ledger_lose_word(ledger, 1, sr_ledger_outstanding(ledger, 1));
    sr_ledger_lose_word(ledger, 0, sr_ledger_outstanding(ledger, 0));
    assert_int_equal(sr_ledger_in_flight(ledger), 0); /* 90 lost and 40 there: some are both */
}

static void test_no_chunks_at_all(void **state)
{
    (void)state;
    struct sr_ledger ledger;
    uint64_t none;
    assert_int_equal(sr_ledger_bytes(0), 0);
    sr_ledger_init(&ledger, 0, &none);
    struct sr_run run;
    assert_false(sr_ledger_take_new(&ledger, 1, 1, &run));
    assert_false(sr_ledger_take_lost(&ledger, 1, 1, &run));
    sr_ledger_ack_below(&ledger, 0);
    sr_ledger_ack_word(&ledger, 0, UINT64_MAX);
    assert_int_equal(sr_ledger_outstanding(&ledger, 0), 0);
    assert_true(sr_ledger_all_sent(&ledger));
}

static int run_ledger(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_new_chunks_come_in_order_within_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost_chunks_come_lowest_first_in_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_never_sent_is_not_acknowledged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_acknowledged_twice_counts_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_in_flight_believes_the_count_of_arrivals, set_up, tear_down),
        cmocka_unit_test(test_no_chunks_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test marker ----------------------------------------------------------------------------------- */

static const struct sr_timing marker_timing = {
    .rtt_ns = 8000, .overdue_ns = 9000, .window_ns = 1000, .measured = true};

static void test_new_chunks_are_covered_within_a_quarter_round_trip(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    assert_int_equal(sr_marker_cover_expiry(&marker, &marker_timing), LH_TIME_NEVER);
    assert_false(sr_marker_wants_cover(&marker, false, true));
    assert_int_equal(sr_marker_stamp(&marker), 1);
    sr_marker_on_injection(&marker, false, 100);
    sr_marker_on_injection(&marker, false, 200); /* does not push it away */
    assert_int_equal(sr_marker_cover_expiry(&marker, &marker_timing), 2100);
    assert_false(sr_marker_wants_cover(&marker, false, false));
    assert_false(sr_marker_wants_cover(&marker, true, true));
    assert_true(sr_marker_wants_cover(&marker, false, true));
}

static void test_repairs_are_covered_sooner(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    sr_marker_on_injection(&marker, false, 100);
    sr_marker_on_injection(&marker, true, 200);
    sr_marker_on_injection(&marker, false, 210);
    sr_marker_on_injection(&marker, true, 220);
    assert_int_equal(sr_marker_cover_expiry(&marker, &marker_timing), 450);
    assert_false(sr_marker_wants_cover(&marker, true, false));
    assert_true(sr_marker_wants_cover(&marker, false, false));
    sr_marker_on_cover(&marker, false, &marker_timing, 300);
    assert_int_equal(marker.mark, 1);
    assert_int_equal(sr_marker_stamp(&marker), 2);
    assert_int_equal(sr_marker_cover_expiry(&marker, &marker_timing), LH_TIME_NEVER);
    assert_int_equal(sr_marker_repeat_expiry(&marker), 1300);
}

static void test_repeats_until_a_probe_would_ask(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    sr_marker_on_injection(&marker, false, 0);
    sr_marker_on_cover(&marker, true, &marker_timing, 0);
    static const lh_time moments[] = {1000, 3000, 7000, 15000,
                                      LH_TIME_NEVER}; /* 1, 2, 4, 8 windows apart */
    for (size_t i = 0; i + 1 < sizeof(moments) / sizeof(*moments); i++) {
        assert_int_equal(sr_marker_repeat_expiry(&marker), moments[i]);
        sr_marker_on_repeat_expired(&marker, &marker_timing, moments[i]);
        assert_int_equal(marker.mark, 1); /* the same MARK: it covers nothing more */
        assert_int_equal(sr_marker_repeat_expiry(&marker), moments[i + 1]);
    }
}

static void test_a_mark_in_mid_injection_is_not_repeated(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    sr_marker_on_injection(&marker, false, 0);
    sr_marker_on_cover(&marker, false, &marker_timing, 2000);
    assert_int_equal(sr_marker_repeat_expiry(&marker), LH_TIME_NEVER);
}

static void test_what_was_heard_is_not_repeated(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    for (lh_time now = 0; now < 2; now++) {
        sr_marker_on_injection(&marker, true, now);
        sr_marker_on_cover(&marker, true, &marker_timing, now);
    }
    sr_marker_on_settled(&marker, 1);
    assert_int_equal(sr_marker_repeat_expiry(&marker), 1001);
    sr_marker_on_settled(&marker, 2);
    assert_int_equal(sr_marker_repeat_expiry(&marker), LH_TIME_NEVER);
    sr_marker_on_settled(&marker, 1); /* an old ACK */
    assert_int_equal(marker.settled, 2);
}

static void test_numbers_end_and_stay(void **state)
{
    (void)state;
    struct sr_marker marker;
    sr_marker_init(&marker);
    marker.mark = UINT32_MAX - 1;
    for (int i = 0; i < 3; i++) {
        sr_marker_on_injection(&marker, true, 0);
        sr_marker_on_cover(&marker, true, &marker_timing, 0);
        assert_int_equal(marker.mark, UINT32_MAX);
        assert_int_equal(sr_marker_stamp(&marker), UINT32_MAX);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(sr_cover_name(SR_COVERED), "covered");
    assert_string_equal(sr_cover_name(SR_REPAIRS_UNCOVERED), "repairs uncovered");
}

static int run_marker(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_chunks_are_covered_within_a_quarter_round_trip),
        cmocka_unit_test(test_repairs_are_covered_sooner),
        cmocka_unit_test(test_repeats_until_a_probe_would_ask),
        cmocka_unit_test(test_a_mark_in_mid_injection_is_not_repeated),
        cmocka_unit_test(test_what_was_heard_is_not_repeated),
        cmocka_unit_test(test_numbers_end_and_stay),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test report ----------------------------------------------------------------------------------- */

#define REPORT_CHUNKS 128u

struct bench {
    struct sr_ledger ledger;
    struct sr_marker marker;
    uint64_t memory[256];
};

static struct bench *setup(void)
{
    static struct bench bench;
    struct sr_run run;
    assert_true(sr_ledger_bytes(REPORT_CHUNKS) <= sizeof bench.memory);
    sr_ledger_init(&bench.ledger, REPORT_CHUNKS, bench.memory);
    sr_marker_init(&bench.marker);
    bench.marker.mark = 3;
    assert_true(sr_ledger_take_new(&bench.ledger, 100, 1, &run));
    return &bench;
}

static void test_missing_before_the_horizon(void **state)
{
    struct bench *bench = setup();
    (void)state;
    const struct sr_ack ack = {.cumulative = 4, .horizon = 8, .arrived = 6, .words = 1, .bitmap = {0xaf}};
    assert_true(sr_report_possible(&bench->ledger, &bench->marker, &ack));
    sr_report_arrivals(&bench->ledger, &ack);
    assert_true(bench->ledger.acked == 6 && bench->ledger.arrived == 6 && bench->ledger.lost == 0);
    sr_report_losses(&bench->ledger, &ack);
    assert_int_equal(bench->ledger.lost, 2); /* 4 and 6; what follows is late */
    assert_int_equal(bench->ledger.lost_bits[0], 0x50);
}

/* A retransmitted chunk is lost once the MARK behind it has settled. */
static void test_repairs_wait_for_their_mark(void **state)
{
    struct bench *bench = setup();
    struct sr_run run;
    (void)state;
    struct sr_ack ack = {.cumulative = 4, .horizon = 5, .arrived = 4, .words = 1};
    sr_report_losses(&bench->ledger, &ack);
    assert_true(sr_ledger_take_lost(&bench->ledger, 1, 3, &run) && run.first == 0);
    ack.mark = 2;
    sr_report_losses(&bench->ledger, &ack);
    assert_int_equal(bench->ledger.lost_bits[0] & 1, 0);
    ack.mark = 3;
    sr_report_losses(&bench->ledger, &ack);
    assert_int_equal(bench->ledger.lost_bits[0] & 1, 1);
}

static void test_impossible(void **state)
{
    struct bench *bench = setup();
    (void)state;
    const struct sr_ack beyond = {.cumulative = 101, .arrived = 101}, more = {.arrived = 101},
                        mark = {.mark = 4};
    assert_false(sr_report_possible(&bench->ledger, &bench->marker, &beyond));
    assert_false(sr_report_possible(&bench->ledger, &bench->marker, &more));
    assert_false(sr_report_possible(&bench->ledger, &bench->marker, &mark));
}

static int run_report(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_before_the_horizon),
        cmocka_unit_test(test_repairs_wait_for_their_mark),
        cmocka_unit_test(test_impossible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test rto -------------------------------------------------------------------------------------- */

#define RTO_CHUNKS 1000u

/* RTO = 3 * 6400, a group spans 300. */
static const struct sr_timing timing = {
    .rtt_ns = 6400, .overdue_ns = 7200, .window_ns = 800, .measured = true};
#define RTO ((lh_time)3 * 6400)

struct rto_fixture {
    struct sr_ledger ledger;
    struct sr_rto rto;
    void *memory;
};

static int rto_set_up(void **state)
{
    struct rto_fixture *f = malloc(sizeof(*f));
    f->memory = malloc(sr_ledger_bytes(RTO_CHUNKS));
    sr_ledger_init(&f->ledger, RTO_CHUNKS, f->memory);
    sr_rto_init(&f->rto, 200);
    *state = f;
    return 0;
}

static int rto_tear_down(void **state)
{
    struct rto_fixture *f = *state;
    free(f->memory);
    free(f);
    return 0;
}

static void inject_new(struct rto_fixture *f, uint32_t count, lh_time now)
{
    struct sr_run run;
    assert_true(sr_ledger_take_new(&f->ledger, count, sr_rto_stamp(&f->rto, &timing, now), &run));
    sr_rto_on_injection(&f->rto, run, now);
}

static void inject_lost(struct rto_fixture *f, lh_time now)
{
    struct sr_run run;
    assert_true(sr_ledger_take_lost(&f->ledger, RTO_CHUNKS, sr_rto_stamp(&f->rto, &timing, now), &run));
    sr_rto_on_injection(&f->rto, run, now);
}

static uint32_t expire(struct rto_fixture *f, lh_time now)
{
    return sr_rto_on_expired(&f->rto, &f->ledger, &timing, now);
}

static void test_spans(void **state)
{
    struct rto_fixture *f = *state;
    assert_int_equal(sr_rto_span(&f->rto, &timing), RTO);
    f->rto.alpha_hundredths = 50;
    assert_int_equal(sr_rto_span(&f->rto, &timing), 9600);
    struct sr_timing late = timing;
    late.overdue_ns = 10000; /* what waited for the pace is acknowledged no oftener than the rest */
    assert_int_equal(sr_rto_span(&f->rto, &late), 10000 + 1600);
}

static void test_expires_at_its_moment(void **state)
{
    struct rto_fixture *f = *state;
    assert_int_equal(sr_rto_expiry(&f->rto, &timing), LH_TIME_NEVER);
    inject_new(f, 10, 1000);
    assert_int_equal(sr_rto_expiry(&f->rto, &timing), 1000 + RTO);
    assert_int_equal(expire(f, 1000 + RTO - 1), 0);
    assert_int_equal(expire(f, 1000 + RTO), 10);
    assert_int_equal(f->ledger.lost, 10);
    assert_int_equal(sr_rto_expiry(&f->rto, &timing), LH_TIME_NEVER);
    inject_lost(f, 1000 + RTO + 5);
    assert_int_equal(expire(f, 1000 + 2 * RTO + 4), 0);
    assert_int_equal(expire(f, 1000 + 2 * RTO + 5), 10);
}

static void test_a_group_expires_with_its_last_injection(void **state)
{
    struct rto_fixture *f = *state;
    inject_new(f, 10, 0);
    inject_new(f, 10, 299);
    inject_new(f, 10, 300); /* the next group */
    assert_int_equal(expire(f, RTO + 298), 0);
    assert_int_equal(expire(f, RTO + 299), 20);
    assert_int_equal(expire(f, RTO + 300), 10);
}

static void test_what_was_acknowledged_or_sent_again_does_not_expire(void **state)
{
    struct rto_fixture *f = *state;
    inject_new(f, 128, 0);
    sr_ledger_ack_below(&f->ledger, 64);
    sr_ledger_ack_word(&f->ledger, 1, 0xff);
    sr_ledger_lose_word(&f->ledger, 1, 0x100); /* somebody knew earlier */
    inject_lost(f, 600);
    assert_int_equal(expire(f, RTO), 64 - 9);
    assert_int_equal(expire(f, RTO + 599), 0);
    assert_int_equal(expire(f, RTO + 600), 1);
}

/* A round trip that shrinks lets more groups live than there is room for: the newest then grows. */
static void test_a_full_ring_expires_late_not_early(void **state)
{
    struct rto_fixture *f = *state;
    lh_time now = 0;
    for (uint32_t i = 0; i < SR_RTO_GROUPS + 50; i++)
        inject_new(f, 1, now += 300);
    assert_int_equal(f->rto.next - f->rto.oldest, SR_RTO_GROUPS);
    lh_time full = (lh_time)300 * SR_RTO_GROUPS;
    assert_int_equal(expire(f, full + RTO - 300), SR_RTO_GROUPS - 1);
    assert_int_equal(expire(f, now + RTO - 1), 0);
    assert_int_equal(expire(f, now + RTO), 51);
}

static void test_numbers_may_wrap(void **state)
{
    struct rto_fixture *f = *state;
    f->rto.oldest = f->rto.next = UINT32_MAX;
    inject_new(f, 1, 0);
    inject_new(f, 1, 1000);
    inject_new(f, 1, 2000);
    assert_int_equal(f->rto.next, 2);
    assert_int_equal(expire(f, RTO), 1);
    assert_int_equal(expire(f, RTO + 1000), 1);
    assert_int_equal(expire(f, RTO + 2000), 1);
}

static void test_a_stamp_without_an_injection(void **state)
{
    struct rto_fixture *f = *state;
    sr_rto_stamp(&f->rto, &timing, 0);
    assert_int_equal(expire(f, RTO), 0);
    assert_int_equal(sr_rto_expiry(&f->rto, &timing), LH_TIME_NEVER);
}

static int run_rto(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_spans, rto_set_up, rto_tear_down),
        cmocka_unit_test_setup_teardown(test_expires_at_its_moment, rto_set_up, rto_tear_down),
        cmocka_unit_test_setup_teardown(test_a_group_expires_with_its_last_injection, rto_set_up,
                                        rto_tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_acknowledged_or_sent_again_does_not_expire,
                                        rto_set_up, rto_tear_down),
        cmocka_unit_test_setup_teardown(test_a_full_ring_expires_late_not_early, rto_set_up, rto_tear_down),
        cmocka_unit_test_setup_teardown(test_numbers_may_wrap, rto_set_up, rto_tear_down),
        cmocka_unit_test_setup_teardown(test_a_stamp_without_an_injection, rto_set_up, rto_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_ledger() + run_marker() + run_report() + run_rto();
}
