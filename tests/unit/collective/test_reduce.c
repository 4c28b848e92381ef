/*
 * test_reduce.c - reductions of every kernel that this CPU runs, type and operation against a reference
 * that computes one element at a time: lengths around each vector, all alignments, in place, NaN,
 * infinite, subnormal numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "collective/reduce.h"

/* ---- test kernel ----------------------------------------------------------------------------------- */

#define COUNT_MAX   140u
#define BYTES_MAX   ((size_t)COUNT_MAX * 8 + 64)
#define GUARD_BYTES 64u

static const size_t bytes_of[] = {
#define ELEMENT_BYTES(constant, name, bytes) bytes,
    ELEMENT_TYPES(ELEMENT_BYTES)
#undef ELEMENT_BYTES
};

/* ---- reference --------------------------------------------------------------------------------------- */

/* A float of `digits` binary digits (the leading one included) and this least and greatest exponent. */
static double round_to(double value, int digits, int minimum, int greatest)
{
    if (isnan(value) || isinf(value) || value == 0)
        return value;
    int exponent;
    frexp(value, &exponent);
    exponent -= 1;
    const int unit = (exponent < minimum ? minimum : exponent) - (digits - 1);
    const double rounded = ldexp(nearbyint(ldexp(value, -unit)), unit);
    return fabs(rounded) >= ldexp(1, greatest + 1) ? copysign(INFINITY, value) : rounded;
}

static double small_float(uint16_t bits, int exponent_bits)
{
    const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    double value;
    if (exponent == (1 << exponent_bits) - 1)
        value = mantissa ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - bias - mantissa_bits);
    else
        value = ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return bits >> 15 ? -value : value;
}

static double element(enum element_type type, const uint8_t *at)
{
    float f32;
    double f64;
    uint16_t half;
    switch (type) {
    case ELEMENT_F32:
        memcpy(&f32, at, sizeof f32);
        return (double)f32;
    case ELEMENT_F64:
        memcpy(&f64, at, sizeof f64);
        return f64;
    default:
        memcpy(&half, at, sizeof half);
        return small_float(half, type == ELEMENT_F16 ? 5 : 8);
    }
}

/* As the type has it. Sums and products of F32 and below are exact in F64, or as good as that. */
static double rounded(enum element_type type, double value)
{
    switch (type) {
    case ELEMENT_F32:
        return (double)(float)value;
    case ELEMENT_F16:
        return round_to((double)(float)value, 11, -14, 15);
    case ELEMENT_BF16:
        return round_to((double)(float)value, 8, -126, 127);
    default:
        return value;
    }
}

static double float_result(enum reduce_operation operation, double x, double y)
{
    switch (operation) {
    case REDUCE_SUM:
        return x + y;
    case REDUCE_PROD:
        return x * y;
    case REDUCE_MIN:
        return isnan(x) || isnan(y) ? NAN : x < y ? x : y;
    default:
        return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
    }
}

static int64_t integer(enum element_type type, const uint8_t *at)
{
    int32_t i32;
    int64_t i64;
    int16_t i16;
    if (type == ELEMENT_U8)
        return *at;
    if (type == ELEMENT_I8)
        return (int8_t)*at;
    if (type == ELEMENT_I16) {
        memcpy(&i16, at, sizeof i16);
        return i16;
    }
    if (type == ELEMENT_I32) {
        memcpy(&i32, at, sizeof i32);
        return i32;
    }
    memcpy(&i64, at, sizeof i64);
    return i64;
}

static uint64_t integer_result(enum reduce_operation operation, int64_t x, int64_t y)
{
    switch (operation) {
    case REDUCE_SUM:
        return (uint64_t)x + (uint64_t)y;
    case REDUCE_PROD:
        return (uint64_t)x * (uint64_t)y;
    case REDUCE_MIN:
        return (uint64_t)(x < y ? x : y);
    case REDUCE_MAX:
        return (uint64_t)(x > y ? x : y);
    case REDUCE_BAND:
        return (uint64_t)(x & y);
    case REDUCE_BOR:
        return (uint64_t)(x | y);
    default:
        return (uint64_t)(x ^ y);
    }
}

static bool is_float(enum element_type type)
{
    return type <= ELEMENT_BF16;
}

