/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_sender.h"

#include "unit/message/tx_part.h"

static void done(uint32_t segment, uint32_t below, uint64_t bitmap, lh_time now)
{
    const struct transfer_message message = {
        .kind = TRANSFER_DONE, .body.done = {.segment = segment, .below = below, .bitmap = bitmap}};
    sender_on_done(&tx, &message, now);
}

static void test_limits_of_a_message(void **state)
{
    (void)state;
    assert_int_equal(sender_check(&tx, TRANSFER_ROOM_MAX + 1), -LH_EINVAL);
    assert_int_equal(sender_check(&tx, SLOT * INT32_MAX), -LH_EINVAL);
    assert_int_equal(sender_check(&tx, SLOT * INT32_MAX - 1), 0);
    tx.next = tx.oldest + MESSAGES_MAX;
    assert_int_equal(sender_check(&tx, 1), -LH_EAGAIN);
    tx.next--;
    assert_int_equal(sender_check(&tx, 1), 0);
    tx.next = tx.oldest;
}

static void test_a_message_from_clear_to_send_to_done(void **state)
{
    (void)state;
    send_bytes(2 * SLOT, 3);
    assert_int_equal(step_at(3), LH_TIME_NEVER);
    assert_true(tx.cts_wanted && !sender_has_work(&tx));
    clear_segment(0, 0);
    clear_segment(0, 1);
    assert_true(sender_has_work(&tx));
    fake_next_chunks(0, 4);
    fake.next.next_ns = 5000;
    assert_int_equal(step_at(10), 5000);
    assert_int_equal(qp.chunk_count, 1);
    fake_next_chunks(0, 4);
    tx_segment_at(&tx, 1)->needs_step = true;
    (void)step_at(11);
    assert_int_equal(qp.chunk_count, 2);
    done(0, 0, 0, 20);
    expect_no_effect();
    done(1, 1, 0, 30);
    assert_int_equal(tx.effects->finished->result.started_ns, 10);
    assert_int_equal(tx.effects->finished->result.ended_ns, 30);
    expect_finished(0, 0);
    assert_int_equal(tx.in_flight_bytes, 0);
}

/* DONE names the newest, all below, and 64 from there on. */
static void test_done_covers_below_and_bitmap(void **state)
{
    (void)state;
    tx.segment_oldest = tx.segment_next = qp.cts_head = qp.cts_tail = UINT32_MAX - 1;
    send_bytes(6 * SLOT, 0);
    for (uint32_t i = 0; i < 6; i++)
        clear_segment(0, i);
    (void)step_at(0);
    assert_int_equal(tx.segment_next, 4);
    done(3, 0, 0x2, 1); /* 3; UINT32_MAX - 1 and UINT32_MAX; 1 */
    assert_true(tx_segment_at(&tx, 0)->active && tx_segment_at(&tx, 2)->active);
    assert_false(tx_segment_at(&tx, 1)->active || tx_segment_at(&tx, 3)->active);
    assert_int_equal(tx.segment_oldest, 0);
    assert_int_equal(tx_message_at(&tx, 0)->done, 4);
    done(3, 0, 0x2, 1); /* doubled */
    assert_int_equal(tx_message_at(&tx, 0)->done, 4);
}

static void test_machine_timer(void **state)
{
    (void)state;
    send_bytes(1, 0);
    clear_segment(0, 0);
    fake.next.next_ns = 700;
    (void)step_at(0);
    assert_int_equal(fake.steps, 1);
    (void)step_at(699);
    assert_int_equal(fake.steps, 1);
    (void)step_at(700);
    assert_int_equal(fake.steps, 2);
}

/* A machine that allows for the wait in the queue, which does not move. */
static void test_a_timer_behind_a_queue_that_stands(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    qp.queued_bytes = 4 * CHUNK;
    fake_next_chunks(0, 4);
    fake.next.next_ns = OVERDUE_NS;
    (void)step_at(0);
    fake.next.next_ns = OVERDUE_NS + 100;
    assert_int_equal(step_at(OVERDUE_NS), OVERDUE_NS + 100);
    assert_int_equal(fake.steps, 2);
    /* Nobody is woken for it any more, and all else goes on. */
    lh_time lengths_ns = step_at(OVERDUE_NS + 100);
    assert_int_equal(lengths_ns, tx_segment_at(&tx, 0)->lengths_at);
    assert_true(lengths_ns >= 2 * OVERDUE_NS);
    (void)step_at(lengths_ns);
    assert_true(fake.steps == 2 && !sender_has_work(&tx));
    /* Until some of it has left. */
    qp.queued_bytes = CHUNK;
    assert_false(sender_has_work(&tx)); /* they were posted together, and wait as the last of them does */
    qp.queued_bytes = 0;
    assert_true(sender_has_work(&tx));
    (void)step_at(lengths_ns);
    assert_true(fake.steps == 3 && !sender_has_work(&tx));
}

/* Another worker lets it out after one segment was looked at, and before the machine of the next one sees it.
 */
