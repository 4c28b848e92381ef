/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_injector.h"

#include "unit/message/tx_part.h"

static struct tx_segment *begin_segment(void)
{
    send_bytes(SLOT + 10, 0);
    struct tx_segment *segment = tx_segment_at(&tx, 3);
    *segment = (struct tx_segment){.sequence = 3, .message = 0, .bytes = (uint32_t)SLOT};
    return segment;
}

static void test_lengths(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    to_receiver_lengths(&tx, segment, 100);
    const struct transfer_message *sent = fake_last(TRANSFER_TO_RECEIVER);
    assert_int_equal(sent->body.to_receiver.segment, 3);
    assert_int_equal(sent->body.to_receiver.segment_bytes, SLOT);
    assert_int_equal(sent->body.to_receiver.message_bytes, SLOT + 10);
    assert_int_equal(sent->body.to_receiver.scheme_bytes, 0);
    assert_true(sent->body.to_receiver.tag == TAG);
    assert_int_equal(segment->lengths_at, 100 + OVERDUE_NS);
}

/* Before a round trip was measured, 100 ms; what waits in the injection queue is added to either. */
static void test_lengths_wait_as_long_as_chunks_do(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    qp.path = (struct lh_sdr_path){0};
    queue_delay_on_posted(&tx.delay, 1, 0);
    to_receiver_lengths(&tx, segment, 5);
    assert_int_equal(segment->lengths_at, 5 + 100 * LH_NS_PER_MS + 5);
}

static void test_a_message_does_not_overtake_its_chunks(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    const uint8_t data[] = {1, 2, 3};
    tx.posted_bytes = 3 * CHUNK;
    qp.queued_bytes = CHUNK;
    to_receiver_scheme(&tx, segment, data, sizeof data, 9);
    to_receiver_send_held(&tx);
    assert_int_equal(qp.message_count, 0);
    assert_int_equal(segment->lengths_at, 9 + OVERDUE_NS);
    tx.posted_bytes += CHUNK; /* later chunks do not delay it */
    qp.queued_bytes = CHUNK + 1;
    to_receiver_send_held(&tx);
    assert_int_equal(qp.message_count, 0);
    qp.queued_bytes = CHUNK;
    to_receiver_send_held(&tx);
    const struct transfer_message *sent = fake_last(TRANSFER_TO_RECEIVER);
    assert_int_equal(sent->body.to_receiver.scheme_bytes, sizeof data);
    assert_true(sent->body.to_receiver.tag == TAG);
    assert_memory_equal(sent->body.to_receiver.scheme, data, sizeof data);
}

/* Where channels leave in any order, what was posted later may leave first. */
static void test_a_message_waits_for_all_channels(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    const uint8_t data[] = {1, 2, 3};
    tx.posted_bytes = CHUNK;
    qp.queued_bytes = CHUNK;
    to_receiver_scheme(&tx, segment, data, sizeof data, 9);
    tx.posted_bytes += CHUNK;
    qp.queued_bytes = CHUNK;
    qp.unsent_bytes = 2 * CHUNK; /* half of each */
    to_receiver_send_held(&tx);
    assert_int_equal(qp.message_count, 0);
    qp.unsent_bytes = CHUNK;
    to_receiver_send_held(&tx);
    assert_int_equal(qp.message_count, 1);
}

/* Nor one that waits; and with HELD_MAX of them the next is lost. */
static void test_held_messages_stay_in_order_and_are_bounded(void **state)
{
    (void)state;
    struct tx_segment *segment = begin_segment();
    tx.posted_bytes = CHUNK;
    tx.held_head = tx.held_tail = UINT32_MAX - 5; /* the ring's numbers wrap */
    qp.queued_bytes = 1;
    for (uint8_t i = 0; i < HELD_MAX + 1; i++)
        to_receiver_scheme(&tx, segment, &i, 1, 0);
    assert_int_equal(tx.held_head - tx.held_tail, HELD_MAX);
    qp.queued_bytes = 0;
    const uint8_t late = 200;
    to_receiver_scheme(&tx, segment, &late, 1, 0); /* the queue is empty, but others wait */
    assert_int_equal(qp.message_count, 0);
    to_receiver_send_held(&tx);
    assert_int_equal(qp.message_count, HELD_MAX);
    for (uint8_t i = 0; i < HELD_MAX; i++)
        assert_int_equal(qp.messages[i].body.to_receiver.scheme[0], i);
    to_receiver_scheme(&tx, segment, &late, 1, 0);
    assert_int_equal(fake_last(TRANSFER_TO_RECEIVER)->body.to_receiver.scheme[0], late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST(test_lengths),
        TX_TEST(test_lengths_wait_as_long_as_chunks_do),
        TX_TEST(test_a_message_does_not_overtake_its_chunks),
        TX_TEST(test_a_message_waits_for_all_channels),
        TX_TEST(test_held_messages_stay_in_order_and_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
