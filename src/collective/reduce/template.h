/*
 * template.h - the functions of a reduce_kernel, of vectors of VECTOR_BYTES. Who includes it has defined
 * that, TARGET and TEMPLATE (attributes of functions), F16_INSTRUCTIONS with f16_widen() and f16_narrow()
 * where the CPU converts F16, and words_widen() and words_narrow().
 *
 * What is left at the end of an array is a vector filled up with zeros: the arithmetic is the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(VECTOR_BYTES) && !defined(LH_COLLECTIVE_REDUCE_TEMPLATE_H)
#define LH_COLLECTIVE_REDUCE_TEMPLATE_H

#include <string.h>

#include "collective/reduce/kernel.h"

typedef float f32_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef double f64_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t i32_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t i64_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t u32_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t u64_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint8_t u8_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t halves_vector __attribute__((vector_size(VECTOR_BYTES / 2)));

/* ---- 16-bit floats ----------------------------------------------------------------------------------- */

TEMPLATE f32_vector bf16_widen(halves_vector halves)
{
    return (f32_vector)(words_widen(halves) << 16);
}

/* mask: all ones, or zeros, in each element. */
TEMPLATE u32_vector choose(i32_vector mask, u32_vector yes, u32_vector no)
{
    return ((u32_vector)mask & yes) | (~(u32_vector)mask & no);
}

TEMPLATE halves_vector bf16_narrow(f32_vector floats)
{
    const u32_vector bits = (u32_vector)floats;
    const u32_vector rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const u32_vector quiet = bits >> 16 | 0x40;
    return words_narrow(choose((i32_vector)(floats != floats), quiet, rounded));
}

#ifndef F16_INSTRUCTIONS
TEMPLATE f32_vector f16_widen(halves_vector halves)
{
    const u32_vector half = words_widen(halves), magnitude = half & 0x7fff;
    /* The exponent's bias differs by 112; the product is right for subnormal numbers, too. */
    u32_vector bits = (u32_vector)((f32_vector)(magnitude << 13) * 0x1p112f);
    bits |= (u32_vector)((i32_vector)magnitude >= 0x7c00) & 0x7f800000;
    return (f32_vector)(bits | (half & 0x8000) << 16);
}

TEMPLATE halves_vector f16_narrow(f32_vector floats)
{
    const u32_vector bits = (u32_vector)floats, magnitude = bits & 0x7fffffff;
    const u32_vector normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    /* The last bit of 0.5 + x is that of a subnormal F16. */
    const u32_vector subnormal = (u32_vector)((f32_vector)magnitude + 0.5f) - 0x3f000000;
    u32_vector half = choose((i32_vector)((i32_vector)magnitude < 0x38800000), subnormal, normal);
    /* From 65520 on it is infinite. */
    half = choose((i32_vector)((i32_vector)magnitude >= 0x477ff000), (u32_vector){0} + 0x7c00, half);
    half = choose((i32_vector)(floats != floats), 0x7e00 | (magnitude >> 13 & 0x3ff), half);
    return words_narrow(half | (bits >> 16 & 0x8000));
}
#endif

/* ---- a function of each type and operation ----------------------------------------------------------- */

#define SAME(x)          (x)
#define SUM(x, y, mask)  ((x) + (y))
#define PROD(x, y, mask) ((x) * (y))
/* NaN is not equal to itself, and nothing is less than it: so it is the result wherever it is. */
#define MIN(x, y, mask)      CHOOSE(((x) < (y)) | ((x) != (x)), x, y, mask)
#define MAX(x, y, mask)      CHOOSE(((x) > (y)) | ((x) != (x)), x, y, mask)
#define INT_MIN_(x, y, mask) CHOOSE((x) < (y), x, y, mask)
#define INT_MAX_(x, y, mask) CHOOSE((x) > (y), x, y, mask)
#define CHOOSE(which, x, y, mask)                                                                          \
    ((__typeof__(x))(((mask)(which) & (mask)(x)) | (~(mask)(which) & (mask)(y))))