static void test_a_queue_that_leaves_in_a_step(void **state)
{
    (void)state;
    send_bytes(2 * SLOT, 0);
    clear_segment(0, 0);
    clear_segment(0, 1);
    qp.queued_bytes = 4 * CHUNK;
    fake_next_chunks(0, 4);
    fake.next.next_ns = OVERDUE_NS;
    (void)step_at(0);
    fake.next.next_ns = OVERDUE_NS + 100;
    (void)step_at(OVERDUE_NS);
    tx_segment_at(&tx, 1)->needs_step = true;
    qp.looks = 1;
    assert_int_equal(step_at(OVERDUE_NS + 100), OVERDUE_NS + 100);
    uint32_t steps = fake.steps;
    assert_true(step_at(OVERDUE_NS + 100) > OVERDUE_NS + 100);
    assert_int_equal(fake.steps, steps + 1);
}

/* What happens to its segment it learns of at once. */
static void test_an_event_behind_a_queue_that_stands(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    qp.queued_bytes = 4 * CHUNK;
    fake_next_chunks(0, 4);
    fake.next.next_ns = OVERDUE_NS;
    (void)step_at(0);
    fake.next.next_ns = OVERDUE_NS + 100;
    (void)step_at(OVERDUE_NS);
    tx_segment_at(&tx, 0)->needs_step = true;
    fake.next.next_ns = OVERDUE_NS + 200;
    (void)step_at(OVERDUE_NS + 100);
    assert_int_equal(fake.steps, 3);
}

/* When it said was a multiple of a round trip that was too long. */
static void test_a_round_trip_that_shrinks(void **state)
{
    (void)state;
    send_bytes(1, 0);
    clear_segment(0, 0);
    fake.next.next_ns = LH_TIME_NEVER;
    qp.path.rtt_ns = 1000;
    (void)step_at(0);
    qp.path.rtt_ns = 500;
    (void)step_at(1);
    assert_int_equal(fake.steps, 1);
    qp.path.rtt_ns = 499;
    (void)step_at(2);
    (void)step_at(3);
    assert_int_equal(fake.steps, 2);
}

static void test_lengths_timer(void **state)
{
    (void)state;
    send_bytes(1, 0);
    clear_segment(0, 0);
    assert_int_equal(step_at(0), OVERDUE_NS);
    assert_int_equal(qp.message_count, 1);
    (void)step_at(OVERDUE_NS - 1);
    assert_int_equal(qp.message_count, 1);
    assert_int_equal(step_at(OVERDUE_NS), 2 * OVERDUE_NS);
    assert_int_equal(qp.message_count, 2);
}

/* The window is full: the machine steps again when it opens. */
static void test_a_limited_machine_steps_when_the_window_opens(void **state)
{
    (void)state;
    attr.window_bytes = 2 * CHUNK;
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    fake_next_chunks(0, 2);
    (void)step_at(0);
    assert_true(tx.window_limited && !sender_has_work(&tx));
    (void)step_at(1);
    assert_int_equal(fake.steps, 1);
    tx.in_flight_bytes = CHUNK;
    tx_segment_at(&tx, 0)->in_flight_chunks = 1;
    assert_true(sender_has_work(&tx));
    (void)step_at(2);
    assert_int_equal(fake.steps, 2);
    assert_int_equal(fake.sender_view.budget_chunks, 1);
}

/* What a blocked list is to send counts as in flight, and may be the last that the window takes. */
static void test_a_list_is_blocked_when_the_window_is_full(void **state)
{
    (void)state;
    attr.window_bytes = 4 * CHUNK;
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    fake_next_chunks(0, 2);
    fake_next_chunks(2, 2);
    qp.queue_room = 1;
    (void)step_at(0);
    assert_non_null(tx.blocked);
    qp.queued_bytes = (uint64_t)1 << 30;
    assert_false(sender_has_work(&tx));
    qp.queued_bytes = 0;
    qp.queue_full = false;
    assert_true(sender_has_work(&tx));
    (void)step_at(1);
    assert_null(tx.blocked);
    assert_int_equal(qp.chunk_count, 2);
}

/* Half the receiver's buffer on a short path; what a fast link holds on a long one. */
static void test_window_of_a_path(void **state)
{
    (void)state;
    attr.window_bytes = (uint64_t)1 << 40;
    qp.path.peer_receive_buffer_bytes = 1000;
    qp.path.rtt_minimum_ns = 0;
    (void)step_at(0);
    assert_int_equal(tx.window_bytes, 500);
    qp.path.rtt_minimum_ns = LH_NS_PER_MS; /* of 100 Gbit/s */
    (void)step_at(0);
    assert_int_equal(tx.window_bytes, 12500000);
    attr.window_bytes = 4096;
    (void)step_at(0);
    assert_int_equal(tx.window_bytes, 4096);
}

