/*
 * elements.c - looks at the exponents of a stretch of elements at once, and at each one only where that
 * found one.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/elements.h"

#include <assert.h>

#include "coding/hadamard/kernel.h"

#define STRETCH_BYTES 1024u

/* The bits that are all ones where an element is NaN or infinite. */
static uint32_t exponent_of(enum lh_hadamard_type type)
{
    return type == LH_HADAMARD_F32 ? 0x7f800000 : type == LH_HADAMARD_BF16 ? 0x7f80 : 0x7c00;
}

static bool is_finite(const uint8_t *at, enum lh_hadamard_type type)
{
    const uint32_t exponent = exponent_of(type);
    uint32_t word;
    uint16_t half;
    if (type == LH_HADAMARD_F32) {
        memcpy(&word, at, sizeof word);
        return (word & exponent) != exponent;
    }
    memcpy(&half, at, sizeof half);
    return (half & exponent) != exponent;
}

/* Of STRETCH_BYTES. Adding the exponent's lowest bit to an exponent of ones carries into the sign's place.
 */
static bool stretch_is_finite(const uint8_t *at, enum lh_hadamard_type type)
{
    typedef uint16_t eight_halves __attribute__((vector_size(16)));
    const uint32_t exponent = exponent_of(type);
    if (type == LH_HADAMARD_F32) {
        four_words over = {0};
        for (size_t i = 0; i < STRETCH_BYTES; i += sizeof over) {
            four_words bits;
            memcpy(&bits, at + i, sizeof bits);
            over |= (bits & exponent) + (exponent & -exponent);
        }
        return ((over[0] | over[1] | over[2] | over[3]) >> 31) == 0;
    }
    const uint16_t ones = (uint16_t)exponent;
    const uint16_t lowest = (uint16_t)(exponent & -exponent);
    eight_halves over = {0};
    for (size_t i = 0; i < STRETCH_BYTES; i += sizeof over) {
        eight_halves bits;
        memcpy(&bits, at + i, sizeof bits);
        over |= (bits & ones) + lowest;
    }
    uint32_t all = 0;
    for (size_t i = 0; i < 8; i++)
        all |= over[i];
    return (all & 0x8000) == 0;
}

/* The first stretch from element i on that has one which is not finite, or is cut off by the end. */
static size_t skip_finite(const void *at, size_t i, size_t end, enum lh_hadamard_type type)
{
    const size_t bytes = element_bytes(type);
    const size_t stretch = STRETCH_BYTES / bytes;
    while (end - i >= stretch && stretch_is_finite((const uint8_t *)at + i * bytes, type))
        i += stretch;
    return i;
}

static size_t stretch_end(size_t i, size_t end, enum lh_hadamard_type type)
{
    const size_t stretch = STRETCH_BYTES / element_bytes(type);
    return end - i < stretch ? end : i + stretch;
}

size_t elements_first_non_finite(const void *at, size_t from, size_t count, enum lh_hadamard_type type)
{
    const size_t end = from + count;
    for (size_t i = from; (i = skip_finite(at, i, end, type)) < end;)
        for (const size_t stop = stretch_end(i, end, type); i < stop; i++)
            if (!is_finite((const uint8_t *)at + i * element_bytes(type), type))
                return i;
    return end;
}

size_t elements_zero_non_finite(void *at, size_t from, size_t count, enum lh_hadamard_type type)
{
    const size_t end = from + count;
    size_t zeroed = 0;
    for (size_t i = from; (i = skip_finite(at, i, end, type)) < end;)
        for (const size_t stop = stretch_end(i, end, type); i < stop; i++) {
            uint8_t *place = (uint8_t *)at + i * element_bytes(type);
            if (is_finite(place, type))
                continue;
            memset(place, 0, element_bytes(type));
            zeroed++;
        }
    return zeroed;
}

/* Multiplies elements at … at + 3. Each that is finite then has all bits of its word set. */
static four_words scale_four(void *in, size_t at, enum lh_hadamard_type type, float factor)
{
    const int32_t limit = (int32_t)hadamard_limit_bits(type);
    const four_words product = (four_words)((four_floats)load_four(in, at, type) * factor);
    const four_words in_range = (four_words)((four_ints)(product & 0x7fffffff) < (four_ints){0} + limit);
    store_four(in, at, product & in_range, type);
    return in_range;
}

bool elements_scale(void *at, size_t from, size_t count, enum lh_hadamard_type type, float factor)
{
    const size_t end = from + count, whole = end - count % 4;
    four_words fit = (four_words){0} - 1;
    for (size_t i = from; i < whole; i += 4)
        fit &= scale_four(at, i, type, factor);
    if (whole < end) {
        uint8_t four[16] = {0}, *place = (uint8_t *)at + whole * element_bytes(type);
        const size_t bytes = (end - whole) * element_bytes(type);
        memcpy(four, place, bytes);
        fit &= scale_four(four, 0, type, factor);
        memcpy(place, four, bytes);
    }
    return (fit[0] & fit[1] & fit[2] & fit[3]) != 0;
}