static void expect_element(enum element_type type, enum reduce_operation operation, const uint8_t *got,
                           const uint8_t *x, const uint8_t *y)
{
    if (is_float(type)) {
        const double right = rounded(type, float_result(operation, element(type, x), element(type, y)));
        const double is = element(type, got);
        if (isnan(right) ? !isnan(is) : is != right)
            fail_msg("type %d, operation %d: %a and %a: %a, not %a", type, operation, element(type, x),
                     element(type, y), is, right);
        return;
    }
    const uint64_t right = integer_result(operation, integer(type, x), integer(type, y));
    const uint64_t is = (uint64_t)integer(type, got);
    const uint64_t mask = bytes_of[type] == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes_of[type]) - 1;
    assert_int_equal(is & mask, right & mask);
}

/* ---- cases ------------------------------------------------------------------------------------------- */

/* Any bits: of floats every 500th or so is NaN, many are subnormal or overflow in products. */
static void fill(struct lh_prng *prng, enum element_type type, uint8_t *at, size_t count)
{
    static const uint16_t special[] = {0,      0x8000, 1,      0x8001, 0x7c00, 0xfc00, 0x7e00,
                                       0x7bff, 0x3c00, 0x7f80, 0xff80, 0x7fc1, 0x7f7f, 0x3f80};
    for (size_t i = 0; i < count * bytes_of[type]; i++)
        at[i] = (uint8_t)lh_prng_next(prng);
    for (size_t i = 0; i < count; i++) {
        uint8_t *last = at + (i + 1) * bytes_of[type] - 2;
        if (bytes_of[type] > 1 && lh_prng_chance(prng, 0.25))
            memcpy(last, &special[lh_prng_below(prng, sizeof special / sizeof *special)], 2);
        else if (bytes_of[type] > 1 && lh_prng_chance(prng, 0.5))
            last[1] = (uint8_t)((last[1] & 0x80) | 0x3c); /* sums and products of a like size */
    }
}

static uint8_t left[BYTES_MAX], right[BYTES_MAX], to[BYTES_MAX + 2 * GUARD_BYTES];

static void check(const struct reduce_kernel *kernel, enum element_type type,
                  enum reduce_operation operation, size_t count, const size_t offset[3])
{
    const size_t bytes = count * bytes_of[type];
    uint8_t *result = to + GUARD_BYTES + offset[2];
    memset(to, 0xa5, sizeof to);
    reduce_kernel_use(kernel);
    reduce_elements(type, operation, result, left + offset[0], right + offset[1], count);
    for (size_t i = 0; i < count; i++)
        expect_element(type, operation, result + i * bytes_of[type], left + offset[0] + i * bytes_of[type],
                       right + offset[1] + i * bytes_of[type]);
    for (const uint8_t *at = to; at < to + sizeof to; at++)
        assert_true((at >= result && at < result + bytes) || *at == 0xa5);
    /* In place: the same bits, whichever argument it is. */
    uint8_t same[BYTES_MAX];
    memcpy(same, left + offset[0], bytes);
    reduce_elements(type, operation, same, same, right + offset[1], count);
    assert_memory_equal(same, result, bytes);
    memcpy(same, right + offset[1], bytes);
    reduce_elements(type, operation, same, left + offset[0], same, count);
    assert_memory_equal(same, result, bytes);
    reduce_kernel_use(reduce_kernels()[0]);
}

static void test_every_length_and_alignment(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 20);
    for (const struct reduce_kernel *const *kernel = reduce_kernels(); *kernel; kernel++)
        for (int type = 0; type < ELEMENT_COUNT; type++)
            for (int operation = 0;
                 operation < (is_float((enum element_type)type) ? REDUCE_BAND : REDUCE_COUNT); operation++)
                for (size_t count = 0; count <= COUNT_MAX; count++) {
                    const size_t offset[3] = {lh_prng_below(&prng, 64), lh_prng_below(&prng, 64),
                                              lh_prng_below(&prng, 64)};
                    fill(&prng, (enum element_type)type, left + offset[0], count);
                    fill(&prng, (enum element_type)type, right + offset[1], count);
                    check(*kernel, (enum element_type)type, (enum reduce_operation)operation, count,
                          offset);
                }
}

