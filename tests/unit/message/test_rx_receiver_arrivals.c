/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_receiver.h"

#include "unit/message/rx_part.h"

static lh_time machines_at(uint32_t from, lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    (void)arrivals_step(&rx, from, now, &next);
    return next;
}

static void begin_segments(uint32_t count)
{
    recv_bytes(count * SLOT, 0);
    (void)step_at(0);
    fake.steps = 0;
}

static void test_poll_sees_what_is_new(void **state)
{
    (void)state;
    begin_segments(2);
    qp.caught_up_ns = 40;
    assert_false(arrivals_poll(&rx, 50));
    assert_int_equal(rx.caught_up_ns, 40);
    fake_arrive(0, 2);
    assert_true(arrivals_poll(&rx, 60));
    assert_false(arrivals_poll(&rx, 70));
    assert_true(segment_at(0)->needs_step && !segment_at(1)->needs_step);
    (void)machines_at(0, 80);
    assert_int_equal(fake.steps, 1);
    assert_int_equal(fake.receiver_view.chunks_arrived, 1);
    assert_int_equal(fake.receiver_view.last_arrival_ns, 60);
    assert_int_equal(fake.receiver_view.caught_up_ns, 40);
    assert_false(fake.receiver_view.length_known);
}

/* A chunk of a later segment: those before it were sent whole. */
static void test_a_later_segment_shows(void **state)
{
    (void)state;
    begin_segments(3);
    fake_arrive(1, 0);
    (void)arrivals_poll(&rx, 60);
    assert_int_equal(segment_at(0)->later_seen_ns, 60);
    assert_int_equal(segment_at(1)->later_seen_ns, LH_TIME_NEVER);
    fake_arrive(2, 0);
    (void)arrivals_poll(&rx, 70);
    assert_int_equal(segment_at(0)->later_seen_ns, 60);
    assert_int_equal(segment_at(1)->later_seen_ns, 70);
}

static void test_later_segments_wrap(void **state)
{
    (void)state;
    rx.segment_oldest = rx.segment_next = rx.newest_seen = qp.recv_next = UINT32_MAX;
    begin_segments(3);
    fake_arrive(1, 0);
    (void)arrivals_poll(&rx, 5);
    assert_int_equal(rx.newest_seen, 1);
    assert_int_equal(segment_at(UINT32_MAX)->later_seen_ns, 5);
    assert_int_equal(segment_at(0)->later_seen_ns, 5);
}

static void test_machine_timer(void **state)
{
    (void)state;
    begin_segments(1);
    segment_at(0)->needs_step = true;
    fake.next.next_ns = 500;
    assert_int_equal(machines_at(0, 10), 500);
    lh_time next = LH_TIME_NEVER;
    assert_int_equal(arrivals_step(&rx, 0, 499, &next), 0);
    assert_true(next == 500 && fake.steps == 1);
    assert_int_equal(arrivals_step(&rx, 0, 500, &next), 500);
    assert_int_equal(fake.steps, 2);
}

static void test_steps_from_a_segment_on(void **state)
{
    (void)state;
    begin_segments(3);
    for (uint32_t i = 0; i < 3; i++)
        segment_at(i)->needs_step = true;
    (void)machines_at(2, 0);
    assert_int_equal(fake.steps, 1);
    assert_true(segment_at(1)->needs_step && !segment_at(2)->needs_step);
}

static void test_machine_messages(void **state)
{
    (void)state;
    begin_segments(2);
    segment_at(1)->needs_step = true;
    fake_next_message(5);
    (void)machines_at(0, 0);
    assert_int_equal(fake_last(TRANSFER_TO_SENDER)->body.to_sender.segment, 1);
    assert_int_equal(fake_last(TRANSFER_TO_SENDER)->body.to_sender.scheme_bytes, 5);
    const uint8_t data[] = {1};
    arrivals_on_scheme(&rx, segment_at(0), data, sizeof data, 8);
    assert_true(fake.messages == 1 && segment_at(0)->needs_step);
    assert_int_equal(fake.receiver_view.now, 8);
}

/* A machine that fills its list is asked again, up to a bound. */
static void test_a_full_list_goes_on(void **state)
{
    (void)state;
    begin_segments(1);
    segment_at(0)->needs_step = true;
    for (uint32_t i = 0; i < LH_ACTIONS_MAX; i++)
        fake_next_message(1);
    (void)machines_at(0, 0);
    assert_int_equal(fake.steps, 2);
    assert_int_equal(qp.message_count, LH_ACTIONS_MAX);
    assert_false(segment_at(0)->needs_step);
}

static void test_nothing_follows_the_end_of_a_segment(void **state)
{
    (void)state;
    begin_segments(2);
    segment_at(0)->needs_step = segment_at(1)->needs_step = true;
    fake_next_fail(LH_EKEY);
    fake_next_message(1);
    (void)machines_at(0, 0);
    expect_finished(0, -LH_EKEY);
    (void)fake_last(TRANSFER_REFUSE);
    assert_int_equal(qp.message_count, 1);
    assert_int_equal(fake.steps, 1); /* the other segment went with its message */
}

static void test_complete(void **state)
{
    (void)state;
    begin_segments(1);
    announce_lengths(0, 0, 7, 7, 0, 1);
    fake_next(LH_ACTION_COMPLETE);
    assert_int_equal(machines_at(0, 2), LH_TIME_NEVER);
    assert_true(fake.receiver_view.length_known && fake.receiver_view.chunks == 1);
    expect_finished(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_poll_sees_what_is_new),
        RX_TEST(test_a_later_segment_shows),
        RX_TEST(test_later_segments_wrap),
        RX_TEST(test_machine_timer),
        RX_TEST(test_steps_from_a_segment_on),
        RX_TEST(test_machine_messages),
        RX_TEST(test_a_full_list_goes_on),
        RX_TEST(test_nothing_follows_the_end_of_a_segment),
        RX_TEST(test_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
