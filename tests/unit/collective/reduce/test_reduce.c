/*
 * By type and operation: sizes and names, a pass of each, quotients of integers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/reduce/reduce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_types(void **state)
{
    (void)state;
    assert_int_equal(element_bytes_of(ELEMENT_F64), 8);
    assert_int_equal(element_bytes_of(ELEMENT_BF16), 2);
    assert_int_equal(element_bytes_of(ELEMENT_U8), 1);
    assert_string_equal(element_name(ELEMENT_F16), "f16");
    assert_string_equal(element_name(ELEMENT_I64), "i64");
}

static void test_operations(void **state)
{
    (void)state;
    const int32_t x[3] = {1, -7, INT32_MAX}, y[3] = {5, 3, 1};
    const int32_t want[REDUCE_COUNT][3] = {[REDUCE_SUM] = {6, -4, INT32_MIN},
                                           [REDUCE_PROD] = {5, -21, INT32_MAX},
                                           [REDUCE_MIN] = {1, -7, 1},
                                           [REDUCE_MAX] = {5, 3, INT32_MAX}};
    for (enum reduce_operation operation = 0; operation < REDUCE_COUNT; operation++) {
        int32_t got[3];
        reduce_elements(ELEMENT_I32, operation, got, x, y, 3);
        assert_memory_equal(got, want[operation], sizeof got);
    }
    reduce_elements(ELEMENT_I32, REDUCE_SUM, NULL, NULL, NULL, 0);
}

static void test_quotients(void **state)
{
    (void)state;
    uint8_t u8[3] = {255, 7, 2};
    int32_t i32[3] = {-7, 7, INT32_MIN};
    int64_t i64[2] = {INT64_MIN, 10};
    float f32[2] = {1, 10};
    reduce_divide(ELEMENT_U8, u8, 3, 3);
    reduce_divide(ELEMENT_I32, i32, 3, 2);
    reduce_divide(ELEMENT_I64, i64, 2, 4);
    reduce_divide(ELEMENT_F32, f32, 2, 4);
    assert_memory_equal(u8, ((uint8_t[]){85, 2, 0}), 3);
    assert_memory_equal(i32, ((int32_t[]){-3, 3, INT32_MIN / 2}), sizeof i32);
    assert_memory_equal(i64, ((int64_t[]){INT64_MIN / 4, 2}), sizeof i64);
    assert_true(f32[0] == 0.25F && f32[1] == 2.5F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_quotients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
