/*
 * hadamard_avx512.c - 16 floats at once, 16 vectors of them in registers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/hadamard_kernel.h"

#if defined(__x86_64__)

#include <assert.h>
#include <immintrin.h>
#include <string.h>

#define LANES_LOG     4u
#define REGISTERS_LOG 4u

#define TARGET __attribute__((target("avx512f,avx512bw")))
/* Inlined with constant arguments, so that all vectors are registers. */
#define TEMPLATE __attribute__((target("avx512f,avx512bw"), always_inline)) static inline

typedef __m512 vector;

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

TEMPLATE vector load_float(const float *at)
{
    return _mm512_load_ps(at);
}

TEMPLATE void store_float(float *at, vector v)
{
    _mm512_store_ps(at, v);
}

TEMPLATE vector broadcast(float value)
{
    return _mm512_set1_ps(value);
}

TEMPLATE vector multiply_add(vector a, vector b, vector c)
{
    return _mm512_fmadd_ps(a, b, c);
}

TEMPLATE vector multiply_subtract(vector a, vector b, vector c)
{
    return _mm512_fmsub_ps(a, b, c);
}

/* Masks are bits of the signs. */
typedef __mmask16 __attribute__((may_alias)) mask16;
typedef __mmask32 __attribute__((may_alias)) mask32;

TEMPLATE vector flip(vector v, const uint64_t *signs, size_t at, size_t more)
{
    const __mmask16 minus = *(const mask16 *)((const uint8_t *)signs + at / 8 + more / 8);
    __m512i bits = _mm512_castps_si512(v);
    return _mm512_castsi512_ps(
        _mm512_mask_xor_epi32(bits, minus, bits, _mm512_set1_epi32((int)0x80000000u)));
}

TEMPLATE __m512i flip_halves(__m512i halves, const uint64_t *signs, size_t at, size_t more)
{
    const __mmask32 minus = *(const mask32 *)((const uint8_t *)signs + at / 8 + more / 8);
    return _mm512_mask_add_epi16(halves, minus, halves, _mm512_set1_epi16((short)0x8000));
}

TEMPLATE void load_typed(vector *v, const void *from, size_t at, size_t more, enum lh_hadamard_type type,
                         const uint64_t *signs)
{
    const size_t bytes = type == LH_HADAMARD_F32 ? 4 : 2;
    const uint8_t *place = (const uint8_t *)from + at * bytes + more * bytes;
    if (type == LH_HADAMARD_BF16) {
        __m512i halves = _mm512_loadu_si512(place);
        if (signs)
            halves = flip_halves(halves, signs, at, more);
        v[0] = _mm512_castsi512_ps(_mm512_slli_epi32(halves, 16));
        v[1] = _mm512_castsi512_ps(_mm512_and_si512(halves, _mm512_set1_epi32((int)0xffff0000u)));
        return;
    }
    v[0] = type == LH_HADAMARD_F32
               ? _mm512_loadu_ps(place)
               : _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)(const void *)place));
    if (signs)
        v[0] = flip(v[0], signs, at, more);
}

struct range {
    vector sum;   /* F32: 0, or NaN */
    __m512i peak; /* F16: bits of the largest magnitude; BF16: twice those of 16 bits */
};

TEMPLATE struct range range_none(void)
{
    return (struct range){_mm512_setzero_ps(), _mm512_setzero_si512()};
}

/* Whose upper halves are the nearest BF16, of two the even one. */
TEMPLATE __m512i rounded(vector v)
{
    const __m512i bits = _mm512_castps_si512(v);
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const __m512i up = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    return _mm512_mask_add_epi32(up, odd, up, _mm512_set1_epi32(1));
}

