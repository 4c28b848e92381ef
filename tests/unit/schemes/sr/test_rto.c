/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/rto.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define CHUNKS 1000u

/* RTO = 3 * 6400, a group spans 300. */
static const struct sr_timing timing = {
    .rtt_ns = 6400, .overdue_ns = 7200, .window_ns = 800, .measured = true};
#define RTO ((lh_time)3 * 6400)

struct fixture {
    struct sr_ledger ledger;
    struct sr_rto rto;
    void *memory;
};

static int set_up(void **state)
{
    struct fixture *f = malloc(sizeof(*f));
    f->memory = malloc(sr_ledger_bytes(CHUNKS));
    sr_ledger_init(&f->ledger, CHUNKS, f->memory);
    sr_rto_init(&f->rto, 200);
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

static void inject_new(struct fixture *f, uint32_t count, lh_time now)
{
    struct sr_run run;
    assert_true(sr_ledger_take_new(&f->ledger, count, sr_rto_stamp(&f->rto, &timing, now), &run));
    sr_rto_on_injection(&f->rto, run, now);
}

static void inject_lost(struct fixture *f, lh_time now)
{
    struct sr_run run;
    assert_true(sr_ledger_take_lost(&f->ledger, CHUNKS, sr_rto_stamp(&f->rto, &timing, now), &run));
    sr_rto_on_injection(&f->rto, run, now);
}

static uint32_t expire(struct fixture *f, lh_time now)
{
    return sr_rto_on_expired(&f->rto, &f->ledger, &timing, now);
}

static void test_spans(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(sr_rto_span(&f->rto, &timing), RTO);
    f->rto.alpha_hundredths = 50;
    assert_int_equal(sr_rto_span(&f->rto, &timing), 9600);
    struct sr_timing late = timing;
    late.overdue_ns = 10000; /* what waited for the pace is acknowledged no oftener than the rest */
    assert_int_equal(sr_rto_span(&f->rto, &late), 10000 + 1600);
}

static void test_expires_at_its_moment(void **state)
{
    struct fixture *f = *state;
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
    struct fixture *f = *state;
    inject_new(f, 10, 0);
    inject_new(f, 10, 299);
    inject_new(f, 10, 300); /* the next group */
    assert_int_equal(expire(f, RTO + 298), 0);
    assert_int_equal(expire(f, RTO + 299), 20);
    assert_int_equal(expire(f, RTO + 300), 10);
}

static void test_what_was_acknowledged_or_sent_again_does_not_expire(void **state)
{
    struct fixture *f = *state;
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
    struct fixture *f = *state;
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
    struct fixture *f = *state;
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
    struct fixture *f = *state;
    sr_rto_stamp(&f->rto, &timing, 0);
    assert_int_equal(expire(f, RTO), 0);
    assert_int_equal(sr_rto_expiry(&f->rto, &timing), LH_TIME_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_spans, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_expires_at_its_moment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_group_expires_with_its_last_injection, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_acknowledged_or_sent_again_does_not_expire, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_full_ring_expires_late_not_early, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_numbers_may_wrap, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_stamp_without_an_injection, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
