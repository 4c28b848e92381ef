/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/hybrid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_rows_bytes(void **state)
{
    (void)state;
    static const uint8_t expected[] = {3, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 255};
    const struct hybrid_rows rows = {.mark = 0x01020304, .first = 0x05060708, .count = 2, .rows = {9, 255}};
    uint8_t bytes[32];
    assert_int_equal(hybrid_rows_encode(&rows, bytes), sizeof expected);
    assert_memory_equal(bytes, expected, sizeof expected);
    struct hybrid_rows read;
    assert_int_equal(hybrid_rows_decode(bytes, sizeof expected, &read), 0);
    assert_true(read.mark == rows.mark && read.first == rows.first && read.count == 2);
    assert_memory_equal(read.rows, rows.rows, 2);
}

static void test_impossible_rows_are_refused(void **state)
{
    (void)state;
    const struct hybrid_rows rows = {.mark = 1, .count = 3};
    uint8_t good[HYBRID_ROWS_BYTES + 4] = {0};
    struct hybrid_rows read;
    hybrid_rows_encode(&rows, good);
    for (size_t bytes = 0; bytes <= sizeof good; bytes++)
        assert_int_equal(hybrid_rows_decode(good, bytes, &read), bytes == HYBRID_ROWS_BYTES + 3 ? 0 : -1);
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{0, 1}, {0, 2}, {1, 1}, {2, 4}, {3, 0}, {3, 2}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t bytes[sizeof good];
        memcpy(bytes, good, sizeof bytes);
        bytes[bad[i].at] = bad[i].value;
        assert_int_equal(hybrid_rows_decode(bytes, HYBRID_ROWS_BYTES + 3, &read), -1);
    }
    memset(good + 8, 0xff, 4); /* numbers that do not fit 32 bits */
    assert_int_equal(hybrid_rows_decode(good, HYBRID_ROWS_BYTES + 3, &read), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_bytes),
        cmocka_unit_test(test_impossible_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
