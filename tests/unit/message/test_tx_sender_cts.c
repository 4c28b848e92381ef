/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_sender.h"

#include <stdlib.h>

#include "unit/message/tx_part.h"

static lh_time start_at(lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    cts_start_segments(&tx, now, &next);
    return next;
}

static void expect_protocol_error(const char *part_of_reason)
{
    assert_int_equal(tx.effects->failure, LH_EPROTOCOL);
    assert_non_null(strstr(effects_reason(tx.effects), part_of_reason));
    free(tx.effects->reason);
    *tx.effects = (struct effects){0};
}

static void test_each_starts_a_segment(void **state)
{
    (void)state;
    send_bytes(SLOT + 1, 0);
    clear_segment(0, 0);
    clear_segment(0, 1);
    (void)start_at(30);
    assert_int_equal(tx.segment_next, 2);
    assert_int_equal(tx_segment_at(&tx, 0)->bytes, SLOT);
    assert_int_equal(tx_segment_at(&tx, 1)->bytes, 1);
    assert_ptr_equal(tx_segment_at(&tx, 1)->payload, payload + SLOT);
    assert_int_equal(request_of(0)->result.started_ns, 30);
    assert_int_equal(qp.message_count, 2); /* the lengths of each */
    assert_int_equal(fake.steps, 2);
    assert_false(tx.cts_wanted); /* the message needs no more */
    expect_no_effect();
}

static void test_waits_for_the_next_one(void **state)
{
    (void)state;
    send_bytes(SLOT + 1, 0);
    clear_segment(0, 0);
    (void)start_at(0);
    assert_true(tx.cts_wanted && tx.segment_next == 1);
}

/* Of an earlier message: its receiver posted more segments than the message needed. Of a later one: it
 * waits. */
static void test_passed_by_or_left_waiting(void **state)
{
    (void)state;
    send_bytes(1, 0);
    clear_segment(UINT32_MAX, 9); /* numbers wrap: one before 0 */
    clear_segment(1, 0);
    (void)start_at(0);
    assert_true(tx.segment_next == 1 && tx.segment_oldest == 1);
    assert_int_equal(qp.cts_head, 1);
    assert_int_equal(qp.message_count, 0);
    expect_no_effect();
}

static void test_a_full_ring_waits_for_its_oldest(void **state)
{
    (void)state;
    send_bytes((SLOTS + 1) * SLOT, 0);
    for (uint32_t i = 0; i < SLOTS + 1; i++)
        clear_segment(0, i);
    (void)start_at(0);
    assert_int_equal(tx.segment_next, SLOTS);
    const struct transfer_message done = {.kind = TRANSFER_DONE, .body.done = {.segment = 3}};
    sender_on_done(&tx, &done, 1); /* not the oldest */
    (void)start_at(1);
    assert_int_equal(tx.segment_next, SLOTS);
    const struct transfer_message oldest = {.kind = TRANSFER_DONE, .body.done = {.segment = 0}};
    sender_on_done(&tx, &oldest, 2);
    (void)start_at(2);
    assert_int_equal(tx.segment_next, SLOTS + 1);
}

/* Later segments get nothing while an earlier one has used up the window. */
static void test_a_used_up_budget_closes(void **state)
{
    (void)state;
    tx.window_bytes = 4 * CHUNK;
    send_bytes(2 * SLOT, 0);
    clear_segment(0, 0);
    clear_segment(0, 1);
    fake_next_chunks(0, 4);
    (void)start_at(0);
    assert_true(tx.closed && tx.segment_next == 1);
    assert_int_equal(qp.chunk_count, 1);
}

static void test_what_the_peer_may_not_ask_for(void **state)
{
    (void)state;
    struct transfer_cts cts = {.message = 0, .room = SLOT, .scheme = 99};
    send_bytes(SLOT, 0);
    fake_cts(&cts, (uint32_t)SLOT);
    (void)start_at(0);
    expect_protocol_error("scheme 99");
    qp.cts_head = qp.cts_tail = 0;
    cts.scheme = FAKE_ID;
    cts.params[7] = 1;
    fake_cts(&cts, (uint32_t)SLOT);
    (void)start_at(0);
    expect_protocol_error("invalid parameters");
    qp.cts_head = qp.cts_tail = 0;
    cts.params[7] = 0;
    cts.segment = 1;
    fake_cts(&cts, (uint32_t)SLOT);
    (void)start_at(0);
    expect_protocol_error("segment 1");
    qp.cts_head = qp.cts_tail = 0;
    cts.segment = 0;
    fake_cts(&cts, (uint32_t)SLOT - 1);
    (void)start_at(0);
    expect_protocol_error("cleared 255 bytes");
    assert_int_equal(tx.segment_next, 0);
}

