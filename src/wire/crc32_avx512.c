/*
 * crc32_avx512.c - 64 bytes at once, both products and what they are added to in one ternary operation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/crc32.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define VECTOR_BYTES 64u
#define TARGET       __attribute__((target("avx512f,pclmul,vpclmulqdq"), no_sanitize("thread")))
#define TEMPLATE                                                                                           \
    __attribute__((target("avx512f,pclmul,vpclmulqdq"), no_sanitize("thread"), always_inline)) static inline
/* A ^ B ^ C, as a table of results. */
#define XOR_OF_THREE 0x96

typedef __m512i vector;

TEMPLATE vector load(const uint8_t *at)
{
    return _mm512_loadu_si512(at);
}

TEMPLATE vector add_crc(vector x, uint32_t crc)
{
    return _mm512_xor_si512(x, _mm512_maskz_set1_epi32(1, (int)crc));
}

TEMPLATE vector broadcast(__m128i factors)
{
    return _mm512_broadcast_i32x4(factors);
}

TEMPLATE vector fold(vector x, vector factors, vector y)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, factors, 0x00),
                                     _mm512_clmulepi64_epi128(x, factors, 0x11), y, XOR_OF_THREE);
}

#include "wire/crc32_fold.h"

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("pclmul") &&
           __builtin_cpu_supports("vpclmulqdq");
}

const struct crc32_kernel crc32_kernel_avx512 = {"avx512", runs_here, STRIDE_BYTES, add};

#endif
