/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_messages.h"

#include "unit/message/rx_part.h"

static lh_time done_at(lh_time now)
{
    lh_time next = LH_TIME_NEVER;
    done_step(&rx, now, &next);
    return next;
}

/* Segments that are all done. */
static void places(uint32_t first, uint32_t count)
{
    rx.segment_oldest = first;
    rx.segment_next = first + count;
    for (uint32_t i = 0; i < count; i++)
        *segment_at(first + i) = (struct rx_segment){.state = SEGMENT_DONE, .sequence = first + i};
}

static void test_names_the_newest_all_below_and_a_bitmap(void **state)
{
    (void)state;
    places(UINT32_MAX - 1, 6);
    segment_at(UINT32_MAX)->state = SEGMENT_OPEN;
    segment_at(2)->state = SEGMENT_OPEN;
    done_note(&rx, 3);
    assert_int_equal(qp.message_count, 0); /* one for all that arrived in the step */
    (void)done_at(0);
    const struct transfer_message *sent = fake_last(TRANSFER_DONE);
    assert_int_equal(sent->body.done.segment, 3);
    assert_int_equal(sent->body.done.below, UINT32_MAX);
    assert_int_equal(sent->body.done.bitmap, 0x16); /* 0, 1 and 3 */
}

static void test_is_sent_three_more_times(void **state)
{
    (void)state;
    places(0, 1);
    done_note(&rx, 0);
    const lh_time first = RTT_NS / 64;
    assert_int_equal(done_at(0), first);
    assert_int_equal(done_at(first - 1), first);
    assert_int_equal(qp.message_count, 1);
    assert_int_equal(done_at(first), first + RTT_NS / 8);
    assert_int_equal(qp.message_count, 2);
    assert_int_equal(done_at(first + RTT_NS / 8), first + 2 * (RTT_NS / 8));
    assert_int_equal(done_at(first + 2 * (RTT_NS / 8)), LH_TIME_NEVER);
    assert_int_equal(qp.message_count, 4);
    assert_int_equal(done_at(LH_TIME_NEVER - 1), LH_TIME_NEVER);
    assert_int_equal(qp.message_count, 4);
}

static void test_before_a_round_trip_was_measured(void **state)
{
    (void)state;
    qp.path = (struct lh_sdr_path){0};
    places(0, 1);
    done_note(&rx, 0);
    assert_int_equal(done_at(7), 7 + 100 * LH_NS_PER_MS);
}

static void test_the_last_of_a_connection(void **state)
{
    (void)state;
    assert_int_equal(done_last(&rx).body.done.segment, UINT32_MAX); /* nothing arrived: never sent */
    places(0, 2);
    done_note(&rx, 1);
    assert_int_equal(done_last(&rx).body.done.segment, 1);
    assert_int_equal(done_last(&rx).body.done.below, 2);
    rx.segment_oldest = rx.segment_next = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_names_the_newest_all_below_and_a_bitmap),
        RX_TEST(test_is_sent_three_more_times),
        RX_TEST(test_before_a_round_trip_was_measured),
        RX_TEST(test_the_last_of_a_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
