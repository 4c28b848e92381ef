/*
 * kernel_avx2.c - 8 floats at once, 8 vectors of them in registers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/kernel.h"

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

TEMPLATE vector load_typed(const void *from, size_t at, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32)
        return _mm256_loadu_ps((const float *)(const void *)((const uint8_t *)from + 4 * at));
    __m128i halves = _mm_loadu_si128((const __m128i_u *)(const void *)((const uint8_t *)from + 2 * at));
    if (type == LH_HADAMARD_F16)
        return _mm256_cvtph_ps(halves);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

TEMPLATE __m128i to_halves(vector v, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F16)
        return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    /* To the nearest, of two the even one. */
    __m256i bits = _mm256_castps_si256(v);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    bits = _mm256_srli_epi32(bits, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

TEMPLATE void store_typed(void *to, size_t at, vector v, enum lh_hadamard_type type, bool stream)
{
    if (type == LH_HADAMARD_F32) {
        float *place = (float *)(void *)((uint8_t *)to + 4 * at);
        if (stream)
            _mm256_stream_ps(place, v);
        else
            _mm256_storeu_ps(place, v);
    } else {
        void *place = (uint8_t *)to + 2 * at;
        if (stream)
            _mm_stream_si128(place, to_halves(v, type));
        else
            _mm_storeu_si128(place, to_halves(v, type));
    }
}

TEMPLATE vector flip(vector v, const uint64_t *signs, size_t at)
{
    int bits = ((const uint8_t *)signs)[at / 8];
    const __m256i to_the_sign = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    __m256i sign = _mm256_and_si256(_mm256_sllv_epi32(_mm256_set1_epi32(bits), to_the_sign),
                                    _mm256_set1_epi32((int)0x80000000u));
    return _mm256_xor_ps(v, _mm256_castsi256_ps(sign));
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

TEMPLATE void fetch(const void *from, size_t at, enum lh_hadamard_type type)
{
    uintptr_t place = (uintptr_t)from + at * (type == LH_HADAMARD_F32 ? 4 : 2);
    _mm_prefetch((const char *)place, _MM_HINT_T1);
}

struct range {
    vector sum;   /* F32: 0, or NaN */
    __m256i peak; /* BF16, F16: bits of the largest magnitude */
};

TEMPLATE struct range range_none(void)
{
    return (struct range){_mm256_setzero_ps(), _mm256_setzero_si256()};
}

TEMPLATE void range_add(struct range *range, vector v, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32)
        range->sum = _mm256_fmadd_ps(v, _mm256_setzero_ps(), range->sum);
    else
        range->peak = _mm256_max_epu32(
            range->peak, _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7fffffff)));
}

TEMPLATE bool range_ok(const struct range *range, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32)
        return _mm256_movemask_ps(_mm256_cmp_ps(range->sum, range->sum, _CMP_UNORD_Q)) == 0;
    uint32_t peaks[8];
    _mm256_storeu_si256((__m256i_u *)(void *)peaks, range->peak);
    uint32_t limit = hadamard_limit_bits(type);
    for (size_t i = 0; i < 8; i++)
        if (peaks[i] >= limit)
            return false;
    return true;
}

#include "coding/hadamard/template.h"

const struct hadamard_kernel hadamard_kernel_avx2 = {"avx2", runs_here, LANES_LOG + REGISTERS_LOG,
                                                     encode, decode,    combine};

#endif