/* Of one that is too long only the lengths are announced: the receiver refuses it. */
static void test_too_long_for_the_buffer(void **state)
{
    (void)state;
    const struct transfer_cts cts = {.message = 0, .room = SLOT - 1, .scheme = FAKE_ID};
    send_bytes(SLOT, 0);
    fake_cts(&cts, (uint32_t)SLOT - 1);
    (void)start_at(0);
    assert_null(tx_segment_at(&tx, 0)->scheme);
    assert_int_equal(fake.steps, 0);
    assert_int_equal(fake_last(TRANSFER_TO_RECEIVER)->body.to_receiver.message_bytes, SLOT);
    expect_no_effect();
}

/* The machine ends its message at once: nothing of it is left. */
static void test_a_machine_that_fails_at_once(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    fake_next_fail(LH_EKEY);
    (void)start_at(0);
    expect_finished(0, -LH_EKEY);
    (void)fake_last(TRANSFER_CANCEL);
    assert_false(tx_segment_at(&tx, 0)->active);
    assert_int_equal(tx.segment_oldest, 1);
}

/* ---- with parity ------------------------------------------------------------------------------------- */

static void test_parity_opens_for_the_segment_before(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    clear_coded(0, 0, 2, false);
    (void)start_at(0);
    assert_int_equal(tx_segment_at(&tx, 0)->coded.extra_chunks, 2);
    assert_int_equal(parity.in_use, 1);
    assert_false(cts_use_parity(&tx));
    clear_coded(0, 0, 2, true);
    assert_true(cts_use_parity(&tx));
    assert_non_null(tx_segment_at(&tx, 0)->coded.handle);
    assert_int_equal(tx.segment_next, 2);
}

static void test_parity_of_a_segment_that_is_over_is_passed_by(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    clear_coded(0, 0, 2, false);
    (void)start_at(0);
    sender_cancel(&tx, 0, 1);
    expect_finished(0, -LH_ECANCELED);
    assert_int_equal(parity.in_use, 0);
    clear_coded(0, 0, 2, true);
    assert_true(cts_use_parity(&tx));
    assert_true(tx.segment_next == 2 && tx.segment_oldest == 2);
}

static void test_less_capacity_than_parity(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    clear_coded(0, 0, 2, false);
    (void)start_at(0);
    struct transfer_cts cts = {.message = 0, .room = SLOT, .scheme = FAKE_CODED_ID, .extra = true};
    fake_cts(&cts, 2 * CHUNK - 1);
    assert_false(cts_use_parity(&tx));
    expect_protocol_error("less than the parity");
}

/* Without memory for parity the message ends, unless a segment in flight will give some back. */
static void test_no_memory_for_parity(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    send_bytes(SLOT, 0);
    registrations_left = 1;
    clear_coded(0, 0, 2, false);
    clear_coded(0, 0, 2, true);
    clear_coded(1, 0, 2, false);
    (void)start_at(0);
    (void)start_at(0);
    expect_no_effect();
    assert_true(tx.segment_next == 2 && qp.cts_head == 2);
    const struct transfer_message done = {.kind = TRANSFER_DONE, .body.done = {.segment = 0}};
    sender_on_done(&tx, &done, 1);
    expect_finished(0, 0);
    parity_free_all(&parity);
    registrations_left = 0;
    (void)start_at(2);
    expect_finished(1, -LH_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST(test_each_starts_a_segment),
        TX_TEST(test_waits_for_the_next_one),
        TX_TEST(test_passed_by_or_left_waiting),
        TX_TEST(test_a_full_ring_waits_for_its_oldest),
        TX_TEST(test_a_used_up_budget_closes),
        TX_TEST(test_what_the_peer_may_not_ask_for),
        TX_TEST(test_too_long_for_the_buffer),
        TX_TEST(test_a_machine_that_fails_at_once),
        TX_TEST_CODED(test_parity_opens_for_the_segment_before),
        TX_TEST_CODED(test_parity_of_a_segment_that_is_over_is_passed_by),
        TX_TEST_CODED(test_less_capacity_than_parity),
        TX_TEST_CODED(test_no_memory_for_parity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
