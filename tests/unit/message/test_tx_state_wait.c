/*
 * test_tx_state_wait.c - what the sending part waits for, each kind made once; and for how long.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "unit/message/tx_part.h"

#include "message/tx_state.h"

/* What it waits for as of now. */
static enum tx_wait wait_at(lh_time now)
{
    tx_wait_note(&tx, now);
    return tx.waits.now;
}

static void test_time_before_the_first_message_does_not_count(void **state)
{
    (void)state;
    assert_int_equal(wait_at(5), TX_WAIT_MESSAGE);
    assert_true(tx.waits.since_ns == 0);
    send_bytes(1, 10);
    assert_int_not_equal(wait_at(10), TX_WAIT_MESSAGE);
    assert_true(tx.waits.since_ns == 10);
    assert_true(tx.waits.ns[TX_WAIT_MESSAGE] == 0);
}

static void test_a_clear_to_send(void **state)
{
    (void)state;
    send_bytes(1, 1);
    (void)step_at(1);
    assert_int_equal(wait_at(1), TX_WAIT_ACKNOWLEDGEMENT);
    assert_int_equal(wait_at(1 + RTT_NS), TX_WAIT_ACKNOWLEDGEMENT);
    assert_int_equal(wait_at(2 + RTT_NS), TX_WAIT_RECEIVE);
}

static void test_the_sdr_layer_then_the_acknowledgement_then_the_next_message(void **state)
{
    (void)state;
    send_bytes(CHUNK, 1);
    clear_segment(0, 0);
    fake_next_chunks(0, 1);
    (void)step_at(1);
    qp.queued_bytes = CHUNK;
    assert_int_equal(wait_at(1), TX_WAIT_SDR);
    qp.queued_bytes = 0;
    assert_int_equal(wait_at(101), TX_WAIT_ACKNOWLEDGEMENT);
    sender_end_all(&tx, -LH_ECLOSED, 0);
    tx.effects->finished = NULL;
    tx.oldest = tx.next; /* as when it is retired */
    assert_int_equal(wait_at(1101), TX_WAIT_MESSAGE);
    assert_int_equal(wait_at(11101), TX_WAIT_MESSAGE);
    assert_true(tx.waits.ns[TX_WAIT_SDR] == 100);
    assert_true(tx.waits.ns[TX_WAIT_ACKNOWLEDGEMENT] == 1000);
    assert_true(tx.waits.ns[TX_WAIT_MESSAGE] == 10000);
}

static void test_the_window_or_the_peers_buffer(void **state)
{
    (void)state;
    attr.window_bytes = 2 * CHUNK;
    send_bytes(SLOT, 1);
    clear_segment(0, 0);
    fake_next_chunks(0, 2);
    (void)step_at(1);
    assert_int_equal(wait_at(1), TX_WAIT_WINDOW);
    attr.window_bytes = 4 * CHUNK; /* more than the peer's sockets hold */
    assert_int_equal(wait_at(2), TX_WAIT_BUFFER);
}

static void test_the_slots(void **state)
{
    (void)state;
    attr.window_bytes = 2 * SLOTS * SLOT;
    send_bytes((SLOTS + 1) * SLOT, 1);
    for (uint32_t i = 0; i < SLOTS; i++) {
        clear_segment(0, i);
        (void)step_at(1);
    }
    clear_segment(0, SLOTS);
    (void)step_at(1);
    assert_int_equal(tx.segment_next, SLOTS);
    assert_int_equal(wait_at(1), TX_WAIT_SLOTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST(test_time_before_the_first_message_does_not_count),
        TX_TEST(test_a_clear_to_send),
        TX_TEST(test_the_sdr_layer_then_the_acknowledgement_then_the_next_message),
        TX_TEST(test_the_window_or_the_peers_buffer),
        TX_TEST(test_the_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
