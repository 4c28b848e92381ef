/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_messages.h"

#include "unit/message/tx_part.h"

static struct tx_message *add(uint64_t bytes)
{
    const struct tx_content content = {.buffer = {payload, LKEY, NULL}, .bytes = bytes, .tag = TAG};
    return tx_add_message(&tx, request_of(tx.next), &content);
}

static struct tx_segment *open_segment(uint32_t sequence, uint32_t message)
{
    struct tx_segment *segment = tx_segment_at(&tx, sequence);
    segment->active = true;
    segment->sequence = sequence;
    segment->message = message;
    tx.segment_next = sequence + 1;
    return segment;
}

static void test_ends_with_its_last_segment(void **state)
{
    (void)state;
    struct tx_message *message = add(2 * SLOT);
    message->segments = 2;
    tx_end_segment(&tx, open_segment(0, 0), 10);
    expect_no_effect();
    assert_int_equal(tx.segment_oldest, 1);
    tx_end_segment(&tx, open_segment(1, 0), 20);
    assert_int_equal(tx.effects->finished->result.bytes, 2 * SLOT);
    assert_int_equal(tx.effects->finished->result.ended_ns, 20);
    assert_true(tx.effects->finished->result.tag == TAG);
    expect_finished(0, 0);
    assert_int_equal(tx.stats->messages_sent, 1);
    tx_retire(&tx);
    assert_true(tx.oldest == 1 && tx.current == 1);
}

/* The oldest that is not over holds the rest back. */
static void test_retires_in_order(void **state)
{
    (void)state;
    (void)add(1);
    struct tx_message *second = add(1);
    tx_end_message(&tx, second, -LH_EKEY, TX_OVER, 3);
    expect_finished(1, -LH_EKEY);
    assert_int_equal(tx.stats->messages_failed, 1);
    tx_retire(&tx);
    assert_int_equal(tx.oldest, 0);
    tx_end_message(&tx, tx_message_at(&tx, 0), -LH_EKEY, TX_CANCELING, 3);
    tx_retire(&tx);
    assert_int_equal(tx.oldest, 0);
    tx_message_at(&tx, 0)->state = TX_OVER;
    tx_retire(&tx);
    assert_int_equal(tx.oldest, 2);
    assert_int_equal(tx_message_at(&tx, 1)->state, TX_EMPTY);
}

static void test_an_early_end_closes_its_segments_alone(void **state)
{
    (void)state;
    (void)add(SLOT);
    (void)add(SLOT);
    struct tx_segment *own = open_segment(0, 0);
    struct tx_segment *other = open_segment(1, 1);
    own->in_flight_chunks = 2;
    tx.in_flight_bytes = 2 * CHUNK;
    tx_end_message(&tx, tx_message_at(&tx, 0), -LH_ECANCELED, TX_CANCELING, 1);
    expect_finished(0, -LH_ECANCELED);
    assert_false(own->active);
    assert_true(other->active);
    assert_int_equal(tx.in_flight_bytes, 0);
    assert_int_equal(tx.segment_oldest, 1);
}

/* An error that came ahead of lh_send stays with its number, over the end of the range, too. */
static void test_numbers_wrap(void **state)
{
    (void)state;
    tx.oldest = tx.next = tx.current = UINT32_MAX;
    tx_message_at(&tx, 0)->notice.error = LH_EKEY;
    assert_int_equal(add(1)->notice.error, 0);
    assert_int_equal(add(1)->notice.error, LH_EKEY);
    assert_int_equal(tx.next, 1);
    tx_end_message(&tx, tx_message_at(&tx, UINT32_MAX), 0, TX_OVER, 0);
    tx_end_message(&tx, tx_message_at(&tx, 0), 0, TX_OVER, 0);
    tx_retire(&tx);
    assert_true(tx.oldest == 1 && tx.current == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST(test_ends_with_its_last_segment),
        TX_TEST(test_retires_in_order),
        TX_TEST(test_an_early_end_closes_its_segments_alone),
        TX_TEST(test_numbers_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