static void test_machine_messages_reach_the_living_alone(void **state)
{
    (void)state;
    const uint8_t data[] = {1};
    struct transfer_message message = {.kind = TRANSFER_TO_SENDER,
                                       .body.to_sender = {.scheme = data, .scheme_bytes = 1}};
    send_bytes(1, 0);
    clear_segment(0, 0);
    (void)step_at(0);
    sender_on_to_sender(&tx, &message, 5);
    assert_int_equal(fake.messages, 1);
    assert_true(tx_segment_at(&tx, 0)->needs_step);
    message.body.to_sender.segment = SLOTS; /* the same place, another segment */
    sender_on_to_sender(&tx, &message, 5);
    assert_int_equal(fake.messages, 1);
    sender_cancel(&tx, 0, 6);
    expect_finished(0, -LH_ECANCELED);
    message.body.to_sender.segment = 0;
    sender_on_to_sender(&tx, &message, 7);
    assert_int_equal(fake.messages, 1);
}

/* A list that was blocked may end its message when it goes on. */
static void test_a_blocked_list_that_fails(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    qp.queue_full = true;
    fake_next_chunks(0, 1);
    fake_next_fail(LH_EKEY);
    (void)step_at(0);
    assert_non_null(tx.blocked);
    qp.queue_full = false;
    (void)step_at(1);
    expect_finished(0, -LH_EKEY);
    assert_null(tx.blocked);
    assert_int_equal(qp.chunk_count, 1);
}

static void test_a_machine_that_fails_ends_all_segments(void **state)
{
    (void)state;
    send_bytes(2 * SLOT, 0);
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    clear_segment(0, 1);
    clear_segment(1, 0);
    (void)step_at(0);
    fake_next_fail(LH_EKEY);
    tx_segment_at(&tx, 0)->needs_step = true;
    (void)step_at(1);
    expect_finished(0, -LH_EKEY);
    assert_false(tx_segment_at(&tx, 1)->active);
    assert_true(tx_segment_at(&tx, 2)->active);
}

static void test_the_end_of_everything(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++)
        send_bytes(SLOT, 0);
    sender_cancel(&tx, 1, 0);
    expect_finished(1, -LH_ECANCELED);
    sender_end_all(&tx, -LH_EPEER, 9);
    assert_ptr_equal(tx.effects->finished, request_of(0));
    assert_ptr_equal(tx.effects->last, request_of(2));
    tx.effects->finished = NULL;
}

/* A peer may send what it likes to a side that has no memory at all. */
static void test_idle_without_memory(void **state)
{
    (void)state;
    static const uint8_t word[4];
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    step_at(0);
    sender_give_back(&tx); /* a message is there: nothing is given back */
    assert_non_null(tx.segments);
    done(0, 1, 0, 10);
    expect_finished(0, 0);
    sender_give_back(&tx);
    assert_null(tx.segments);
    assert_int_equal(store_bytes(tx.store), 0);
    const struct transfer_message late = {
        .kind = TRANSFER_TO_SENDER,
        .body.to_sender = {.segment = 0, .scheme = word, .scheme_bytes = sizeof word}};
    sender_on_to_sender(&tx, &late, 20);
    done(5, 3, UINT64_MAX, 20);
    clear_coded(0, 0, 1, true); /* parity of what is over is passed by */
    assert_int_equal(step_at(20), LH_TIME_NEVER);
    assert_int_equal(tx.segment_next, 2);
    assert_false(sender_has_work(&tx));
    assert_int_equal(store_bytes(tx.store), 0);
    tx.store->limit_bytes = 0;
    assert_int_equal(sender_hold(&tx, 1), -LH_ENOMEM);
    tx.store->limit_bytes = UINT64_MAX;
    assert_int_equal(sender_hold(&tx, 1), 0);
    send_bytes(SLOT, 30);
    expect_no_effect();
}

/* It starts once there is memory for its machine. */
static void test_a_segment_waits_for_memory(void **state)
{
    (void)state;
    send_bytes(SLOT, 0);
    clear_segment(0, 0);
    tx.store->limit_bytes = store_bytes(tx.store);
    step_at(0);
    assert_true(tx.start_refused);
    assert_int_equal(tx.segment_next, 0);
    tx.store->limit_bytes = UINT64_MAX;
    step_at(10);
    assert_false(tx.start_refused);
    assert_int_equal(tx.segment_next, 1);
    done(0, 1, 0, 20);
    expect_finished(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST(test_limits_of_a_message),
        TX_TEST(test_a_message_from_clear_to_send_to_done),
        TX_TEST(test_done_covers_below_and_bitmap),
        TX_TEST(test_machine_timer),
        TX_TEST(test_a_timer_behind_a_queue_that_stands),
        TX_TEST(test_a_queue_that_leaves_in_a_step),
        TX_TEST(test_an_event_behind_a_queue_that_stands),
        TX_TEST(test_a_round_trip_that_shrinks),
        TX_TEST(test_lengths_timer),
        TX_TEST(test_a_limited_machine_steps_when_the_window_opens),
        TX_TEST(test_a_list_is_blocked_when_the_window_is_full),
        TX_TEST(test_window_of_a_path),
        TX_TEST(test_machine_messages_reach_the_living_alone),
        TX_TEST(test_a_blocked_list_that_fails),
        TX_TEST(test_a_machine_that_fails_ends_all_segments),
        TX_TEST(test_the_end_of_everything),
        TX_TEST(test_idle_without_memory),
        TX_TEST(test_a_segment_waits_for_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
