/*
 * test_crc32.c - every kernel that this CPU runs, against a CRC one bit at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/crc32.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/plain_crc.h"

#define BYTES_MAX 4200u

static uint8_t data[BYTES_MAX];

static int fill(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof data; i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = (uint8_t)(seed >> 24);
    }
    return 0;
}

/* Each way to compute it; what is fetched meanwhile stays as it is. */
static void check(uint32_t crc, const uint8_t *from, size_t bytes)
{
    static uint8_t later[BYTES_MAX], untouched[BYTES_MAX];
    const uint32_t wanted = plain_crc(crc, from, bytes);
    assert_int_equal(crc32_add(crc, from, bytes), wanted);
    assert_int_equal(crc32_add_ahead(crc, from, bytes, later), wanted);
    for (const struct crc32_kernel *const *kernel = crc32_kernels; *kernel; kernel++) {
        if (bytes < (*kernel)->bytes_min || !(*kernel)->runs_here())
            continue;
        if ((*kernel)->add(crc, from, bytes, NULL) != wanted ||
            (*kernel)->add(crc, from, bytes, later) != wanted)
            fail_msg("%s: %zu bytes after %08x: not %08x", (*kernel)->name, bytes, crc, wanted);
    }
    assert_memory_equal(later, untouched, sizeof later);
}

static void test_the_published_value(void **state)
{
    (void)state;
    assert_int_equal(plain_crc(0, (const uint8_t *)"123456789", 9), 0xCBF43926u);
    assert_int_equal(crc32_add(0, (const uint8_t *)"123456789", 9), 0xCBF43926u);
}

/* Past several strides of the widest vectors one by one, so that each number of vectors, lanes and single
 * bytes is left over once. */
static void test_every_length(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes <= 1100; bytes++)
        check(0x12345678, data, bytes);
    for (size_t bytes = 1100; bytes <= BYTES_MAX; bytes += 97)
        check(~(uint32_t)bytes, data, bytes);
}

static void test_every_alignment(void **state)
{
    (void)state;
    for (size_t at = 0; at < 64; at++)
        check(7, data + at, 1100);
}

/* The single 1 stands for a term of the polynomial: each must be moved by the right distance. */
static void test_every_bit(void **state)
{
    (void)state;
    static uint8_t zeros[600];
    for (size_t bit = 0; bit < 8 * sizeof zeros; bit++) {
        zeros[bit / 8] = (uint8_t)(1u << bit % 8);
        check(0, zeros, sizeof zeros);
        zeros[bit / 8] = 0;
    }
}

/* In memory of exactly that size: the sanitizers find a kernel that looks further. */
static void test_nothing_behind_the_end_is_read(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes <= 600; bytes++) {
        uint8_t *copy = malloc(bytes);
        assert_non_null(copy);
        memcpy(copy, data, bytes);
        check(0, copy, bytes);
        free(copy);
    }
}

static void test_pieces(void **state)
{
    (void)state;
    const uint32_t whole = plain_crc(0, data, BYTES_MAX);
    for (size_t cut = 0; cut <= BYTES_MAX; cut += 61)
        assert_int_equal(crc32_add(crc32_add(0, data, cut), data + cut, BYTES_MAX - cut), whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_published_value),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_every_alignment),
        cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_nothing_behind_the_end_is_read),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
