/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_messages.h"

#include "unit/message/rx_part.h"

static void cancel(uint32_t number, uint32_t error, lh_time now)
{
    const struct transfer_message message = {.kind = TRANSFER_CANCEL,
                                             .body.verdict = {.message = number, .error = error}};
    refuse_on_cancel(&rx, &message, now);
}

static void forget(uint32_t number)
{
    const struct transfer_message message = {.kind = TRANSFER_FORGET, .body.verdict = {.message = number}};
    refuse_on_forget(&rx, &message);
}

static lh_time refresh_at(lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    refuse_on_refresh_expired(&rx, now, &next);
    return next;
}

static void test_refuse_is_sent_until_it_is_answered(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    refuse_message(&rx, rx_message_at(&rx, 0), LH_ETRUNCATED, 50);
    expect_finished(0, -LH_ETRUNCATED);
    assert_int_equal(fake_last(TRANSFER_REFUSE)->body.verdict.error, LH_ETRUNCATED);
    assert_int_equal(refresh_at(50 + OVERDUE_NS - 1), 50 + OVERDUE_NS);
    assert_int_equal(qp.message_count, 1);
    assert_int_equal(refresh_at(50 + OVERDUE_NS), 50 + 3 * OVERDUE_NS);
    assert_int_equal(qp.message_count, 2);
    forget(0);
    assert_int_equal(refresh_at(LH_TIME_NEVER - 1), LH_TIME_NEVER);
    assert_true(rx.refusing == 0 && rx.oldest == 1);
    forget(0);
    forget(MESSAGES_MAX + 5);
    expect_no_effect();
}

static void test_cancel_is_answered_by_refuse(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    cancel(0, LH_ECANCELED, 1);
    expect_finished(0, -LH_ECANCELED);
    assert_int_equal(qp.message_count, 1);
    cancel(0, LH_ECANCELED, 2);
    expect_no_effect();
    assert_int_equal(qp.message_count, 2);
    assert_int_equal(fake_last(TRANSFER_REFUSE)->body.verdict.error, LH_ECANCELED);
    forget(0);
    cancel(0, LH_ECANCELED, 3); /* over, and nothing is known of it any more */
    assert_int_equal(fake_last(TRANSFER_REFUSE)->body.verdict.error, 0);
}

static void test_cancel_ahead_waits_for_its_receive(void **state)
{
    (void)state;
    cancel(0, 987654, 0);
    assert_int_equal(fake_last(TRANSFER_REFUSE)->body.verdict.error, LH_EPROTOCOL);
    recv_bytes(SLOT, 1);
    expect_finished(0, -LH_EPROTOCOL);
    assert_int_equal(rx.refusing, 1);
    cancel(1, LH_ECANCELED, 2);
    forget(1);
    recv_bytes(SLOT, 3); /* the sender has received that already */
    expect_finished(1, -LH_ECANCELED);
    assert_int_equal(rx.refusing, 1);
}

static void test_cancel_far_ahead_is_not_answered(void **state)
{
    (void)state;
    cancel(MESSAGES_MAX, LH_ECANCELED, 0);
    assert_int_equal(qp.message_count, 0);
    cancel(MESSAGES_MAX - 1, LH_ECANCELED, 0);
    assert_int_equal(qp.message_count, 1);
}

/* The queue was full: the notice was not sent yet, and is sent soon. */
static void test_a_full_queue(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    qp.control_queue_full = true;
    receiver_cancel(&rx, 0, 80);
    expect_finished(0, -LH_ECANCELED);
    qp.control_queue_full = false;
    assert_int_equal(refresh_at(80), 80 + OVERDUE_NS / 8);
    assert_int_equal(refresh_at(80 + OVERDUE_NS / 8), 80 + OVERDUE_NS / 8 + OVERDUE_NS);
    assert_int_equal(qp.message_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_refuse_is_sent_until_it_is_answered),
        RX_TEST(test_cancel_is_answered_by_refuse),
        RX_TEST(test_cancel_ahead_waits_for_its_receive),
        RX_TEST(test_cancel_far_ahead_is_not_answered),
        RX_TEST(test_a_full_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