TEMPLATE void store_typed(const vector *v, void *to, size_t at, size_t more, enum lh_hadamard_type type,
                          const uint64_t *signs, bool stream, struct range *range)
{
    const size_t bytes = type == LH_HADAMARD_F32 ? 4 : 2;
    uint8_t *place = (uint8_t *)to + at * bytes + more * bytes;
    if (type == LH_HADAMARD_BF16) {
        __m512i halves =
            _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(rounded(v[0]), 16), rounded(v[1]));
        range->peak = _mm512_max_epu16(range->peak, _mm512_add_epi16(halves, halves));
        if (signs)
            halves = flip_halves(halves, signs, at, more);
        if (stream)
            _mm512_stream_si512((__m512i *)(void *)place, halves);
        else
            _mm512_storeu_si512(place, halves);
        return;
    }
    const vector result = signs ? flip(v[0], signs, at, more) : v[0];
    if (type == LH_HADAMARD_F32) {
        range->sum = _mm512_fmadd_ps(result, _mm512_setzero_ps(), range->sum);
        if (stream)
            _mm512_stream_ps((float *)(void *)place, result);
        else
            _mm512_storeu_ps(place, result);
        return;
    }
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(result), _mm512_set1_epi32(0x7fffffff));
    range->peak = _mm512_max_epu32(range->peak, magnitude);
    const __m256i halves = _mm512_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (stream)
        _mm256_stream_si256((__m256i *)(void *)place, halves);
    else
        _mm256_storeu_si256((__m256i_u *)(void *)place, halves);
}

TEMPLATE bool range_ok(const struct range *range, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32)
        return _mm512_cmp_ps_mask(range->sum, range->sum, _CMP_UNORD_Q) == 0;
    if (type == LH_HADAMARD_BF16) /* an exponent of ones */
        return _mm512_cmpge_epu16_mask(range->peak, _mm512_set1_epi16((short)0xff00)) == 0;
    return _mm512_reduce_max_epu32(range->peak) < hadamard_limit_bits(type);
}

TEMPLATE vector plus_minus(uint32_t bit)
{
    static const uint16_t minus[] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00};
    return _mm512_mask_blend_ps(minus[bit], _mm512_set1_ps(1), _mm512_set1_ps(-1));
}

TEMPLATE vector lane_butterfly(vector v, uint32_t bit)
{
    vector other = bit == 0   ? _mm512_permute_ps(v, _MM_SHUFFLE(2, 3, 0, 1))
                   : bit == 1 ? _mm512_permute_ps(v, _MM_SHUFFLE(1, 0, 3, 2))
                   : bit == 2 ? _mm512_shuffle_f32x4(v, v, _MM_SHUFFLE(2, 3, 0, 1))
                              : _mm512_shuffle_f32x4(v, v, _MM_SHUFFLE(1, 0, 3, 2));
    return _mm512_fmadd_ps(v, plus_minus(bit), other);
}

TEMPLATE void exchange(vector *a, vector *b, uint32_t bit)
{
    const vector x = *a, y = *b;
    switch (bit) {
    case 0:
        *a = _mm512_mask_moveldup_ps(x, 0xaaaa, y);
        *b = _mm512_mask_movehdup_ps(y, 0x5555, x);
        break;
    case 1:
        *a = _mm512_mask_permute_ps(x, 0xcccc, y, _MM_SHUFFLE(1, 0, 1, 0));
        *b = _mm512_mask_permute_ps(y, 0x3333, x, _MM_SHUFFLE(3, 2, 3, 2));
        break;
    case 2:
        *a = _mm512_mask_shuffle_f32x4(x, 0xf0f0, y, y, _MM_SHUFFLE(2, 2, 0, 0));
        *b = _mm512_mask_shuffle_f32x4(y, 0x0f0f, x, x, _MM_SHUFFLE(3, 3, 1, 1));
        break;
    default:
        *a = _mm512_shuffle_f32x4(x, y, _MM_SHUFFLE(1, 0, 1, 0));
        *b = _mm512_shuffle_f32x4(x, y, _MM_SHUFFLE(3, 2, 3, 2));
        break;
    }
}

#include "coding/hadamard/hadamard_template.h"

const struct hadamard_kernel hadamard_kernel_avx512 = {"avx512", runs_here, BLOCK_LOG_MIN,
                                                       encode,   decode,    combine};

#endif
