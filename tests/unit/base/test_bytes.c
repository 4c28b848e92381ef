/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_distances_and_lengths_about_a_part)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
