/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_receiver.h"

#include "message/rx_messages.h"
#include "unit/message/rx_part.h"

static void test_cuts_a_buffer_into_segments(void **state)
{
    (void)state;
    recv_bytes(2 * SLOT + 1, 0);
    recv_bytes(5, 0);
    posting_step(&rx, 0);
    assert_int_equal(rx.segment_next, 4);
    assert_true(qp.recvs[0].max_length == SLOT && qp.recvs[2].max_length == 1);
    assert_int_equal(qp.recvs[1].cts.segment, 1);
    assert_int_equal(qp.recvs[1].cts.message, 0);
    assert_int_equal(qp.recvs[1].cts.room, 2 * SLOT + 1);
    assert_int_equal(qp.recvs[1].cts.scheme, FAKE_ID);
    assert_true(qp.recvs[3].cts.message == 1 && qp.recvs[3].cts.segment == 0);
    posting_step(&rx, 1);
    assert_int_equal(rx.segment_next, 4);
}

/* What lies in several parts is placed together, and copied when it has arrived. */
static void test_a_buffer_in_parts(void **state)
{
    (void)state;
    const struct message_parts parts = {.count = 2,
                                        .list = {{buffer + 9000, 10, 1}, {buffer, 2 * SLOT, 2}}};
    const struct message_buffer scattered = {.parts = &parts};
    memset(buffer, 0, sizeof buffer);
    receiver_recv(&rx, request_of(0), &scattered, 2 * SLOT + 10, 0);
    posting_step(&rx, 0);
    assert_true(rx.segment_next == 3 && parity.in_use == 1);
    assert_ptr_equal(segment_at(0)->payload, segment_at(0)->copied->chunks);
    assert_ptr_equal(segment_at(1)->payload, buffer + SLOT - 10);
    announce_lengths(0, 0, 13, 13, 0, 1);
    memset(segment_at(0)->payload, 'x', SLOT);
    rx_close_segment(&rx, segment_at(0), SEGMENT_DONE);
    rx_finish_segment(&rx, segment_at(0), 2);
    expect_finished(0, 0);
    assert_memory_equal(buffer + 9000, "xxxxxxxxxx", 11);
    assert_memory_equal(buffer, "xxx", 4);
    assert_int_equal(parity.in_use, 0);
}

static void test_no_memory_for_a_buffer_in_parts(void **state)
{
    (void)state;
    const struct message_parts parts = {.count = 2, .list = {{buffer, 10, 1}, {buffer + 100, 10, 2}}};
    const struct message_buffer scattered = {.parts = &parts};
    receiver_recv(&rx, request_of(0), &scattered, 20, 0);
    posting_step(&rx, 0);
    assert_int_equal(rx.segment_next, 1);
    registrations_left = 0;
    receiver_recv(&rx, request_of(1), &scattered, 20, 0);
    posting_step(&rx, 1); /* waits for that of the first */
    assert_int_equal(rx.segment_next, 1);
    expect_no_effect();
    receiver_cancel(&rx, 0, 2);
    expect_finished(0, -LH_ECANCELED);
    parity_free_all(&parity);
    posting_step(&rx, 3);
    expect_finished(1, -LH_ENOMEM);
}

static void test_waits_for_places(void **state)
{
    (void)state;
    rx.segment_oldest = rx.segment_next = qp.recv_next = UINT32_MAX - 2; /* sequences wrap */
    recv_bytes((SLOTS + 2) * SLOT, 0);
    posting_step(&rx, 0);
    assert_int_equal(rx.segment_next - rx.segment_oldest, SLOTS);
    segment_at(rx.segment_oldest + 1)->state = SEGMENT_DONE; /* not the oldest */
    posting_step(&rx, 1);
    assert_int_equal(rx.segment_next - rx.segment_oldest, SLOTS);
    segment_at(rx.segment_oldest)->state = SEGMENT_DONE;
    posting_step(&rx, 2);
    assert_int_equal(rx.segment_oldest, UINT32_MAX);
    assert_int_equal(rx.segment_next - rx.segment_oldest, SLOTS);
}

static void test_an_empty_buffer_is_one_segment(void **state)
{
    (void)state;
    recv_bytes(0, 0);
    posting_step(&rx, 0);
    assert_true(rx.segment_next == 1 && qp.recvs[0].max_length == 0);
    posting_step(&rx, 0);
    assert_int_equal(rx.segment_next, 1);
}

/* Later segments of a message whose length is known are posted with that length. */
static void test_posts_no_more_than_the_message_has(void **state)
{
    (void)state;
    recv_bytes((SLOTS + 4) * SLOT, 0);
    posting_step(&rx, 0);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOTS * SLOT + 9, 0, 1);
    segment_at(0)->state = SEGMENT_DONE;
    segment_at(1)->state = SEGMENT_DONE;
    posting_step(&rx, 2);
    assert_int_equal(rx.segment_next, SLOTS + 1);
    assert_true(qp.recvs[SLOTS].max_length == 9 && qp.recvs[SLOTS].truncated == 9);
}

static void test_a_refused_post(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    qp.post_error = -LH_EAGAIN;
    posting_step(&rx, 0);
    assert_true(rx.post_refused && rx.segment_next == 0);
    expect_no_effect();
    qp.post_error = -LH_EKEY; /* of the buffer */
    posting_step(&rx, 1);
    assert_false(rx.post_refused);
    expect_finished(0, -LH_EKEY);
    recv_bytes(SLOT, 2);
    qp.error = -LH_EDEVICE; /* of the queue pair: the step sees that */
    posting_step(&rx, 2);
    expect_no_effect();
}

static void test_parity_takes_the_place_after_its_segment(void **state)
{
    (void)state;
    recv_bytes(4 * SLOT, 0);
    posting_step(&rx, 0);
    assert_int_equal(rx.segment_next, SLOTS);
    assert_true(!qp.recvs[0].cts.extra && qp.recvs[1].cts.extra);
    assert_true(qp.recvs[1].max_length == 2 * CHUNK && qp.recvs[1].cts.segment == 0);
    assert_int_equal(segment_at(1)->state, SEGMENT_PARITY);
    assert_ptr_equal(segment_at(0)->coded.bitmap, qp.recvs[1].bitmap);
    assert_int_equal(parity.in_use, 4);
}

static void test_parity_that_is_refused_is_due(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    recv_bytes(SLOT, 0);
    registrations_left = 1;
    posting_step(&rx, 0);
    assert_true(rx.parity_due && rx.segment_next == 3); /* the first segment will give its parity back */
    expect_no_effect();
    receiver_cancel(&rx, 0, 1);
    expect_finished(0, -LH_ECANCELED);
    posting_step(&rx, 2);
    assert_true(!rx.parity_due && rx.segment_next == 4);
}

static void test_no_memory_for_parity(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    registrations_left = 0;
    posting_step(&rx, 0);
    expect_finished(0, -LH_ENOMEM);
    assert_false(rx.parity_due);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_cuts_a_buffer_into_segments),
        RX_TEST(test_a_buffer_in_parts),
        RX_TEST(test_no_memory_for_a_buffer_in_parts),
        RX_TEST(test_waits_for_places),
        RX_TEST(test_an_empty_buffer_is_one_segment),
        RX_TEST(test_posts_no_more_than_the_message_has),
        RX_TEST(test_a_refused_post),
        RX_TEST_CODED(test_parity_takes_the_place_after_its_segment),
        RX_TEST_CODED(test_parity_that_is_refused_is_due),
        RX_TEST_CODED(test_no_memory_for_parity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
