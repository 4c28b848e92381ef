/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/buffer/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static uint8_t memory[64];

/* 3, 1 and 6 bytes, not in the order of their addresses. */
static const struct message_parts parts = {
    .count = 3, .list = {{memory + 40, 3, 11}, {memory + 10, 1, 12}, {memory + 20, 6, 13}}};
static const struct message_buffer scattered = {.parts = &parts};
static const struct message_buffer plain = {.address = memory, .lkey = 7};

static int fill(void **state)
{
    (void)state;
    memset(memory, '.', sizeof memory);
    memcpy(memory + 40, "abc", 3);
    memcpy(memory + 10, "d", 1);
    memcpy(memory + 20, "efghij", 6);
    return 0;
}

static void test_reads_any_range(void **state)
{
    (void)state;
    const char *const whole = "abcdefghij";
    for (uint64_t from = 0; from <= 10; from++)
        for (uint64_t bytes = 0; bytes <= 10 - from; bytes++) {
            char out[12] = "-----------";
            buffer_read(&scattered, from, out, bytes);
            assert_memory_equal(out, whole + from, bytes);
            assert_int_equal(out[bytes], '-');
        }
    char out[3];
    buffer_read(&plain, 40, out, 3);
    assert_memory_equal(out, "abc", 3);
}

static void test_writes_any_range_and_nothing_else(void **state)
{
    for (uint64_t from = 0; from <= 10; from++)
        for (uint64_t bytes = 0; bytes <= 10 - from; bytes++) {
            char now[10];
            char expected[10] = "abcdefghij";
            uint32_t untouched = 0;
            fill(state);
            buffer_write(&scattered, from, "0123456789", bytes);
            memcpy(expected + from, "0123456789", bytes);
            buffer_read(&scattered, 0, now, 10);
            assert_memory_equal(now, expected, 10);
            for (size_t i = 0; i < sizeof memory; i++)
                untouched += memory[i] == '.';
            assert_int_equal(untouched, sizeof memory - 10);
        }
    buffer_write(&plain, 0, "xy", 2);
    assert_memory_equal(memory, "xy.", 3);
}

static void test_place(void **state)
{
    (void)state;
    struct message_part place;
    assert_true(buffer_place(&plain, 5, 9, &place));
    assert_true(place.address == memory + 5 && place.bytes == 9 && place.lkey == 7);
    assert_true(buffer_place(&scattered, 0, 3, &place));
    assert_true(place.address == memory + 40 && place.lkey == 11);
    assert_true(buffer_place(&scattered, 3, 1, &place));
    assert_true(place.address == memory + 10 && place.lkey == 12);
    assert_true(buffer_place(&scattered, 5, 5, &place));
    assert_true(place.address == memory + 21 && place.lkey == 13);
    assert_false(buffer_place(&scattered, 2, 2, &place));
    assert_false(buffer_place(&scattered, 0, 10, &place));
    assert_true(buffer_place(&scattered, 10, 0, &place));
    assert_null(place.address);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_reads_any_range, fill),
        cmocka_unit_test(test_writes_any_range_and_nothing_else),
        cmocka_unit_test(test_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
