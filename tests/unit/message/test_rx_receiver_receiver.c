/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_receiver.h"

#include "unit/message/rx_part.h"

static void test_limits_of_a_message(void **state)
{
    (void)state;
    assert_int_equal(receiver_check(&rx, TRANSFER_ROOM_MAX + 1), -LH_EINVAL);
    assert_int_equal(receiver_check(&rx, SLOT * INT32_MAX), -LH_EINVAL);
    assert_int_equal(receiver_check(&rx, SLOT * INT32_MAX - 1), 0);
    rx.next = rx.oldest + MESSAGES_MAX;
    assert_int_equal(receiver_check(&rx, 1), -LH_EAGAIN);
    rx.next--;
    assert_int_equal(receiver_check(&rx, 1), 0);
    rx.next = rx.oldest;
}

static void test_a_message_from_receive_to_done(void **state)
{
    (void)state;
    recv_bytes(SLOT, 5);
    fake.next.next_ns = 800;
    assert_int_equal(step_at(5), 800); /* the machine of what was just posted has stepped */
    assert_int_equal(fake.steps, 1);
    announce_lengths(0, 0, 2 * CHUNK, 2 * CHUNK, 0, 10);
    fake_arrive(0, 0);
    fake_arrive(0, 1);
    assert_true(arrivals_poll(&rx, 20));
    fake_next(LH_ACTION_COMPLETE);
    assert_int_equal(step_at(20), LH_TIME_NEVER);
    assert_int_equal(rx.effects->finished->result.bytes, 2 * CHUNK);
    expect_finished(0, 0);
    assert_int_equal(announce_at(20), 20 + RTT_NS / 64);
    assert_int_equal(fake_last(TRANSFER_DONE)->body.done.segment, 0);
    assert_int_equal(rx.oldest, 1);
}

/* A place that becomes free is posted again in the same step; each machine steps once. */
static void test_each_machine_steps_once(void **state)
{
    (void)state;
    recv_bytes((SLOTS + 1) * SLOT, 0);
    (void)step_at(0);
    assert_int_equal(fake.steps, SLOTS);
    announce_lengths(0, 0, (uint32_t)SLOT, (SLOTS + 1) * SLOT, 0, 1);
    fake.steps = 0;
    fake_next(LH_ACTION_COMPLETE); /* of the first */
    (void)step_at(2);
    assert_int_equal(rx.segment_next, SLOTS + 1);
    assert_int_equal(fake.steps, SLOTS + 1);
}

/* A machine's timer expired before other workers polled their channels: they are woken. */
static void test_wakes_workers_that_lag(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    fake.next.next_ns = 100;
    (void)step_at(0);
    rx.caught_up_ns = 100;
    (void)step_at(100);
    assert_int_equal(qp.catch_up_ns, 0);
    segment_at(0)->next_ns = 101;
    (void)step_at(101);
    assert_int_equal(qp.catch_up_ns, 101);
}

static void test_the_end_of_everything(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        recv_bytes(SLOT, 0);
    (void)step_at(0);
    receiver_cancel(&rx, 1, 1);
    expect_finished(1, -LH_ECANCELED);
    receiver_end_all(&rx, -LH_EPEER, 9);
    assert_ptr_equal(rx.effects->finished, request_of(0));
    assert_ptr_equal(rx.effects->last, request_of(2));
    assert_int_equal(rx.effects->last->result.error, -LH_EPEER);
    assert_true(qp.recvs[0].completed && qp.recvs[2].completed);
    rx.effects->finished = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_limits_of_a_message),     RX_TEST(test_a_message_from_receive_to_done),
        RX_TEST(test_each_machine_steps_once), RX_TEST(test_wakes_workers_that_lag),
        RX_TEST(test_the_end_of_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
