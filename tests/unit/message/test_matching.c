/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/matching.h"

#include <stdlib.h>

#include "message/requests.h"
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

/* ---- receives that choose --------------------------------------------------------------------------- */

#define CHOOSERS 6u
#define ROOM     100u

static struct lh_request choosers[CHOOSERS];

static struct matching *choosing(void)
{
    struct matching *m = matching_of_part();
    memset(choosers, 0, sizeof choosers);
    memset(buffer, 0, CHOOSERS * ROOM);
    attr.match_tags = true;
    assert_int_equal(matching_start(m, true), 0);
    return m;
}

/* What waits still has memory. */
static void no_choice(struct matching *m)
{
    matching_give_back(m);
    matching_end_all(m, -LH_ECLOSED, 9);
    rx.effects->finished = NULL;
}

static void choose(struct matching *m, uint32_t which, uint64_t tag, uint64_t ignore)
{
    const struct rx_receive receive = {.request = &choosers[which].part,
                                       .buffer = {buffer + which * ROOM, LKEY, NULL},
                                       .capacity = ROOM,
                                       .tag = tag,
                                       .ignore = ignore};
    assert_int_equal(matching_hold(m), 0);
    matching_recv(m, &receive, 3);
}

/* Of ten bytes, each of which is the message's number and 1. */
static void comes(struct matching *m, uint32_t number, uint64_t tag)
{
    uint8_t data[10];
    memset(data, (int)number + 1, sizeof data);
    const struct eager_entry entry = {
        .message = number, .bytes = sizeof data, .tag = tag, .data = data, .data_bytes = sizeof data};
    matching_on_entry(m, &entry, 4);
}

static void was_chosen(uint32_t which, uint32_t number, uint64_t tag)
{
    assert_ptr_equal(rx.effects->finished, &choosers[which].part);
    assert_null(rx.effects->finished->next);
    assert_int_equal(choosers[which].part.result.error, 0);
    assert_int_equal(choosers[which].part.result.bytes, 10);
    assert_true(choosers[which].part.result.tag == tag);
    assert_int_equal(choosers[which].message, number);
    for (uint32_t i = 0; i < ROOM; i++)
        assert_int_equal(buffer[which * ROOM + i], i < 10 ? number + 1 : 0);
    rx.effects->finished = NULL;
}

static void test_who_understands(void **state)
{
    (void)state;
    struct matching *m = matching_of_part();
    assert_int_equal(matching_start(m, false), 0);
    assert_false(rx.matched);
    assert_int_equal(matching_hold(m), 0);
    attr.match_tags = true;
    assert_int_equal(matching_start(m, false), -LH_EVERSION);
    assert_string_equal(lh_last_error(), "match_tags: unsupported by the peer's release (update it)");
    assert_int_equal(matching_start(m, true), 0);
    assert_true(rx.matched && m->on);
}

static void test_a_message_chooses_by_its_tag(void **state)
{
    (void)state;
    struct matching *m = choosing();
    choose(m, 0, 1, 0);
    choose(m, 1, 2, 0);
    choose(m, 2, 2, 0);
    comes(m, 0, 2);
    was_chosen(1, 0, 2); /* the first that fits */
    comes(m, 1, 1);
    was_chosen(0, 1, 1);
    comes(m, 1, 1); /* again */
    expect_no_effect();
    comes(m, 2, 3);
    expect_no_effect();
    assert_int_equal(m->unmatched, 1);
    comes(m, 3, 2); /* it does not wait for that */
    was_chosen(2, 3, 2);
    choose(m, 3, 0, UINT64_MAX);
    was_chosen(3, 2, 3);
    assert_int_equal(m->unmatched, 0);
    assert_int_equal(part_stats.bad_control, 0);
    no_choice(m);
}

/* Messages are considered in the order in which they were sent. */
static void test_an_earlier_message_is_awaited(void **state)
{
    (void)state;
    struct matching *m = choosing();
    comes(m, 1, 5);
    assert_int_equal(m->unmatched, 0); /* it may not be yet */
    choose(m, 0, 5, 0);
    expect_no_effect();
    comes(m, 0, 5);
    was_chosen(0, 0, 5);
    assert_int_equal(m->unmatched, 1);
    choose(m, 1, 6, 0);
    expect_no_effect();
    choose(m, 2, 4, 1); /* the last bit does not count */
    was_chosen(2, 1, 5);
    comes(m, 2, 6);
    was_chosen(1, 2, 6);
    no_choice(m);
}

static void test_receives_that_are_canceled(void **state)
{
    (void)state;
    struct matching *m = choosing();
    for (uint32_t i = 0; i < 3; i++)
        choose(m, i, i, 0);
    assert_true(matching_cancel(m, &choosers[1].part, 5));
    assert_ptr_equal(rx.effects->finished, &choosers[1].part);
    assert_int_equal(choosers[1].part.result.error, -LH_ECANCELED);
    rx.effects->finished = NULL;
    assert_int_equal(part_stats.messages_failed, 1);
    assert_false(matching_cancel(m, &choosers[1].part, 5));
    comes(m, 0, 1);
    expect_no_effect();
    matching_give_back(m);
    matching_end_all(m, -LH_EPEER, 6);
    assert_int_equal(choosers[0].part.result.error, -LH_EPEER);
    assert_int_equal(choosers[2].part.result.error, -LH_EPEER);
    assert_int_equal(part_stats.messages_failed, 3);
    matching_on_cancel(m, 0);
    no_choice(m);
}

/* What the sender aborted gets no receive, neither where it was known nor where it comes later. */
static void test_messages_that_are_canceled(void **state)
{
    (void)state;
    struct matching *m = choosing();
    comes(m, 0, 7);
    assert_int_equal(m->unmatched, 1);
    matching_on_cancel(m, 0);
    assert_int_equal(m->unmatched, 0);
    matching_on_cancel(m, 0); /* nothing more */
    assert_int_equal(m->unmatched, 0);
    choose(m, 0, 7, 0);
    expect_no_effect();
    comes(m, 0, 7);
    expect_no_effect();
    comes(m, 1, 7);
    was_chosen(0, 1, 7);
    no_choice(m);
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
        RX_TEST(test_who_understands),
        RX_TEST(test_a_message_chooses_by_its_tag),
        RX_TEST(test_an_earlier_message_is_awaited),
        RX_TEST(test_receives_that_are_canceled),
        RX_TEST(test_messages_that_are_canceled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
