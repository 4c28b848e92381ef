/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/control_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static uint8_t bytes[CONTROL_PAYLOAD_MAX];

static bool add(struct parts *parts, uint32_t number, uint32_t offset, uint32_t count, uint32_t whole)
{
    const struct control_part part = {number, offset, whole, bytes + offset, count};
    return parts_add(parts, &part);
}

static void test_in_order(void **state)
{
    (void)state;
    struct parts parts = {0};
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    for (uint32_t most = 1; most <= sizeof bytes; most += 41) {
        for (uint32_t offset = 0; offset < sizeof bytes; offset += most) {
            uint32_t left = (uint32_t)sizeof bytes - offset, count = left < most ? left : most;
            assert_int_equal(add(&parts, most, offset, count, sizeof bytes),
                             offset + count == sizeof bytes);
        }
        assert_int_equal(parts.whole, sizeof bytes);
        assert_memory_equal(parts.data, bytes, sizeof bytes);
        memset(&parts.data, 0, sizeof parts.data);
    }
}

/* A message of which a part is lost, repeated or another's is none; the next one is. */
static void test_anything_else(void **state)
{
    (void)state;
    struct parts parts = {0};
    assert_false(add(&parts, 0, 10, 10, 20)); /* the first is lost */
    assert_false(add(&parts, 1, 0, 10, 30));
    assert_false(add(&parts, 1, 20, 10, 30)); /* the second is */
    assert_false(add(&parts, 2, 0, 10, 30));
    assert_false(add(&parts, 3, 10, 20, 30)); /* of another message */
    assert_false(add(&parts, 2, 10, 30, 40)); /* of another length */
    assert_false(add(&parts, 2, 10, 10, 30));
    assert_false(add(&parts, 2, 10, 10, 30)); /* once more */
    assert_true(add(&parts, 2, 20, 10, 30));
    assert_memory_equal(parts.data, bytes, 30);
    assert_false(add(&parts, 2, 20, 10, 30)); /* after the end */
    assert_true(add(&parts, 3, 0, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_anything_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
