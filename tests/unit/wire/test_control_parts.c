/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/control_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

static uint8_t bytes[CONTROL_PAYLOAD_MAX];

static void fill(void)
{
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
}

/* Whether that makes the message whole. */
static bool add(struct control_parts *parts, uint32_t number, uint32_t offset, uint32_t count,
                uint32_t whole)
{
    const struct control_part part = {number, offset, whole, bytes + offset, count};
    const struct control_parts_message *message = control_parts_add(parts, &part);
    if (message == NULL)
        return false;
    assert_int_equal(message->whole, whole);
    assert_memory_equal(message->data, bytes, whole);
    return true;
}

static void test_in_order(void **state)
{
    (void)state;
    struct control_parts parts = {0};
    fill();
    for (uint32_t most = 1; most <= sizeof bytes; most += 41) {
        for (uint32_t offset = 0; offset < sizeof bytes; offset += most) {
            uint32_t left = (uint32_t)sizeof bytes - offset, count = left < most ? left : most;
            assert_int_equal(add(&parts, most, offset, count, sizeof bytes),
                             offset + count == sizeof bytes);
        }
        memset(parts.messages[most % CONTROL_PARTS_MESSAGES].data, 0, sizeof bytes);
    }
}

/* Some messages that left one after the other, their parts mixed; numbers wrap. */
static void test_in_any_order(void **state)
{
    (void)state;
    struct lh_prng prng;
    struct control_parts parts = {0};
    fill();
    lh_prng_seed(&prng, 1);
    for (uint32_t first = UINT32_MAX - 39; first != 40; first += CONTROL_PARTS_MESSAGES) {
        uint32_t order[5 * CONTROL_PARTS_MESSAGES], left[CONTROL_PARTS_MESSAGES] = {5, 5, 5, 5};
        for (uint32_t i = 0; i < 5 * CONTROL_PARTS_MESSAGES; i++) {
            uint32_t j = (uint32_t)lh_prng_below(&prng, i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        for (uint32_t i = 0; i < 5 * CONTROL_PARTS_MESSAGES; i++) {
            uint32_t message = order[i] / 5, part = order[i] % 5;
            bool whole = --left[message] == 0;
            assert_int_equal(add(&parts, first + message, 200 * part, part < 4 ? 200 : 73, 873), whole);
            assert_false(add(&parts, first + message, 200 * part, part < 4 ? 200 : 73, 873));
        }
    }
}

/* A message of which a part is lost, or another's, is none; the next one at its place is. */
static void test_lost(void **state)
{
    (void)state;
    struct control_parts parts = {0};
    const uint32_t next = 2 + CONTROL_PARTS_MESSAGES;
    fill();
    assert_false(add(&parts, 2, 10, 10, 30)); /* the first is lost */
    assert_false(add(&parts, 2, 20, 10, 30));
    assert_false(add(&parts, next, 20, 10, 30));
    assert_false(add(&parts, 2, 0, 10, 30));     /* late */
    assert_false(add(&parts, next, 10, 30, 40)); /* of another length */
    assert_false(add(&parts, next, 5, 10, 30));
    assert_false(add(&parts, next, 10, 10, 30)); /* the same bytes once more */
    assert_false(add(&parts, next, 0, 5, 30));
    assert_true(add(&parts, next, 15, 5, 30));
    assert_true(add(&parts, 3, 0, 1, 1));
}

/* A peer that lies about a number, once. */
static void test_number_far_ahead(void **state)
{
    (void)state;
    struct control_parts parts = {0};
    fill();
    assert_false(add(&parts, UINT32_C(1) << 30, 0, 10, 20));
    assert_false(add(&parts, 8, 10, 10, 20));
    assert_true(add(&parts, 8, 0, 10, 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_in_any_order),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_number_far_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
