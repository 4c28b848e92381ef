/*
 * test_bytes.c - network byte order at any alignment.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"

/* ---- test big endian ------------------------------------------------------------------------------- */

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

static int run_big_endian(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_get),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test copy ------------------------------------------------------------------------------------- */

#define BYTES 12288u
#define GUARD 0xEE

static _Alignas(4096) uint8_t source[BYTES], destination[BYTES];

/* Each byte that is asked for, and no other. */
static void copy_checked(size_t to, size_t from, size_t bytes)
{
    memset(destination, GUARD, sizeof destination);
    lh_copy(destination + to, source + from, bytes);
    assert_memory_equal(destination + to, source + from, bytes);
    for (size_t i = 0; i < to; i++)
        assert_int_equal(destination[i], GUARD);
    for (size_t i = to + bytes; i < sizeof destination; i++)
        assert_int_equal(destination[i], GUARD);
}

static void test_all_distances_and_lengths_about_a_part(void **state)
{
    static const size_t lengths[] = {0, 1, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 8000};
    (void)state;
    for (size_t i = 0; i < sizeof source; i++)
        source[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
        for (size_t to = 0; to <= 33; to++) {
            copy_checked(to, 0, lengths[l]);
            copy_checked(to, 33, lengths[l]);
        }
}

static int run_copy(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_distances_and_lengths_about_a_part)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_big_endian() + run_copy();
}
