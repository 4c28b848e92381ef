/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_receiver.h"

#include <stdlib.h>

#include "unit/message/rx_part.h"

static void begin_message(uint64_t capacity)
{
    recv_bytes(capacity, 0);
    (void)step_at(0);
    fake.steps = 0;
}

/* Segments past the end are given back, and the last one is cut. */
static void test_a_shorter_message(void **state)
{
    (void)state;
    begin_message(4 * SLOT);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT + 3, 0, 5);
    assert_int_equal(rx_message_at(&rx, 0)->segments, 2);
    assert_true(qp.recvs[0].truncated == SLOT && qp.recvs[1].truncated == 3);
    assert_true(!qp.recvs[1].completed && qp.recvs[2].completed && qp.recvs[3].completed);
    assert_int_equal(segment_at(2)->state, SEGMENT_UNNEEDED);
    assert_true(segment_at(1)->needs_step);
    expect_no_effect();
}

static void test_an_empty_message(void **state)
{
    (void)state;
    begin_message(SLOT);
    announce_lengths(0, 0, 0, 0, 0, 5);
    (void)step_at(6);
    assert_int_equal(rx.effects->finished->result.bytes, 0);
    assert_true(rx.effects->finished->result.tag == TAG);
    expect_finished(0, 0);
}

static void test_too_long(void **state)
{
    (void)state;
    begin_message(SLOT);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT + 1, 0, 5);
    assert_true(rx.effects->finished->result.tag == TAG);
    expect_finished(0, -LH_ETRUNCATED);
    (void)fake_last(TRANSFER_REFUSE);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT + 1, 0, 6); /* asked again: answered again */
    assert_int_equal(qp.message_count, 2);
    assert_int_equal(fake_last(TRANSFER_REFUSE)->body.verdict.error, LH_ETRUNCATED);
    expect_no_effect();
}

static void test_packets_beyond_the_length(void **state)
{
    (void)state;
    begin_message(SLOT);
    qp.truncate_fails = true;
    announce_lengths(0, 0, 1, 1, 0, 5);
    expect_finished(0, -LH_EPROTOCOL);
}

static void test_lengths_that_cannot_be(void **state)
{
    (void)state;
    begin_message(2 * SLOT);
    announce_lengths(2, 0, 1, 1, 0, 5);                     /* never cleared to be sent */
    announce_lengths(0, 1, (uint32_t)SLOT, 2 * SLOT, 0, 5); /* of another message */
    announce_lengths(0, 0, (uint32_t)SLOT - 1, SLOT, 0, 5); /* the two do not fit together */
    announce_lengths(1, 0, (uint32_t)SLOT, SLOT, 0, 5);     /* it would not have that segment */
    assert_int_equal(rx.stats->bad_control, 4);
    announce_lengths(1, 0, (uint32_t)SLOT, 2 * SLOT, 0, 5);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT, 0, 5); /* it changed its mind */
    assert_int_equal(rx.stats->bad_control, 5);
    assert_int_equal(rx_message_at(&rx, 0)->bytes, 2 * SLOT);
    expect_no_effect();
}

/* The first announcement decides. */
static void test_tags_that_contradict(void **state)
{
    (void)state;
    begin_message(2 * SLOT);
    announce_lengths(0, 0, (uint32_t)SLOT, 2 * SLOT, 0, 5);
    announce_tagged(0, 0, (uint32_t)SLOT, 2 * SLOT, TAG + 1, 3, 5);
    announce_tagged(1, 0, (uint32_t)SLOT, 2 * SLOT, 0, 3, 5);
    assert_int_equal(rx.stats->bad_control, 2);
    assert_int_equal(fake.messages, 0); /* its machine gets nothing of them */
    expect_no_effect();
    for (int i = 0; i < 2; i++) {
        fake_next(LH_ACTION_COMPLETE);
        announce_lengths((uint32_t)i, 0, (uint32_t)SLOT, 2 * SLOT, 3, 6);
        (void)step_at(7);
    }
    assert_true(rx.effects->finished->result.tag == TAG);
    expect_finished(0, 0);
}

/* What has arrived is answered by DONE, however long ago. */
static void test_of_a_segment_that_is_over(void **state)
{
    (void)state;
    begin_message(2 * SLOT);
    announce_lengths(0, 0, (uint32_t)SLOT, 2 * SLOT, 0, 1);
    fake_next(LH_ACTION_COMPLETE);
    (void)step_at(2);
    fake_next(LH_ACTION_COMPLETE);
    (void)step_at(3);
    announce_lengths(0, 0, (uint32_t)SLOT, 2 * SLOT, 0, 4);
    assert_int_equal(fake_last(TRANSFER_DONE)->body.done.segment, 0);
    assert_true(rx.segment_oldest > 0);
    announce_lengths(0, 0, (uint32_t)SLOT, 2 * SLOT, 0, 5);
    assert_int_equal(qp.message_count, 2);
}

static void test_machine_messages_come_with_them(void **state)
{
    (void)state;
    begin_message(SLOT);
    announce_lengths(0, 0, 9, 9, 3, 5);
    assert_int_equal(fake.messages, 1);
    assert_true(fake.receiver_view.length_known && fake.receiver_view.chunks == 1);
    announce_lengths(0, 0, 9, 9, 0, 6);
    assert_int_equal(fake.messages, 1);
}

static void test_a_broken_data_path(void **state)
{
    (void)state;
    begin_message(SLOT);
    for (lh_time i = 0; i < 40 && !rx.effects->failure; i++)
        announce_lengths(0, 0, (uint32_t)SLOT, SLOT, 1, i * LH_NS_PER_S);
    assert_int_equal(rx.effects->failure, LH_EPATH);
    /* Eight gaps are silence enough. The machine gets nothing of the ninth announcement. */
    assert_int_equal(fake.messages, 8);
    free(rx.effects->reason);
    *rx.effects = (struct effects){0};
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_a_shorter_message),
        RX_TEST(test_an_empty_message),
        RX_TEST(test_too_long),
        RX_TEST(test_packets_beyond_the_length),
        RX_TEST(test_lengths_that_cannot_be),
        RX_TEST(test_tags_that_contradict),
        RX_TEST(test_of_a_segment_that_is_over),
        RX_TEST(test_machine_messages_come_with_them),
        RX_TEST(test_a_broken_data_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
