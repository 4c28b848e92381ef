/*
 * hadamard_avx2.c - 8 floats at once, 8 vectors of them in registers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/hadamard_kernel.h"

#if defined(__x86_64__)

#include <assert.h>
#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#define LANES_LOG     3u
#define REGISTERS_LOG 3u

#define TARGET __attribute__((target("avx2,fma,f16c")))
/* Inlined with constant arguments, so that all vectors are registers. */
#define TEMPLATE __attribute__((target("avx2,fma,f16c"), always_inline)) static inline

typedef __m256 vector;

/* Not every compiler's builtin knows it. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

TEMPLATE vector load_float(const float *at)
{
    return _mm256_load_ps(at);
}

TEMPLATE void store_float(float *at, vector v)
{
    _mm256_store_ps(at, v);
}

TEMPLATE vector broadcast(float value)
{
    return _mm256_set1_ps(value);
}

TEMPLATE vector multiply_add(vector a, vector b, vector c)
{
    return _mm256_fmadd_ps(a, b, c);
}

TEMPLATE vector multiply_subtract(vector a, vector b, vector c)
{
    return _mm256_fmsub_ps(a, b, c);
}

TEMPLATE vector flip(vector v, const uint64_t *signs, size_t at, size_t more)
{
    int bits = ((const uint8_t *)signs)[at / 8 + more / 8];
    const __m256i to_the_sign = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    __m256i sign = _mm256_and_si256(_mm256_sllv_epi32(_mm256_set1_epi32(bits), to_the_sign),
                                    _mm256_set1_epi32((int)0x80000000u));
    return _mm256_xor_ps(v, _mm256_castsi256_ps(sign));
}

TEMPLATE __m256i flip_halves(__m256i halves, const uint64_t *signs, size_t at, size_t more)
{
    uint16_t bits;
    memcpy(&bits, (const uint8_t *)signs + at / 8 + more / 8, sizeof bits);
    const __m256i to_the_sign = _mm256_setr_epi16((short)0x8000, 0x4000, 0x2000, 0x1000, 0x800, 0x400,
                                                  0x200, 0x100, 0x80, 0x40, 0x20, 0x10, 8, 4, 2, 1);
    __m256i sign = _mm256_mullo_epi16(_mm256_set1_epi16((short)bits), to_the_sign);
    return _mm256_xor_si256(halves, _mm256_and_si256(sign, _mm256_set1_epi16((short)0x8000)));
}

TEMPLATE void load_typed(vector *v, const void *from, size_t at, size_t more, enum lh_hadamard_type type,
                         const uint64_t *signs)
{
    const size_t bytes = type == LH_HADAMARD_F32 ? 4 : 2;
    const uint8_t *place = (const uint8_t *)from + at * bytes + more * bytes;
    if (type == LH_HADAMARD_BF16) {
        __m256i halves = _mm256_loadu_si256((const __m256i_u *)(const void *)place);
        if (signs)
            halves = flip_halves(halves, signs, at, more);
        v[0] = _mm256_castsi256_ps(_mm256_slli_epi32(halves, 16));
        v[1] = _mm256_castsi256_ps(_mm256_and_si256(halves, _mm256_set1_epi32((int)0xffff0000u)));
        return;
    }
    v[0] = type == LH_HADAMARD_F32
               ? _mm256_loadu_ps((const float *)(const void *)place)
               : _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(const void *)place));
    if (signs)
        v[0] = flip(v[0], signs, at, more);
}

struct range {
    vector sum;   /* F32: 0, or NaN */
    __m256i peak; /* F16: bits of the largest magnitude; BF16: twice those of 16 bits */
};

TEMPLATE struct range range_none(void)
{
    return (struct range){_mm256_setzero_ps(), _mm256_setzero_si256()};
}

/* Whose upper halves are the nearest BF16, of two the even one. */
TEMPLATE __m256i rounded(vector v)
{
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
}

