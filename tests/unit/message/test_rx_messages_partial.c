/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_messages.h"

#include <stdlib.h>

#include "message/rx_receiver.h"
#include "schemes/bounded_scheme.h"
#include "unit/message/rx_part.h"

static int begin(void **state)
{
    (void)state;
    int error = rx_part_begin_with(&bounded_scheme, 0, false);
    assert_int_equal(bounded_scheme.parse("deadline=1ms", rx.choice.params), 0);
    memset(buffer, 0xa7, sizeof buffer);
    return error;
}

static void recv_now(uint64_t capacity)
{
    *request_of(rx.next) = (struct message_request){0};
    recv_bytes(capacity, 0);
    (void)step_at(0);
}

/* Chunks 1 and 2 of the second segment come, and nothing of the first. */
static void end_with_two_chunks(void)
{
    recv_now(2 * SLOT);
    announce_lengths(0, 0, (uint32_t)SLOT, 2 * SLOT - 5, 0, 1);
    fake_arrive(1, 1);
    fake_arrive(1, 2);
    arrivals_poll(&rx, 2);
    decoding_segment_partial(&rx, segment_at(0), LH_END_LAST, 3);
    expect_no_effect();
    decoding_segment_partial(&rx, segment_at(1), LH_END_PREEMPTED, 3);
    expect_finished(0, 0);
}

static void test_bits_of_all_segments(void **state)
{
    (void)state;
    end_with_two_chunks();
    const struct message_request *request = request_of(0);
    assert_int_equal(request->result.missing_bytes, 2 * SLOT - 5 - 2 * CHUNK);
    assert_int_equal(request->delivery.end, LH_END_PREEMPTED);
    assert_int_equal(request->delivery.packet_bytes, CHUNK);
    assert_int_equal(request->delivery.arrived[0], 3u << 5);
    assert_int_equal(buffer[0], 0xa7);
    assert_int_equal(rx.stats->messages_partial, 1);
    assert_int_equal(rx.stats->messages_preempted, 1);
    assert_int_equal(rx.stats->messages_received, 0);
    free(request->delivery.arrived);
}

static void test_zeroes_what_is_missing(void **state)
{
    (void)state;
    attr.zero_missing = true;
    end_with_two_chunks();
    for (size_t i = 0; i < 2 * SLOT; i++) {
        bool arrived = i >= SLOT + CHUNK && i < SLOT + 3 * CHUNK, behind = i >= 2 * SLOT - 5;
        assert_int_equal(buffer[i], arrived || behind ? 0xa7 : 0);
    }
    free(request_of(0)->delivery.arrived);
}

/* What came between the look and the close is there: nothing is missing, and the message counts as whole. */
static void test_nothing_missing_is_whole(void **state)
{
    (void)state;
    recv_now(SLOT);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT, 0, 1);
    for (uint32_t chunk = 0; chunk < 4; chunk++)
        fake_arrive(0, chunk);
    decoding_segment_partial(&rx, segment_at(0), LH_END_LAST, 3);
    expect_finished(0, 0);
    assert_int_equal(request_of(0)->delivery.end, LH_END_WHOLE);
    assert_null(request_of(0)->delivery.arrived);
    assert_int_equal(rx.stats->messages_received, 1);
}

static void test_no_memory_for_bits(void **state)
{
    (void)state;
    rx.store->limit_bytes = store_bytes(rx.store);
    recv_now(SLOT);
    assert_int_equal(rx.segment_next, 0);
    assert_true(rx.post_refused); /* it is tried again */
    rx.store->limit_bytes = UINT64_MAX;
    (void)step_at(1);
    assert_int_equal(rx.segment_next, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, rx_part_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_bits_of_all_segments),
        TEST(test_zeroes_what_is_missing),
        TEST(test_nothing_missing_is_whole),
        TEST(test_no_memory_for_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
