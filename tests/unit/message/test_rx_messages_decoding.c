/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx_messages.h"

#include "unit/message/rx_part.h"

/* A message of one segment of known length, of which the second chunk is lost; its parity came. */
static struct rx_segment *one_lost(void)
{
    recv_bytes(SLOT, 0);
    (void)step_at(0);
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT, 0, 1);
    memset(buffer, 0, SLOT);
    fake_arrive(0, 0);
    fake_arrive(0, 2);
    fake_arrive(0, 3);
    fake_arrive(1, 0);
    return segment_at(0);
}

static void test_a_whole_segment(void **state)
{
    (void)state;
    recv_bytes(SLOT, 0);
    (void)step_at(0);
    announce_lengths(0, 0, 5, 5, 0, 1);
    decoding_segment_done(&rx, segment_at(0), true, 9);
    assert_int_equal(rx.effects->finished->result.bytes, 5);
    expect_finished(0, 0);
    assert_true(qp.recvs[0].completed && rx.done.wanted);
    assert_int_equal(fake.decodes, 0);
}

static void test_decodes_at_once_without_threads(void **state)
{
    (void)state;
    struct rx_segment *segment = one_lost();
    decoding_segment_done(&rx, segment, false, 9);
    expect_finished(0, 0);
    assert_int_equal(buffer[CHUNK - 1], 0);
    assert_int_equal(buffer[CHUNK], 0xDD);
    assert_int_equal(buffer[2 * CHUNK], 0);
    assert_int_equal(rx.stats->chunks_recovered, 1);
    assert_int_equal(parity.in_use, 0);
}

static void use_threads(void)
{
    coder_destroy(coder);
    coder_threads_end(&coder_threads);
    coder_threads_init(&coder_threads, 2);
    rx.coder = coder = coder_create(&coder_threads, NULL);
    coder_bind(coder, &context, &qp);
}

/* The bitmaps are kept: the slot may be posted anew before the last job ran. */
static void test_results_may_come_later(void **state)
{
    (void)state;
    use_threads();
    struct rx_segment *segment = one_lost();
    decoding_segment_done(&rx, segment, false, 9);
    expect_no_effect();
    assert_true(qp.recvs[0].completed && qp.recvs[1].completed && rx.done.wanted);
    memset(qp.recvs[0].bitmap, 1, sizeof qp.recvs[0].bitmap);
    decoding_finish(&rx, 20);
    assert_int_equal(rx.effects->finished->result.ended_ns, 20);
    expect_finished(0, 0);
    assert_int_equal(buffer[CHUNK], 0xDD);
    assert_int_equal(parity.in_use, 0);
    decoding_finish(&rx, 21);
    expect_no_effect();
}

/* For one-sided writes: DONE means that the bytes are there, also to a sender that asks meanwhile. */
static void test_done_may_wait_until_all_is_placed(void **state)
{
    (void)state;
    use_threads();
    rx.placed_first = true;
    struct rx_segment *segment = one_lost();
    decoding_segment_done(&rx, segment, false, 9);
    assert_true(qp.recvs[0].completed && !rx.done.wanted && !done_is(&rx, segment));
    announce_lengths(0, 0, (uint32_t)SLOT, SLOT, 0, 1);
    assert_int_equal(qp.message_count, 0);
    decoding_finish(&rx, 20);
    assert_int_equal(buffer[CHUNK], 0xDD);
    expect_finished(0, 0);
    assert_true(rx.done.wanted);
}

/* What the sender was told to have arrived is handed over. */
static void test_a_message_that_is_canceled_meanwhile_is_whole(void **state)
{
    (void)state;
    use_threads();
    decoding_segment_done(&rx, one_lost(), false, 9);
    receiver_cancel(&rx, 0, 10);
    expect_finished(0, 0);
    assert_int_equal(qp.message_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_a_whole_segment),
        RX_TEST_CODED(test_decodes_at_once_without_threads),
        RX_TEST_CODED(test_results_may_come_later),
        RX_TEST_CODED(test_done_may_wait_until_all_is_placed),
        RX_TEST_CODED(test_a_message_that_is_canceled_meanwhile_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
