/*
 * kernel_avx512.c - 16 floats at once, 16 vectors of them in registers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/kernel.h"

#if defined(__x86_64__)

#include <assert.h>
#include <immintrin.h>
#include <string.h>

#define LANES_LOG     4u
#define REGISTERS_LOG 4u

#define TARGET __attribute__((target("avx512f")))
/* Inlined with constant arguments, so that all vectors are registers. */
#define TEMPLATE __attribute__((target("avx512f"), always_inline)) static inline

typedef __m512 vector;

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx512f");
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

TEMPLATE vector load_typed(const void *from, size_t at, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32)
        return _mm512_loadu_ps((const uint8_t *)from + 4 * at);
    __m256i halves = _mm256_loadu_si256((const __m256i_u *)(const void *)((const uint8_t *)from + 2 * at));
    if (type == LH_HADAMARD_F16)
        return _mm512_cvtph_ps(halves);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

TEMPLATE __m256i to_halves(vector v, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F16)
        return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    /* To the nearest, of two the even one. */
    __m512i bits = _mm512_castps_si512(v);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    bits = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
}

TEMPLATE void store_typed(void *to, size_t at, vector v, enum lh_hadamard_type type, bool stream)
{
    if (type == LH_HADAMARD_F32) {
        float *place = (float *)(void *)((uint8_t *)to + 4 * at);
        if (stream)
            _mm512_stream_ps(place, v);
        else
            _mm512_storeu_ps(place, v);
    } else {
        void *place = (uint8_t *)to + 2 * at;
        if (stream)
            _mm256_stream_si256(place, to_halves(v, type));
        else
            _mm256_storeu_si256(place, to_halves(v, type));
    }
}

TEMPLATE vector flip(vector v, const uint64_t *signs, size_t at)
{
    __mmask16 mask;
    memcpy(&mask, (const uint8_t *)signs + at / 8, sizeof mask);
    __m512i bits = _mm512_castps_si512(v);
    return _mm512_castsi512_ps(
        _mm512_mask_xor_epi32(bits, mask, bits, _mm512_set1_epi32((int)0x80000000u)));
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

TEMPLATE void fetch(const void *from, size_t at, enum lh_hadamard_type type)
{
    uintptr_t place = (uintptr_t)from + at * (type == LH_HADAMARD_F32 ? 4 : 2);
    _mm_prefetch((const char *)place, _MM_HINT_T1);
}

struct range {
    vector sum;   /* F32: 0, or NaN */
    __m512i peak; /* BF16, F16: bits of the largest magnitude */
};

TEMPLATE struct range range_none(void)
{
    return (struct range){_mm512_setzero_ps(), _mm512_setzero_si512()};
}

TEMPLATE void range_add(struct range *range, vector v, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32)
        range->sum = _mm512_fmadd_ps(v, _mm512_setzero_ps(), range->sum);
    else
        range->peak = _mm512_max_epu32(
            range->peak, _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff)));
}

TEMPLATE bool range_ok(const struct range *range, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32)
        return _mm512_cmp_ps_mask(range->sum, range->sum, _CMP_UNORD_Q) == 0;
    return _mm512_reduce_max_epu32(range->peak) < hadamard_limit_bits(type);
}

#include "coding/hadamard/template.h"

const struct hadamard_kernel hadamard_kernel_avx512 = {"avx512", runs_here, LANES_LOG + REGISTERS_LOG,
                                                       encode,   decode,    combine};

#endif
