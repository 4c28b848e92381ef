/*
 * reduce_avx512.c - 64 bytes at once.
 *
 * The CPU's own conversions to BF16 are not used: they take subnormal numbers for zeros.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/reduce.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define VECTOR_BYTES 64
#define TARGET       __attribute__((target("avx512f,avx512bw,avx512dq")))
#define TEMPLATE     __attribute__((target("avx512f,avx512bw,avx512dq"), always_inline)) static inline
#define F16_INSTRUCTIONS
#define f16_widen(halves) ((f32_vector)_mm512_cvtph_ps((__m256i)(halves)))
#define f16_narrow(floats)                                                                                 \
    ((halves_vector)_mm512_cvtps_ph((__m512)(floats), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#define bf16_round(floats) ((u32_vector)words_round((__m512)(floats)))

TEMPLATE __m512i words_round(__m512 floats)
{
    const __m512i bits = _mm512_castps_si512(floats);
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const __mmask16 nan = _mm512_cmp_ps_mask(floats, floats, _CMP_UNORD_Q);
    const __m512i up = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_mask_add_epi32(up, odd, up, _mm512_set1_epi32(1));
    return _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
}

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq");
}

#include "collective/reduce_template.h"

const struct reduce_kernel reduce_kernel_avx512 = {
    .name = "avx512", .runs_here = runs_here, KERNEL_FUNCTIONS};

#endif
