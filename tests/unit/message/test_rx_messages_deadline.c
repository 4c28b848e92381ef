/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_messages.h"

#include <stdlib.h>

#include "message/rx_receiver.h"
#include "schemes/bounded_scheme.h"
#include "unit/message/rx_part.h"

#define DEADLINE LH_NS_PER_MS

static int begin(void **state)
{
    (void)state;
    int error = rx_part_begin_with(&bounded_scheme, 0, false);
    assert_int_equal(bounded_scheme.parse("deadline=1ms", rx.choice.params), 0);
    return error;
}

/* lh_recv, as requests.c does it. */
static void recv_at(uint64_t capacity, lh_time now)
{
    *request_of(rx.next) = (struct message_request){.result.started_ns = now};
    recv_bytes(capacity, now);
    rx_retire(&rx);
}

static void expect_end(uint32_t message, uint64_t bytes, uint64_t missing, enum lh_end end)
{
    const struct message_request *request = request_of(message);
    expect_finished(message, 0);
    assert_int_equal(request->result.bytes, bytes);
    assert_int_equal(request->result.missing_bytes, missing);
    assert_int_equal(request->delivery.end, end);
    free(request->delivery.arrived);
}

/* The second counts from the end of the first, or from its post. */
static void test_one_counts_at_a_time(void **state)
{
    (void)state;
    recv_at(SLOT, 100);
    recv_at(SLOT, 200);
    assert_int_equal(step_at(200), 100 + DEADLINE);
    (void)step_at(99 + DEADLINE);
    expect_no_effect();
    assert_int_equal(step_at(100 + DEADLINE), 100 + 2 * DEADLINE);
    expect_end(0, SLOT, SLOT, LH_END_DEADLINE);
    (void)step_at(100 + 2 * DEADLINE);
    expect_end(1, SLOT, SLOT, LH_END_DEADLINE);
    recv_at(SLOT, 10 * DEADLINE);
    (void)step_at(11 * DEADLINE - 1);
    expect_no_effect();
    (void)step_at(11 * DEADLINE);
    expect_end(2, SLOT, SLOT, LH_END_DEADLINE);
    assert_int_equal(rx.stats->deadline_hits, 3);
}

/* Posting may end the first after deadlines were looked at: the step returns the second's all the same. */
static void test_the_next_one_is_set_at_once(void **state)
{
    (void)state;
    lh_time next = LH_TIME_NEVER;
    recv_at(SLOT, 0);
    recv_at(SLOT, 0);
    assert_int_equal(step_at(0), DEADLINE);
    refuse_message(&rx, rx_message_at(&rx, 0), LH_ENOMEM, 500);
    deadline_on_posted(&rx, 500, &next);
    assert_int_equal(next, 500 + DEADLINE);
    expect_finished(0, -LH_ENOMEM);
    assert_int_equal(rx.automatic_deadline.nothing, 0); /* what was refused says nothing of the path */
}

/* The sender cannot know, so it is told until it answers. */
static void test_an_end_of_unknown_length_is_told(void **state)
{
    (void)state;
    recv_at(SLOT, 0);
    (void)step_at(0);
    (void)step_at(DEADLINE);
    expect_end(0, SLOT, SLOT, LH_END_DEADLINE);
    const struct transfer_message *sent = fake_last(TRANSFER_REFUSE);
    assert_int_equal(sent->body.verdict.message, 0);
    assert_int_equal(sent->body.verdict.error, 0);
    assert_int_equal(rx.refusing, 1);
    const struct transfer_message forget = {.kind = TRANSFER_FORGET, .body.verdict.message = 0};
    refuse_on_forget(&rx, &forget);
    assert_int_equal(rx.refusing, 0);
    assert_int_equal(rx.oldest, 1);
}

/* Of what has come, the bytes are counted; of a message of a known length whose segments are all posted, DONE
 * says enough. */
static void test_what_came_counts(void **state)
{
    (void)state;
    recv_at(SLOT, 0);
    (void)step_at(0);
    announce_lengths(0, 0, (uint32_t)SLOT - 7, SLOT - 7, 0, 1);
    fake_arrive(0, 1);
    arrivals_poll(&rx, 2);
    (void)step_at(2);
    (void)step_at(DEADLINE);
    assert_int_equal(rx.refusing, 0);
    expect_end(0, SLOT - 7, SLOT - 7 - CHUNK, LH_END_DEADLINE);
    assert_int_equal(rx.stats->missing_bytes, SLOT - 7 - CHUNK);
    (void)announce_at(DEADLINE);
    (void)fake_last(TRANSFER_DONE);
    (void)step_at(DEADLINE);
    assert_int_equal(rx.segment_oldest, 1);
}

/* More segments than places: those that were never posted are not waited for. */
static void test_segments_that_were_not_posted(void **state)
{
    (void)state;
    recv_at(40 * SLOT, 0);
    recv_at(SLOT, 0);
    (void)step_at(0);
    assert_int_equal(rx.segment_next, SLOTS);
    fake_arrive(0, 0);
    arrivals_poll(&rx, 1);
    (void)step_at(DEADLINE);
    assert_int_equal(rx.refusing, 1);
    expect_end(0, 40 * SLOT, 40 * SLOT - CHUNK, LH_END_DEADLINE);
    (void)step_at(DEADLINE);
    assert_int_equal(segment_at(SLOTS)->message, 1);
}

static void test_small_receives_have_none(void **state)
{
    (void)state;
    rx.eager = true;
    attr.mtu_bytes = 1024;
    recv_at(CHUNK, 0);
    assert_int_equal(step_at(0), LH_TIME_NEVER);
    (void)step_at(100 * DEADLINE);
    expect_no_effect();
}

static void test_a_peer_that_has_closed(void **state)
{
    (void)state;
    recv_at(SLOT, 0);
    recv_at(SLOT, 0);
    (void)step_at(0);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT, 0, 1);
    announce_lengths(1, 1, (uint32_t)SLOT, SLOT, 0, 1);
    fake_arrive(0, 0);
    arrivals_poll(&rx, 2);
    assert_true(deadline_waits(&rx));
    deadline_on_closed(&rx, 3);
    expect_end(0, SLOT, SLOT - CHUNK, LH_END_DEADLINE);
    assert_int_equal(rx_message_at(&rx, 1)->state,
                     RX_OPEN); /* nothing of it came: it fails with the connection */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, rx_part_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_one_counts_at_a_time),
        TEST(test_the_next_one_is_set_at_once),
        TEST(test_an_end_of_unknown_length_is_told),
        TEST(test_what_came_counts),
        TEST(test_segments_that_were_not_posted),
        TEST(test_small_receives_have_none),
        TEST(test_a_peer_that_has_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
