/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/bounded_completion.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_bytes(void **state)
{
    (void)state;
    static const uint8_t expected[BOUNDED_MESSAGE_BYTES] = {2, 0, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d};
    const struct bounded_message ack = {BOUNDED_ACK, 0x0a0b0c0d};
    struct bounded_message read;
    uint8_t bytes[BOUNDED_MESSAGE_BYTES];
    assert_int_equal(bounded_message_encode(&ack, bytes), sizeof bytes);
    assert_memory_equal(bytes, expected, sizeof bytes);
    assert_int_equal(bounded_message_decode(bytes, sizeof bytes, &read), 0);
    assert_int_equal(read.kind, BOUNDED_ACK);
    assert_int_equal(read.place, 0x0a0b0c0d);
}

static void test_impossible_ones_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[BOUNDED_MESSAGE_BYTES + 1] = {BOUNDED_END};
    struct bounded_message read;
    for (size_t n = 0; n <= sizeof bytes; n++)
        assert_int_equal(bounded_message_decode(bytes, n, &read), n == BOUNDED_MESSAGE_BYTES ? 0 : -1);
    for (uint32_t at = 0; at < 4; at++) {
        uint8_t bad[BOUNDED_MESSAGE_BYTES] = {BOUNDED_END};
        bad[at] ^= 0x82;
        assert_int_equal(bounded_message_decode(bad, sizeof bad, &read), -1);
    }
    bytes[0] = 0;
    assert_int_equal(bounded_message_decode(bytes, BOUNDED_MESSAGE_BYTES, &read), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_impossible_ones_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
