/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/matching.h"

#include <stdlib.h>

#include "unit/message/rx_part.h"

static struct matching *matching_of_part(void)
{
    static struct matching matching;
    matching = (struct matching){.rx = &rx};
    return &matching;
}

static void take_held(enum early_state state, uint64_t bytes)
{
    const struct early_message held = {.state = state, .bytes = bytes, .tag = TAG};
    arrived_take_held(matching_of_part(), rx_message_at(&rx, 0), &held, 5);
}

static void unit_arrives(uint8_t unit, uint64_t bytes, uint64_t tag)
{
    static const uint8_t data[EAGER_UNIT_BYTES];
    uint64_t left = bytes - (uint64_t)unit * EAGER_UNIT_BYTES;
    const struct eager_entry entry = {.bytes = bytes,
                                      .unit = unit,
                                      .tag = tag,
                                      .data = data,
                                      .data_bytes =
                                          left < EAGER_UNIT_BYTES ? (uint32_t)left : EAGER_UNIT_BYTES};
    arrived_unit(matching_of_part(), rx_message_at(&rx, 0), &entry, 5);
}

/* Its receive chose it by its tag, and is too short. */
static void test_a_long_message_that_does_not_fit(void **state)
{
    (void)state;
    const uint64_t capacity = 4 * EAGER_MAX;
    recv_bytes(capacity, 0);
    take_held(EARLY_LONG, capacity + 1);
    assert_true(rx.effects->finished->result.tag == TAG);
    expect_finished(0, -LH_ETRUNCATED);
    assert_int_equal(fake_last(TRANSFER_REFUSE)->body.verdict.error, LH_ETRUNCATED);
}

static void test_a_long_message_that_fits(void **state)
{
    (void)state;
    const uint64_t capacity = 4 * EAGER_MAX;
    recv_bytes(capacity, 0);
    take_held(EARLY_LONG, capacity);
    expect_no_effect();
    assert_int_equal(qp.message_count, 0);
    assert_int_equal(rx_message_at(&rx, 0)->bytes, capacity);
    assert_true(rx_message_at(&rx, 0)->is_long);
}

/* No long message fits a receive of a few bytes, whatever its sender announced. */
static void test_a_long_message_of_few_bytes(void **state)
{
    (void)state;
    recv_bytes(eager_small_max(attr.mtu_bytes), 0);
    take_held(EARLY_LONG, 1);
    expect_finished(0, -LH_ETRUNCATED);
}

/* What was posted for it is given back with its first unit, though the others are to come. */
static void test_a_small_message_frees_its_segment(void **state)
{
    (void)state;
    attr.slot_bytes = 64 * CHUNK;
    attr.mtu_bytes = 1024;
    recv_bytes(attr.slot_bytes, 0);
    (void)step_at(0);
    assert_int_equal(rx_message_at(&rx, 0)->posted, 1);
    assert_false(qp.recvs[0].completed);
    unit_arrives(1, EAGER_UNIT_BYTES + 1, TAG);
    assert_true(qp.recvs[0].completed);
    assert_int_equal(segment_at(0)->state, SEGMENT_UNNEEDED);
    expect_no_effect();
    unit_arrives(1, EAGER_UNIT_BYTES + 1, TAG); /* again: nothing new */
    expect_no_effect();
    unit_arrives(0, EAGER_UNIT_BYTES + 1, TAG);
    assert_int_equal(rx.effects->finished->result.bytes, EAGER_UNIT_BYTES + 1);
    expect_finished(0, 0);
    assert_int_equal(part_stats.bad_control, 0);
}

/* Units of a message that contradict each other, in its length or its tag. */
static void test_units_that_contradict(void **state)
{
    (void)state;
    attr.slot_bytes = 64 * CHUNK;
    recv_bytes(attr.slot_bytes, 0);
    unit_arrives(0, EAGER_UNIT_BYTES + 1, TAG);
    unit_arrives(1, EAGER_UNIT_BYTES + 2, TAG);
    assert_int_equal(part_stats.bad_control, 1);
    unit_arrives(1, EAGER_UNIT_BYTES + 1, TAG + 1);
    assert_int_equal(part_stats.bad_control, 2);
    expect_no_effect();
    arrived_long(matching_of_part(), rx_message_at(&rx, 0), 5); /* nor is it a long one now */
    assert_int_equal(part_stats.bad_control, 3);
    assert_false(rx_message_at(&rx, 0)->is_long);
    unit_arrives(1, EAGER_UNIT_BYTES + 1, TAG);
    expect_finished(0, 0);
}

static void test_a_small_message_that_does_not_fit(void **state)
{
    (void)state;
    recv_bytes(9, 0);
    unit_arrives(0, 10, TAG);
    assert_true(rx.effects->finished->result.tag == TAG);
    expect_finished(0, -LH_ETRUNCATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RX_TEST(test_a_long_message_that_does_not_fit),
        RX_TEST(test_a_long_message_that_fits),
        RX_TEST(test_a_long_message_of_few_bytes),
        RX_TEST(test_a_small_message_frees_its_segment),
        RX_TEST(test_units_that_contradict),
        RX_TEST(test_a_small_message_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
