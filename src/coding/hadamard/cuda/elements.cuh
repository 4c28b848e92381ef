/*
 * elements.cuh - elements of a type as F32, and what is not finite.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_HADAMARD_CUDA_ELEMENTS_CUH
#define LH_CODING_HADAMARD_CUDA_ELEMENTS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

#include "coding/hadamard/cuda/kernels.h"

/* Words of 32 bits, with one element or two. limit: bits of the F32 from which on a magnitude exceeds the
 * type. */
template <int TYPE> struct element;

template <> struct element<LH_HADAMARD_F32> {
    typedef uint32_t bits;
    static constexpr int per_word = 1;
    static constexpr uint32_t limit = 0x7f800000u;
    static __device__ void unpack(uint32_t word, float *x)
    {
        x[0] = __uint_as_float(word);
    }
    static __device__ uint32_t pack(const float *x)
    {
        return __float_as_uint(x[0]);
    }
    static __device__ float get(bits one)
    {
        return __uint_as_float(one);
    }
    static __device__ bits put(float x)
    {
        return __float_as_uint(x);
    }
};

template <typename PAIR> static __device__ inline uint32_t both_bits(PAIR pair)
{
    uint32_t bits;
    static_assert(sizeof bits == sizeof pair, "a pair is not a word");
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

template <> struct element<LH_HADAMARD_BF16> {
    typedef uint16_t bits;
    static constexpr int per_word = 2;
    static constexpr uint32_t limit = 0x7f7f8000u;
    static __device__ void unpack(uint32_t word, float *x)
    {
        x[0] = __uint_as_float(word << 16);
        x[1] = __uint_as_float(word & 0xffff0000u);
    }
    static __device__ uint32_t pack(const float *x)
    {
        return both_bits(__floats2bfloat162_rn(x[0], x[1]));
    }
    static __device__ float get(bits one)
    {
        return __uint_as_float((uint32_t)one << 16);
    }
    static __device__ bits put(float x)
    {
        return __bfloat16_as_ushort(__float2bfloat16_rn(x));
    }
};

template <> struct element<LH_HADAMARD_F16> {
    typedef uint16_t bits;
    static constexpr int per_word = 2;
    static constexpr uint32_t limit = 0x477ff000u;
    static __device__ void unpack(uint32_t word, float *x)
    {
        x[0] = get((bits)word);
        x[1] = get((bits)(word >> 16));
    }
    static __device__ uint32_t pack(const float *x)
    {
        return both_bits(__floats2half2_rn(x[0], x[1]));
    }
    static __device__ float get(bits one)
    {
        return __half2float(__ushort_as_half(one));
    }
    static __device__ bits put(float x)
    {
        return __half_as_ushort(__float2half_rn(x));
    }
};

static __device__ inline bool is_finite(float x)
{
    return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

/* NaN if either is. */
static __device__ inline float larger(float a, float b)
{
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}

/* Nothing more is to be changed: an element was found that is not finite. */
static __device__ inline bool canceled(const cuda_call &call)
{
    return call.cancel && call.report->non_finite != CUDA_NOWHERE;
}

static __device__ inline void take_min(uint64_t *minimum, uint64_t value)
{
    static_assert(sizeof(unsigned long long) == sizeof(uint64_t), "atomicMin takes another type");
    atomicMin((unsigned long long *)minimum, (unsigned long long)value);
}

static __device__ inline void count_zeroed(const cuda_call &call, uint64_t zeroed)
{
    atomicAdd((unsigned long long *)&call.report->zeroed_less_one, (unsigned long long)zeroed);
}

#endif
