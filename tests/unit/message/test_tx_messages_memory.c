/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/tx_messages.h"

#include "unit/message/tx_part.h"

static const struct message_parts parts = {.count = 2,
                                           .list = {{payload, 10, 1}, {payload + 1000, 2 * SLOT - 10, 2}}};

static struct tx_message *add(const struct message_parts *list)
{
    const struct tx_content content = {
        .buffer = {.address = list ? NULL : payload, .lkey = LKEY, .parts = list}, .bytes = 2 * SLOT};
    sender_send(&tx, request_of(tx.next), &content, 0);
    return tx_message_at(&tx, tx.next - 1);
}

/* Nothing is taken for what lies in one place. */
static void test_one_place(void **state)
{
    (void)state;
    const struct segment_range range = {SLOT, (uint32_t)SLOT, CHUNK};
    struct tx_place place;
    assert_true(memory_place(&tx, add(NULL), &range, false, &place, 0));
    assert_true(place.payload == payload + SLOT && place.lkey == LKEY);
    assert_true(!place.copied && !place.pieces);
    assert_true(memory_place(&tx, add(&parts), &range, true, &place, 0));
    assert_true(place.payload == payload + 1000 + SLOT - 10 && place.lkey == 2);
    assert_int_equal(parity.in_use, 0);
}

static void test_a_copy(void **state)
{
    (void)state;
    const struct segment_range range = {0, (uint32_t)SLOT, CHUNK};
    struct tx_message *message = add(&parts);
    struct tx_place place;
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 7);
    assert_true(memory_place(&tx, message, &range, false, &place, 0));
    assert_true(!place.payload && place.copied && place.pieces->count == 1);
    struct tx_segment segment = {.copied = place.copied, .pieces = place.pieces};
    memory_copy(message, &range, &segment);
    assert_ptr_equal(segment.payload, place.copied->chunks);
    assert_memory_equal(segment.payload, payload, 10);
    assert_memory_equal(segment.payload + 10, payload + 1000, SLOT - 10);
    parity_give(&parity, place.copied);
}

/* While segments have some, the next one waits; else its message ends. */
static void test_no_memory(void **state)
{
    (void)state;
    const struct segment_range range = {0, (uint32_t)SLOT, CHUNK};
    struct tx_message *message = add(&parts);
    struct tx_place place;
    struct tx_segment *other = tx_segment_at(&tx, 5);
    assert_true(memory_place(&tx, message, &range, false, &place, 0));
    *other = (struct tx_segment){.active = true, .sequence = 5, .message = 99, .copied = place.copied};
    registrations_left = 0;
    assert_false(memory_place(&tx, message, &range, false, &place, 1));
    expect_no_effect();
    parity_give(&parity, other->copied);
    parity_free_all(&parity);
    *other = (struct tx_segment){0};
    assert_false(memory_place(&tx, message, &range, false, &place, 2));
    expect_finished(0, -LH_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TX_TEST(test_one_place),
        TX_TEST(test_a_copy),
        TX_TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
