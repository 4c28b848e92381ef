/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_messages.h"

#include "unit/message/tx_part.h"

static void refuse(uint32_t number, uint32_t error, lh_time now)
{
    const struct transfer_message message = {.kind = TRANSFER_REFUSE,
                                             .body.verdict = {.message = number, .error = error}};
    cancel_on_refuse(&tx, &message, now);
}

static lh_time refresh_at(lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    cancel_on_refresh_expired(&tx, now, &next);
    return next;
}

static void test_cancel_is_sent_until_it_is_answered(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    cancel_message(&tx, tx_message_at(&tx, 0), LH_ECANCELED, 1000);
    expect_finished(0, -LH_ECANCELED);
    assert_int_equal(fake_last(TRANSFER_CANCEL)->body.verdict.error, LH_ECANCELED);
    assert_int_equal(refresh_at(1000 + OVERDUE_NS - 1), 1000 + OVERDUE_NS);
    assert_int_equal(qp.message_count, 1);
    assert_int_equal(refresh_at(1000 + OVERDUE_NS), 1000 + 3 * OVERDUE_NS);
    assert_int_equal(qp.message_count, 2);
    refuse(0, LH_ECANCELED, 2000);
    assert_int_equal(fake_last(TRANSFER_FORGET)->body.verdict.message, 0);
    assert_int_equal(refresh_at(LH_TIME_NEVER - 1), LH_TIME_NEVER);
    assert_true(tx.canceling == 0 && tx.oldest == 1);
    expect_no_effect();
}

static void test_refusal_ends_an_open_message(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    refuse(0, LH_ETRUNCATED, 5);
    expect_finished(0, -LH_ETRUNCATED);
    assert_int_equal(tx.oldest, 1);
    refuse(0, LH_ETRUNCATED, 6); /* once more: the FORGET was lost */
    expect_no_effect();
    assert_int_equal(qp.message_count, 2);
    (void)fake_last(TRANSFER_FORGET);
}

static void test_codes_that_nobody_knows_become_a_protocol_error(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    refuse(0, 654321, 5);
    expect_finished(0, -LH_EPROTOCOL);
    send_bytes(SLOT, 0);
    cancel_message(&tx, tx_message_at(&tx, 1), 123456, 6);
    expect_finished(1, -LH_EPROTOCOL);
}

static void test_refusal_ahead_waits_for_its_send(void **state)
{
    (void)state;
    refuse(1, LH_ECANCELED, 0);
    (void)fake_last(TRANSFER_FORGET);
    send_bytes(SLOT, 0);
    expect_no_effect();
    send_bytes(SLOT, 0);
    expect_finished(1, -LH_ECANCELED);
    refuse(0, LH_ECANCELED, 1);
    expect_finished(0, -LH_ECANCELED);
    assert_int_equal(tx.oldest, 2);
}

/* The receiver has delivered what it had by its deadline, and will take nothing more. */
static void test_the_end_of_a_deadline_is_no_error(void **state)
{
    (void)state;
    refuse(1, 0, 0);
    (void)fake_last(TRANSFER_FORGET);
    send_bytes(SLOT, 0);
    expect_no_effect();
    send_bytes(SLOT, 0);
    expect_finished(1, 0);
    refuse(0, 0, 1);
    expect_finished(0, 0);
    assert_int_equal(tx.oldest, 2);
}

/* Beyond the ring nothing can be remembered, so nothing is answered. */
static void test_refusal_far_ahead_is_not_answered(void **state)
{
    (void)state;
    refuse(MESSAGES_MAX, LH_ECANCELED, 0);
    assert_int_equal(qp.message_count, 0);
    refuse(MESSAGES_MAX - 1, LH_ECANCELED, 0);
    assert_int_equal(qp.message_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST(test_cancel_is_sent_until_it_is_answered),
        TX_TEST(test_refusal_ends_an_open_message),
        TX_TEST(test_codes_that_nobody_knows_become_a_protocol_error),
        TX_TEST(test_refusal_ahead_waits_for_its_send),
        TX_TEST(test_the_end_of_a_deadline_is_no_error),
        TX_TEST(test_refusal_far_ahead_is_not_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