/* All F16 and BF16 there are, with partners that round up, down and to even, overflow and cancel. */
static void test_all_small_floats(void **state)
{
    (void)state;
    static uint16_t all[65536], other[65536], result[65536];
    static const uint16_t partners[] = {0x0000, 0x0001, 0x1000, 0x3c00, 0x3555, 0x7bff,
                                        0xfbff, 0x3f80, 0x3eab, 0x7f7f, 0xff7f, 0x0080};
    for (uint32_t i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (const struct reduce_kernel *const *kernel = reduce_kernels(); *kernel; kernel++)
        for (enum element_type type = ELEMENT_F16; type <= ELEMENT_BF16; type++)
            for (size_t p = 0; p < sizeof partners / sizeof *partners; p++)
                for (int operation = REDUCE_SUM; operation <= REDUCE_PROD; operation++) {
                    for (uint32_t i = 0; i < 65536; i++)
                        other[i] = partners[p];
                    (*kernel)->reduce[type][operation](result, all, other, 65536);
                    for (uint32_t i = 0; i < 65536; i++)
                        expect_element(type, (enum reduce_operation)operation, (uint8_t *)&result[i],
                                       (uint8_t *)&all[i], (uint8_t *)&other[i]);
                }
}

static void test_divide(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 21);
    for (const struct reduce_kernel *const *kernel = reduce_kernels(); *kernel; kernel++)
        for (enum element_type type = ELEMENT_F32; type <= ELEMENT_BF16; type++)
            for (uint32_t by = 1; by <= 9; by++)
                for (size_t count = 0; count < 40; count++) {
                    fill(&prng, type, left, count);
                    memcpy(right, left, sizeof right);
                    (*kernel)->divide[type](right, count, by);
                    for (size_t i = 0; i < count; i++) {
                        const double is = element(type, right + i * bytes_of[type]);
                        const double want =
                            rounded(type, element(type, left + i * bytes_of[type]) / (double)by);
                        assert_true(isnan(want) ? isnan(is) : is == want);
                    }
                    assert_memory_equal(left + count * bytes_of[type], right + count * bytes_of[type], 16);
                }
}

static void test_choice(void **state)
{
    (void)state;
    const struct reduce_kernel *const *kernels = reduce_kernels();
    assert_ptr_equal(reduce_kernel_now(), kernels[0]);
    reduce_kernel_use(&reduce_kernel_base);
    assert_ptr_equal(reduce_kernel_now(), &reduce_kernel_base);
    reduce_kernel_use(kernels[0]);
    size_t count = 0;
    while (kernels[count])
        count++;
    assert_ptr_equal(kernels[count - 1], &reduce_kernel_base);
}

static int run_kernel(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length_and_alignment),
        cmocka_unit_test(test_all_small_floats),
        cmocka_unit_test(test_divide),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test reduce ----------------------------------------------------------------------------------- */

/* By type and operation: sizes and names, a pass of each, quotients of integers. */

static void test_types(void **state)
{
    (void)state;
    assert_int_equal(element_bytes_of(ELEMENT_F64), 8);
    assert_int_equal(element_bytes_of(ELEMENT_BF16), 2);
    assert_int_equal(element_bytes_of(ELEMENT_U8), 1);
    assert_int_equal(element_bytes_of(ELEMENT_I8), 1);
    assert_int_equal(element_bytes_of(ELEMENT_I16), 2);
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
                                           [REDUCE_MAX] = {5, 3, INT32_MAX},
                                           [REDUCE_BAND] = {1, 1, 1},
                                           [REDUCE_BOR] = {5, -5, INT32_MAX},
                                           [REDUCE_BXOR] = {4, -6, INT32_MAX - 1}};
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
    int8_t i8[3] = {-128, -7, 100};
    int16_t i16[2] = {INT16_MIN, 9};
    reduce_divide(ELEMENT_U8, u8, 3, 3);
    reduce_divide(ELEMENT_I8, i8, 3, 3);
    reduce_divide(ELEMENT_I16, i16, 2, 2);
    assert_memory_equal(i8, ((int8_t[]){-42, -2, 33}), 3);
    assert_memory_equal(i16, ((int16_t[]){INT16_MIN / 2, 4}), sizeof i16);
    reduce_divide(ELEMENT_I32, i32, 3, 2);
    reduce_divide(ELEMENT_I64, i64, 2, 4);
    reduce_divide(ELEMENT_F32, f32, 2, 4);
    assert_memory_equal(u8, ((uint8_t[]){85, 2, 0}), 3);
    assert_memory_equal(i32, ((int32_t[]){-3, 3, INT32_MIN / 2}), sizeof i32);
    assert_memory_equal(i64, ((int64_t[]){INT64_MIN / 4, 2}), sizeof i64);
    assert_true(f32[0] == 0.25F && f32[1] == 2.5F);
}

static int run_reduce(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_quotients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_kernel() + run_reduce();
}
