/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_injector.h"

#include "message/tx_sender.h"

#include "unit/message/tx_part.h"

static struct lh_sender_view view_of(uint32_t sequence)
{
    struct lh_sender_view view = {0};
    backlog_view(&tx, tx_segment_at(&tx, sequence), &view);
    return view;
}

/* Of two messages one is begun, whose machine injects nothing: its data waits, for others. */
static void test_what_is_still_to_come(void **state)
{
    (void)state;
    send_bytes(2 * SLOT, 1);
    send_bytes(SLOT, 1);
    assert_int_equal(tx.unstarted_bytes, 3 * SLOT);
    clear_coded(0, 0, 2, false);
    step_at(2);
    assert_int_equal(tx.unstarted_bytes, 2 * SLOT);
    assert_int_equal(tx.unsent_chunks, 4);
    struct lh_sender_view view = view_of(0);
    assert_int_equal(view.later_chunks, 8);
    assert_false(view.data_waits); /* its own does not count, and nothing else is cleared to be sent */
    clear_coded(0, 1, 2, false);
    assert_true(view_of(0).data_waits);
}

static void test_injected_chunks_count_once(void **state)
{
    (void)state;
    send_bytes(SLOT, 1);
    clear_coded(0, 0, 2, false);
    step_at(2);
    struct tx_segment *segment = tx_segment_at(&tx, 0);
    backlog_on_injected(&tx, segment, 3);
    backlog_on_injected(&tx, segment, 2); /* again */
    assert_true(segment->unsent == 1 && tx.unsent_chunks == 1);
    backlog_on_segment_over(&tx, segment);
    assert_int_equal(tx.unsent_chunks, 0);
}

static void test_an_early_end_leaves_nothing(void **state)
{
    (void)state;
    send_bytes(3 * SLOT, 1);
    clear_coded(0, 0, 2, false);
    step_at(2);
    sender_cancel(&tx, 0, 3);
    assert_true(tx.unsent_chunks == 0 && tx.unstarted_bytes == 0);
    tx.effects->finished = NULL;
}

/* Parity that waited is thought of again as soon as no data is left, and not before. */
static void test_parity_is_released(void **state)
{
    (void)state;
    lh_time next = LH_TIME_NEVER;
    send_bytes(2 * SLOT, 1);
    clear_coded(0, 0, 2, false);
    step_at(2);
    struct tx_segment *segment = tx_segment_at(&tx, 0);
    backlog_on_injected(&tx, segment, 4);
    clear_coded(0, 1, 2, false);
    assert_true(view_of(0).data_waits);
    segment->needs_step = false;
    backlog_release(&tx, 3, &next);
    assert_true(!segment->needs_step && next == LH_TIME_NEVER);
    tx.start_waits = true; /* there is no memory for it, say */
    backlog_release(&tx, 4, &next);
    assert_true(segment->needs_step && next == 4);
    assert_false(view_of(0).data_waits);
}

static void test_half_of_the_slots(void **state)
{
    (void)state;
    send_bytes(SLOT, 1);
    clear_coded(0, 0, 2, false);
    step_at(2);
    tx.segment_next = SLOTS / 2;
    assert_false(view_of(0).holds_up);
    tx.segment_next = SLOTS / 2 + 1;
    assert_true(view_of(0).holds_up);
    tx.segment_next = 1;
}

/* Clear-to-sends of parity, and those that are passed by, take places of the ring, too. */
static void test_any_place_holds_up(void **state)
{
    (void)state;
    send_bytes(SLOT, 1);
    send_bytes(SLOT, 1);
    send_bytes(SLOT, 1);
    clear_coded(0, 0, 2, false);
    clear_coded(1, 0, 2, false);
    clear_coded(1, 0, 2, true);
    clear_coded(2, 0, 2, false);
    step_at(2);
    step_at(3);
    struct tx_segment *segment = tx_segment_at(&tx, 0);
    assert_int_equal(tx.segment_next, SLOTS / 2);
    segment->needs_step = false;
    clear_coded(2, 0, 2, true);
    cts_use_parity(&tx);
    assert_int_equal(tx.segment_next, SLOTS / 2 + 1);
    assert_true(view_of(0).holds_up && segment->needs_step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST_CODED(test_what_is_still_to_come),       TX_TEST_CODED(test_injected_chunks_count_once),
        TX_TEST_CODED(test_an_early_end_leaves_nothing), TX_TEST_CODED(test_parity_is_released),
        TX_TEST_CODED(test_half_of_the_slots),           TX_TEST_CODED(test_any_place_holds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
