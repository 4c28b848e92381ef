/*
 * test_big_endian.c - network byte order at any alignment.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/big_endian.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_put(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0xEE, 1,  2,  3,  4,  5,  6,  7,  8,   9,
                                       10,   11, 12, 13, 14, 15, 16, 17, 0xEE};
    uint8_t out[sizeof expected];
    memset(out, 0xEE, sizeof out);
    lh_put_be16(out + 1, 0x0102);
    lh_put_be24(out + 3, 0x030405);
    lh_put_be32(out + 6, 0x06070809);
    lh_put_be64(out + 10, 0x0a0b0c0d0e0f1011);
    assert_memory_equal(out, expected, sizeof out);
}

static void test_get(void **state)
{
    (void)state;
    static const uint8_t in[] = {0, 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8};
    assert_int_equal(lh_get_be16(in + 1), 0xF1F2);
    assert_int_equal(lh_get_be24(in + 1), 0xF1F2F3);
    assert_int_equal(lh_get_be32(in + 1), 0xF1F2F3F4);
    assert_true(lh_get_be64(in + 1) == 0xF1F2F3F4F5F6F7F8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_get),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
