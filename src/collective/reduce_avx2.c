/*
 * reduce_avx2.c - 32 bytes at once.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "collective/reduce.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define VECTOR_BYTES 32
#define TARGET       __attribute__((target("avx2,f16c")))
#define TEMPLATE     __attribute__((target("avx2,f16c"), always_inline)) static inline
#define F16_INSTRUCTIONS
#define f16_widen(halves) ((f32_vector)_mm256_cvtph_ps((__m128i)(halves)))
#define f16_narrow(floats)                                                                                 \
    ((halves_vector)_mm256_cvtps_ph((__m256)(floats), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
/* Not every compiler's builtin knows f16c. */
static bool runs_here(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

#include "collective/reduce_template.h"

const struct reduce_kernel reduce_kernel_avx2 = {.name = "avx2", .runs_here = runs_here, KERNEL_FUNCTIONS};

#endif