/* raw: as they are in memory; widen and narrow convert from it and to it. */
#define REDUCE_FUNCTION(name, element, raw, vector, mask, widen, narrow, OPERATION)                        \
    TARGET static void name(void *to, const void *left, const void *right, size_t count)                   \
    {                                                                                                      \
        const size_t bytes = count * sizeof(element), whole = bytes - bytes % sizeof(raw);                 \
        for (size_t at = 0; at < whole; at += sizeof(raw)) {                                               \
            raw a, b;                                                                                      \
            memcpy(&a, (const uint8_t *)left + at, sizeof a);                                              \
            memcpy(&b, (const uint8_t *)right + at, sizeof b);                                             \
            const vector x = widen(a), y = widen(b);                                                       \
            const raw result = narrow(OPERATION(x, y, mask));                                              \
            memcpy((uint8_t *)to + at, &result, sizeof result);                                            \
        }                                                                                                  \
        if (whole < bytes) {                                                                               \
            raw a = {0}, b = {0};                                                                          \
            memcpy(&a, (const uint8_t *)left + whole, bytes - whole);                                      \
            memcpy(&b, (const uint8_t *)right + whole, bytes - whole);                                     \
            const vector x = widen(a), y = widen(b);                                                       \
            const raw result = narrow(OPERATION(x, y, mask));                                              \
            memcpy((uint8_t *)to + whole, &result, bytes - whole);                                         \
        }                                                                                                  \
    }

#define DIVIDE_FUNCTION(name, element, raw, vector, widen, narrow)                                         \
    TARGET static void name(void *at, size_t count, uint32_t by)                                           \
    {                                                                                                      \
        const size_t bytes = count * sizeof(element);                                                      \
        for (size_t i = 0; i < bytes; i += sizeof(raw)) {                                                  \
            const size_t now = bytes - i < sizeof(raw) ? bytes - i : sizeof(raw);                          \
            raw a = {0};                                                                                   \
            memcpy(&a, (uint8_t *)at + i, now);                                                            \
            const vector x = widen(a);                                                                     \
            a = narrow(x / ((vector){0} + (__typeof__(x[0]))by));                                          \
            memcpy((uint8_t *)at + i, &a, now);                                                            \
        }                                                                                                  \
    }

#define FLOAT_FUNCTIONS(type, element, raw, vector, mask, widen, narrow)                                   \
    REDUCE_FUNCTION(sum_##type, element, raw, vector, mask, widen, narrow, SUM)                            \
    REDUCE_FUNCTION(prod_##type, element, raw, vector, mask, widen, narrow, PROD)                          \
    REDUCE_FUNCTION(min_##type, element, raw, vector, mask, widen, narrow, MIN)                            \
    REDUCE_FUNCTION(max_##type, element, raw, vector, mask, widen, narrow, MAX)                            \
    DIVIDE_FUNCTION(divide_##type, element, raw, vector, widen, narrow)

/* Of signed integers the sum and the product are those of unsigned ones: they wrap around. */
#define INTEGER_FUNCTIONS(type, element, vector, wrapping)                                                 \
    REDUCE_FUNCTION(sum_##type, element, wrapping, wrapping, wrapping, SAME, SAME, SUM)                    \
    REDUCE_FUNCTION(prod_##type, element, wrapping, wrapping, wrapping, SAME, SAME, PROD)                  \
    REDUCE_FUNCTION(min_##type, element, vector, vector, wrapping, SAME, SAME, INT_MIN_)                   \
    REDUCE_FUNCTION(max_##type, element, vector, vector, wrapping, SAME, SAME, INT_MAX_)

FLOAT_FUNCTIONS(f32, float, f32_vector, f32_vector, u32_vector, SAME, SAME)
FLOAT_FUNCTIONS(f64, double, f64_vector, f64_vector, u64_vector, SAME, SAME)
FLOAT_FUNCTIONS(f16, uint16_t, halves_vector, f32_vector, u32_vector, f16_widen, f16_narrow)
FLOAT_FUNCTIONS(bf16, uint16_t, halves_vector, f32_vector, u32_vector, bf16_widen, bf16_narrow)
INTEGER_FUNCTIONS(i32, int32_t, i32_vector, u32_vector)
INTEGER_FUNCTIONS(i64, int64_t, i64_vector, u64_vector)
INTEGER_FUNCTIONS(u8, uint8_t, u8_vector, u8_vector)

#define KERNEL_REDUCE(constant, type, bytes)                                                               \
    [ELEMENT_##constant] = {sum_##type, prod_##type, min_##type, max_##type},
#define KERNEL_FUNCTIONS                                                                                   \
    .reduce = {ELEMENT_TYPES(KERNEL_REDUCE)}, .divide = {[ELEMENT_F32] = divide_f32,                       \
                                                         [ELEMENT_F64] = divide_f64,                       \
                                                         [ELEMENT_F16] = divide_f16,                       \
                                                         [ELEMENT_BF16] = divide_bf16}

#endif
