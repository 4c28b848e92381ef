/*
 * reduce_template.h - the functions of a reduce_kernel, of vectors of VECTOR_BYTES. Who includes it has
 * defined that, TARGET and TEMPLATE (attributes of functions), F16_INSTRUCTIONS with f16_widen() and
 * f16_narrow() where the CPU converts F16, else words_widen() and words_narrow(), and bf16_round() where
 * the CPU has better instructions for it.
 *
 * BF16 comes in pairs, the words of a vector: the upper half is an F32 as it is, so that no element changes
 * its place.
 *
 * What is left at the end of an array is a vector filled up with zeros: the arithmetic is the same.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(VECTOR_BYTES) && !defined(LH_COLLECTIVE_REDUCE_TEMPLATE_H)
#define LH_COLLECTIVE_REDUCE_TEMPLATE_H

#include <string.h>

#include "collective/reduce.h"

typedef float f32_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef double f64_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t i32_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t i64_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t u32_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t u64_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef int8_t i8_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef int16_t i16_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint8_t u8_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t u16_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t halves_vector __attribute__((vector_size(VECTOR_BYTES / 2)));

/* ---- 16-bit floats ----------------------------------------------------------------------------------- */

/* mask: all ones, or zeros, in each element. */
TEMPLATE u32_vector choose(i32_vector mask, u32_vector yes, u32_vector no)
{
    return ((u32_vector)mask & yes) | (~(u32_vector)mask & no);
}

#define bf16_lower(words) ((f32_vector)((words) << 16))
#define bf16_upper(words) ((f32_vector)((words)&0xffff0000))

#ifndef bf16_round
/* Words whose upper halves are the nearest BF16. */
TEMPLATE u32_vector bf16_round(f32_vector floats)
{
    const u32_vector bits = (u32_vector)floats;
    const u32_vector rounded = bits + 0x7fff + (bits >> 16 & 1);
    return choose((i32_vector)(floats != floats), bits | 0x400000, rounded);
}
#endif

