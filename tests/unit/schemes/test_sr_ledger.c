/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/sr/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

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
    assert_int_equal(sr_ledger_under_way(ledger, 0), UINT64_MAX);
    assert_int_equal(sr_ledger_under_way(ledger, 1), 0);
    assert_int_equal(sr_ledger_under_way(ledger, UINT32_MAX / 64), 0);
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
    sr_ledger_lose_word(ledger, 1, sr_ledger_under_way(ledger, 1));
    sr_ledger_lose_word(ledger, 0, sr_ledger_under_way(ledger, 0));
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
    assert_int_equal(sr_ledger_under_way(&ledger, 0), 0);
    assert_true(sr_ledger_all_sent(&ledger));
}

int main(void)
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
