/*
 * elements.h - elements of any type: as F32 four at a time, and what is done to those of a tensor by
 * itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_HADAMARD_ELEMENTS_H
#define LH_CODING_HADAMARD_ELEMENTS_H

#include <string.h>

#include <longhaul/hadamard.h>

/* A vector of every CPU, or four instructions. */
typedef float four_floats __attribute__((vector_size(16)));
typedef uint32_t four_words __attribute__((vector_size(16)));
typedef int32_t four_ints __attribute__((vector_size(16)));
typedef uint16_t four_halves __attribute__((vector_size(8)));

static inline size_t element_bytes(enum lh_hadamard_type type)
{
    return type == LH_HADAMARD_F32 ? 4 : 2;
}

static inline four_words f16_to_f32(four_words half)
{
    const four_words magnitude = half & 0x7fff;
    /* The exponent's bias differs by 112; the product is right for subnormal numbers, too. */
    four_words bits = (four_words)((four_floats)(magnitude << 13) * 0x1p112f);
    bits |= (four_words)((four_ints)magnitude >= 0x7c00) & 0x7f800000;
    return bits | (half & 0x8000) << 16;
}

/* To the nearest, of two the even one; of less than hadamard_limit_bits(). */
static inline four_words f32_to_f16(four_words bits)
{
    const four_words magnitude = bits & 0x7fffffff;
    const four_words normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    /* The last bit of 0.5 + x is that of a subnormal F16. */
    const four_words subnormal = (four_words)((four_floats)magnitude + 0.5f) - 0x3f000000;
    const four_words small = (four_words)((four_ints)magnitude < 0x38800000);
    return (subnormal & small) | (normal & ~small) | (bits >> 16 & 0x8000);
}

static inline four_words f32_to_bf16(four_words bits)
{
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* Elements at … at + 3. */
static inline four_words load_four(const void *from, size_t at, enum lh_hadamard_type type)
{
    four_words bits;
    four_halves halves;
    if (type == LH_HADAMARD_F32) {
        memcpy(&bits, (const uint8_t *)from + 4 * at, sizeof bits);
        return bits;
    }
    memcpy(&halves, (const uint8_t *)from + 2 * at, sizeof halves);
    bits = __builtin_convertvector(halves, four_words);
    return type == LH_HADAMARD_BF16 ? bits << 16 : f16_to_f32(bits);
}

static inline void store_four(void *to, size_t at, four_words bits, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32) {
        memcpy((uint8_t *)to + 4 * at, &bits, sizeof bits);
        return;
    }
    bits = type == LH_HADAMARD_BF16 ? f32_to_bf16(bits) : f32_to_f16(bits);
    four_halves halves = __builtin_convertvector(bits, four_halves);
    memcpy((uint8_t *)to + 2 * at, &halves, sizeof halves);
}

/* The number of the first element of from … from + count - 1 that is NaN or infinite; from + count: none.
 */
size_t elements_first_non_finite(const void *at, size_t from, size_t count, enum lh_hadamard_type type);
/* Makes them 0; returns their number. */
size_t elements_zero_non_finite(void *at, size_t from, size_t count, enum lh_hadamard_type type);
/* Multiplies elements. False: one has become infinite, or was; it is zero in that place. */
bool elements_scale(void *at, size_t from, size_t count, enum lh_hadamard_type type, float factor);

#endif