TEMPLATE void store_typed(const vector *v, void *to, size_t at, size_t more, enum lh_hadamard_type type,
                          const uint64_t *signs, bool stream, struct range *range)
{
    const size_t bytes = type == LH_HADAMARD_F32 ? 4 : 2;
    uint8_t *place = (uint8_t *)to + at * bytes + more * bytes;
    if (type == LH_HADAMARD_BF16) {
        __m256i halves = _mm256_blend_epi16(_mm256_srli_epi32(rounded(v[0]), 16), rounded(v[1]), 0xaa);
        range->peak = _mm256_max_epu16(range->peak, _mm256_add_epi16(halves, halves));
        if (signs)
            halves = flip_halves(halves, signs, at, more);
        if (stream)
            _mm256_stream_si256((__m256i *)(void *)place, halves);
        else
            _mm256_storeu_si256((__m256i_u *)(void *)place, halves);
        return;
    }
    const vector result = signs ? flip(v[0], signs, at, more) : v[0];
    if (type == LH_HADAMARD_F32) {
        range->sum = _mm256_fmadd_ps(result, _mm256_setzero_ps(), range->sum);
        if (stream)
            _mm256_stream_ps((float *)(void *)place, result);
        else
            _mm256_storeu_ps((float *)(void *)place, result);
        return;
    }
    const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(result), _mm256_set1_epi32(0x7fffffff));
    range->peak = _mm256_max_epu32(range->peak, magnitude);
    const __m128i halves = _mm256_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (stream)
        _mm_stream_si128((__m128i *)(void *)place, halves);
    else
        _mm_storeu_si128((__m128i_u *)(void *)place, halves);
}

TEMPLATE bool range_ok(const struct range *range, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32)
        return _mm256_movemask_ps(_mm256_cmp_ps(range->sum, range->sum, _CMP_UNORD_Q)) == 0;
    const __m256i limit = type == LH_HADAMARD_BF16
                              ? _mm256_set1_epi16((short)0xff00) /* an exponent of ones */
                              : _mm256_set1_epi32((int)hadamard_limit_bits(type));
    const __m256i larger = type == LH_HADAMARD_BF16 ? _mm256_max_epu16(range->peak, limit)
                                                    : _mm256_max_epu32(range->peak, limit);
    const __m256i reached = type == LH_HADAMARD_BF16 ? _mm256_cmpeq_epi16(larger, range->peak)
                                                     : _mm256_cmpeq_epi32(larger, range->peak);
    return _mm256_movemask_epi8(reached) == 0;
}

TEMPLATE vector plus_minus(uint32_t bit)
{
    return bit == 0   ? _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1)
           : bit == 1 ? _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1)
                      : _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1);
}

TEMPLATE vector lane_butterfly(vector v, uint32_t bit)
{
    vector other = bit == 0   ? _mm256_permute_ps(v, _MM_SHUFFLE(2, 3, 0, 1))
                   : bit == 1 ? _mm256_permute_ps(v, _MM_SHUFFLE(1, 0, 3, 2))
                              : _mm256_permute2f128_ps(v, v, 0x01);
    return _mm256_fmadd_ps(v, plus_minus(bit), other);
}

TEMPLATE void exchange(vector *a, vector *b, uint32_t bit)
{
    const vector x = *a, y = *b;
    switch (bit) {
    case 0:
        *a = _mm256_blend_ps(x, _mm256_moveldup_ps(y), 0xaa);
        *b = _mm256_blend_ps(y, _mm256_movehdup_ps(x), 0x55);
        break;
    case 1:
        *a = _mm256_shuffle_ps(x, y, _MM_SHUFFLE(1, 0, 1, 0));
        *b = _mm256_shuffle_ps(x, y, _MM_SHUFFLE(3, 2, 3, 2));
        break;
    default:
        *a = _mm256_permute2f128_ps(x, y, 0x20);
        *b = _mm256_permute2f128_ps(x, y, 0x31);
        break;
    }
}

#include "coding/hadamard/hadamard_template.h"

const struct hadamard_kernel hadamard_kernel_avx2 = {"avx2", runs_here, BLOCK_LOG_MIN,
                                                     encode, decode,    combine};

#endif