TEMPLATE u32_vector bf16_pairs(f32_vector lower, f32_vector upper)
{
    return bf16_round(lower) >> 16 | (bf16_round(upper) & 0xffff0000);
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
#define BAND(x, y, mask)     ((x) & (y))
#define BOR(x, y, mask)      ((x) | (y))
#define BXOR(x, y, mask)     ((x) ^ (y))
#define CHOOSE(which, x, y, mask)                                                                          \
    ((__typeof__(x))(((mask)(which) & (mask)(x)) | (~(mask)(which) & (mask)(y))))

/* raw: as they are in memory; widen and narrow convert from it and to it. */
#define RESULT_OF(name, raw, vector, mask, widen, narrow, OPERATION)                                       \
    TEMPLATE raw name##_of(raw a, raw b)                                                                   \
    {                                                                                                      \
        const vector x = widen(a), y = widen(b);                                                           \
        return narrow(OPERATION(x, y, mask));                                                              \
    }
#define BF16_RESULT_OF(name, OPERATION)                                                                    \
    TEMPLATE u32_vector name##_of(u32_vector a, u32_vector b)                                              \
    {                                                                                                      \
        const f32_vector x = bf16_lower(a), y = bf16_lower(b), u = bf16_upper(a), v = bf16_upper(b);       \
        return bf16_pairs(OPERATION(x, y, u32_vector), OPERATION(u, v, u32_vector));                       \
    }

#define REDUCE_FUNCTION(name, element, raw)                                                                \
    TARGET static void name(void *to, const void *left, const void *right, size_t count)                   \
    {                                                                                                      \
        const size_t bytes = count * sizeof(element), whole = bytes - bytes % sizeof(raw);                 \
        for (size_t at = 0; at < whole; at += sizeof(raw)) {                                               \
            raw a, b;                                                                                      \
            memcpy(&a, (const uint8_t *)left + at, sizeof a);                                              \
            memcpy(&b, (const uint8_t *)right + at, sizeof b);                                             \
            const raw result = name##_of(a, b);                                                            \
            memcpy((uint8_t *)to + at, &result, sizeof result);                                            \
        }                                                                                                  \
        if (whole < bytes) {                                                                               \
            raw a = {0}, b = {0};                                                                          \
            memcpy(&a, (const uint8_t *)left + whole, bytes - whole);                                      \
            memcpy(&b, (const uint8_t *)right + whole, bytes - whole);                                     \
            const raw result = name##_of(a, b);                                                            \
            memcpy((uint8_t *)to + whole, &result, bytes - whole);                                         \
        }                                                                                                  \
    }

#define DIVIDE_FUNCTION(name, element, raw, vector)                                                        \
    TARGET static void name(void *at, size_t count, uint32_t by)                                           \
    {                                                                                                      \
        const vector all = (vector){0} + (__typeof__(((vector){0})[0]))by;                                 \
        const size_t bytes = count * sizeof(element);                                                      \
        for (size_t i = 0; i < bytes; i += sizeof(raw)) {                                                  \
            const size_t now = bytes - i < sizeof(raw) ? bytes - i : sizeof(raw);                          \
            raw a = {0};                                                                                   \
            memcpy(&a, (uint8_t *)at + i, now);                                                            \
            a = name##_of(a, all);                                                                         \
            memcpy((uint8_t *)at + i, &a, now);                                                            \
        }                                                                                                  \
    }

#define FUNCTIONS(type, element, raw)                                                                      \
    REDUCE_FUNCTION(sum_##type, element, raw)                                                              \
    REDUCE_FUNCTION(prod_##type, element, raw)                                                             \
    REDUCE_FUNCTION(min_##type, element, raw)                                                              \
    REDUCE_FUNCTION(max_##type, element, raw)

#define FLOAT_FUNCTIONS(type, element, raw, vector, mask, widen, narrow)                                   \
    RESULT_OF(sum_##type, raw, vector, mask, widen, narrow, SUM)                                           \
    RESULT_OF(prod_##type, raw, vector, mask, widen, narrow, PROD)                                         \
    RESULT_OF(min_##type, raw, vector, mask, widen, narrow, MIN)                                           \
    RESULT_OF(max_##type, raw, vector, mask, widen, narrow, MAX)                                           \
    TEMPLATE raw divide_##type##_of(raw a, vector by)                                                      \
    {                                                                                                      \
        return narrow(widen(a) / by);                                                                      \
    }                                                                                                      \
    FUNCTIONS(type, element, raw)                                                                          \
    DIVIDE_FUNCTION(divide_##type, element, raw, vector)

/* Of signed integers the sum and the product are those of unsigned ones: they wrap around. */
#define INTEGER_FUNCTIONS(type, element, vector, wrapping)                                                 \
    RESULT_OF(sum_##type, wrapping, wrapping, wrapping, SAME, SAME, SUM)                                   \
    RESULT_OF(prod_##type, wrapping, wrapping, wrapping, SAME, SAME, PROD)                                 \
    RESULT_OF(min_##type, vector, vector, wrapping, SAME, SAME, INT_MIN_)                                  \
    RESULT_OF(max_##type, vector, vector, wrapping, SAME, SAME, INT_MAX_)                                  \
    REDUCE_FUNCTION(sum_##type, element, wrapping)                                                         \
    REDUCE_FUNCTION(prod_##type, element, wrapping)                                                        \
    REDUCE_FUNCTION(min_##type, element, vector)                                                           \
    REDUCE_FUNCTION(max_##type, element, vector)

FLOAT_FUNCTIONS(f32, float, f32_vector, f32_vector, u32_vector, SAME, SAME)
FLOAT_FUNCTIONS(f64, double, f64_vector, f64_vector, u64_vector, SAME, SAME)
FLOAT_FUNCTIONS(f16, uint16_t, halves_vector, f32_vector, u32_vector, f16_widen, f16_narrow)
INTEGER_FUNCTIONS(i32, int32_t, i32_vector, u32_vector)
INTEGER_FUNCTIONS(i64, int64_t, i64_vector, u64_vector)
INTEGER_FUNCTIONS(u8, uint8_t, u8_vector, u8_vector)
INTEGER_FUNCTIONS(i8, int8_t, i8_vector, u8_vector)
INTEGER_FUNCTIONS(i16, int16_t, i16_vector, u16_vector)

#define BITS_FUNCTION(name, OPERATION)                                                                     \
    RESULT_OF(name, u64_vector, u64_vector, u64_vector, SAME, SAME, OPERATION)                             \
    REDUCE_FUNCTION(name, uint8_t, u64_vector)
BITS_FUNCTION(band, BAND)
BITS_FUNCTION(bor, BOR)
BITS_FUNCTION(bxor, BXOR)

BF16_RESULT_OF(sum_bf16, SUM)
BF16_RESULT_OF(prod_bf16, PROD)
BF16_RESULT_OF(min_bf16, MIN)
BF16_RESULT_OF(max_bf16, MAX)
TEMPLATE u32_vector divide_bf16_of(u32_vector a, f32_vector by)
{
    return bf16_pairs(bf16_lower(a) / by, bf16_upper(a) / by);
}
FUNCTIONS(bf16, uint16_t, u32_vector)
DIVIDE_FUNCTION(divide_bf16, uint16_t, u32_vector, f32_vector)

#define KERNEL_REDUCE(constant, type, bytes)                                                               \
    [ELEMENT_##constant] = {sum_##type, prod_##type, min_##type, max_##type},
#define KERNEL_FUNCTIONS                                                                                   \
    .reduce = {ELEMENT_TYPES(KERNEL_REDUCE)}, .bits = {band, bor, bxor},                                   \
    .divide = {[ELEMENT_F32] = divide_f32,                                                                 \
               [ELEMENT_F64] = divide_f64,                                                                 \
               [ELEMENT_F16] = divide_f16,                                                                 \
               [ELEMENT_BF16] = divide_bf16}

#endif
