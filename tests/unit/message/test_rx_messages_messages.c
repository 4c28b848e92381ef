/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_messages.h"

#include "unit/message/rx_part.h"

static void test_ends_with_its_last_segment(void **state)
{
    (void)state;
    recv_bytes(2 * SLOT, 5);
    (void)step_at(5);
    announce_lengths(0, 0, (uint32_t)SLOT, 2 * SLOT, 0, 6);
    rx_close_segment(&rx, segment_at(1), SEGMENT_DONE);
    rx_finish_segment(&rx, segment_at(1), 7);
    expect_no_effect();
    rx_retire(&rx);
    assert_int_equal(rx.segment_oldest, 0); /* the first one is open */
    rx_close_segment(&rx, segment_at(0), SEGMENT_DONE);
    rx_finish_segment(&rx, segment_at(0), 8);
    assert_int_equal(rx.effects->finished->result.bytes, 2 * SLOT);
    assert_int_equal(rx.effects->finished->result.ended_ns, 8);
    expect_finished(0, 0);
    assert_int_equal(rx.stats->messages_received, 1);
    rx_retire(&rx);
    assert_true(rx.oldest == 1 && rx.posting == 1 && rx.segment_oldest == 2);
}

/* From the return on nothing changes the buffer; the places stay until the sender received the refusal. */
static void test_an_early_end_closes_its_slots(void **state)
{
    (void)state;
    recv_bytes(2 * SLOT, 0);
    recv_bytes(SLOT, 0);
    (void)step_at(0);
    rx_end_message(&rx, rx_message_at(&rx, 0), -LH_ECANCELED, RX_REFUSED, 1);
    expect_finished(0, -LH_ECANCELED);
    assert_int_equal(rx.stats->messages_failed, 1);
    assert_true(qp.recvs[0].completed && qp.recvs[1].completed && !qp.recvs[2].completed);
    rx_retire(&rx);
    assert_true(rx.segment_oldest == 0 && rx.oldest == 0);
    rx_message_at(&rx, 0)->state = RX_OVER;
    rx_retire(&rx);
    assert_true(rx.segment_oldest == 2 && rx.oldest == 1);
}

static void test_parity_is_given_back_with_its_segment(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    (void)step_at(0);
    assert_true(rx.segment_next == 2 && parity.in_use == 1);
    rx_close_segment(&rx, segment_at(0), SEGMENT_UNNEEDED);
    assert_true(qp.recvs[1].completed);
    assert_int_equal(segment_at(1)->state, SEGMENT_UNNEEDED);
    assert_int_equal(parity.in_use, 0);
}

static void test_a_segment_that_is_decoded_stays(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    (void)step_at(0);
    segment_at(0)->coded.jobs = 1;
    rx_close_segment(&rx, segment_at(0), SEGMENT_DONE);
    assert_int_equal(parity.in_use, 1);
    rx_retire(&rx);
    assert_int_equal(rx.segment_oldest, 0);
    segment_at(0)->coded.jobs = 0;
    parity_give(&parity, segment_at(0)->coded.buffer);
    segment_at(0)->coded.buffer = NULL;
    rx_retire(&rx);
    assert_int_equal(rx.segment_oldest, 2);
}

static void test_numbers_wrap(void **state)
{
    (void)state;
    rx.oldest = rx.next = rx.posting = UINT32_MAX;
    rx_message_at(&rx, 0)->notice.error = LH_EKEY;
    rx_message_at(&rx, 0)->forgotten = true;
    recv_bytes(SLOT, 0);
    expect_no_effect();
    recv_bytes(SLOT, 0);
    expect_finished(0, -LH_EKEY);
    assert_true(rx.next == 1 && rx.oldest == UINT32_MAX);
    rx_end_message(&rx, rx_message_at(&rx, UINT32_MAX), -LH_EKEY, RX_OVER, 0);
    expect_finished(UINT32_MAX, -LH_EKEY);
    rx_retire(&rx);
    assert_true(rx.oldest == 1 && rx.posting == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_ends_with_its_last_segment),
        RX_TEST(test_an_early_end_closes_its_slots),
        RX_TEST_CODED(test_parity_is_given_back_with_its_segment),
        RX_TEST_CODED(test_a_segment_that_is_decoded_stays),
        RX_TEST(test_numbers_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
