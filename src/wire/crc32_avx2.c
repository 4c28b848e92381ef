/*
 * crc32_avx2.c - 32 bytes at once: AMD since Zen 3, Intel's CPUs without AVX-512 since Alder Lake.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "wire/crc32.h"

#if defined(__x86_64__)

#include <immintrin.h>

/* The thread sanitizer would look at each load of memory that one thread has for itself, and take as long as
 * for all else of a packet: ISA-L's kernels, in assembler, it does not see either. */
#define VECTOR_BYTES 32u
#define TARGET       __attribute__((target("avx2,pclmul,vpclmulqdq"), no_sanitize("thread")))
#define TEMPLATE                                                                                           \
    __attribute__((target("avx2,pclmul,vpclmulqdq"), no_sanitize("thread"), always_inline)) static inline

typedef __m256i vector;

TEMPLATE vector load(const uint8_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

TEMPLATE vector add_crc(vector x, uint32_t crc)
{
    return _mm256_xor_si256(x, _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, (int)crc));
}

TEMPLATE vector broadcast(__m128i factors)
{
    return _mm256_broadcastsi128_si256(factors);
}

TEMPLATE vector fold(vector x, vector factors, vector y)
{
    return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(x, factors, 0x00),
                                             _mm256_clmulepi64_epi128(x, factors, 0x11)),
                            y);
}

#include "wire/crc32_fold.h"

static bool runs_here(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul") &&
           __builtin_cpu_supports("vpclmulqdq");
}

const struct crc32_kernel crc32_kernel_avx2 = {"avx2", runs_here, STRIDE_BYTES, add};

#endif
