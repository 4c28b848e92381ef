/*
 * crc32_fold.h - a crc32_kernel by carry-less multiplication of whole vectors (V. Gopal et al., "Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). Who includes it has defined
 *
 *   VECTOR_BYTES        of a vector
 *   TARGET, TEMPLATE    attributes of functions
 *   vector              its type
 *   load(at)            a vector from memory
 *   add_crc(x, crc)     x, with crc added to its first four bytes
 *   broadcast(factors)  the same 16 bytes in each lane
 *   fold(x, factors, y) x, moved by as much as the factors stand for, plus y
 *
 * A lane of 16 bytes holds the polynomial of 128 bits in which bit i is the coefficient of x^(127 - i). To
 * move it by d bits is to multiply it with x^d mod P; its first 8 bytes, which stand 64 places higher, with
 * x^(d + 64) mod P. The product of two reflected numbers of 64 bits lies one place too low, hence the
 * exponents of the factors: d + 63 and d - 1.
 *
 * Four vectors are moved side by side, for a multiplication takes four times as long as the CPU needs to
 * begin the next; at the end each is moved to the place of the next, then each lane of the last.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#if defined(VECTOR_BYTES) && !defined(LH_WIRE_CRC32_FOLD_H)
#define LH_WIRE_CRC32_FOLD_H

#include <immintrin.h>
#include <isa-l/crc.h>
#include <string.h>

#include "wire/crc32.h"

#define CACHE_LINE_BYTES 64u
#define LANE_BYTES       16u
#define LANES            (VECTOR_BYTES / LANE_BYTES)
#define VECTORS          4u
#define STRIDE_BYTES     (VECTORS * VECTOR_BYTES)

/* x^(d + 63) mod P and x^(d - 1) mod P in the upper halves of their 8 bytes. */
#define FACTORS(first_8, last_8)                                                                           \
    _mm_set_epi64x((long long)(last_8##ull << 32), (long long)(first_8##ull << 32))
#define MOVE_128  FACTORS(0x65673B46, 0x9BA54C6F)
#define MOVE_256  FACTORS(0x9570D495, 0x01B5FD1D)
#define MOVE_512  FACTORS(0x653D9822, 0xCAD38E8F)
#define MOVE_1024 FACTORS(0x7D657A10, 0x7406FA95)
#define MOVE_2048 FACTORS(0x7CC8E1E7, 0x03F9F863)

TEMPLATE __m128i fold_lane(__m128i x, __m128i factors, __m128i y)
{
    return _mm_xor_si128(
        _mm_xor_si128(_mm_clmulepi64_si128(x, factors, 0x00), _mm_clmulepi64_si128(x, factors, 0x11)), y);
}

TEMPLATE void fetch(const uint8_t *memory)
{
    for (size_t at = 0; at < STRIDE_BYTES; at += CACHE_LINE_BYTES)
        __builtin_prefetch(memory + at);
}

/* At least STRIDE_BYTES. */
TARGET static uint32_t add(uint32_t crc, const uint8_t *data, size_t bytes, const uint8_t *later)
{
    const vector by_stride = broadcast(VECTOR_BYTES == 32 ? MOVE_1024 : MOVE_2048);
    const vector by_vector = broadcast(VECTOR_BYTES == 32 ? MOVE_256 : MOVE_512);
    /* What came before counts as if it were added to the first four bytes. */
    vector a = add_crc(load(data), ~crc);
    vector b = load(data + VECTOR_BYTES);
    vector c = load(data + 2 * VECTOR_BYTES);
    vector d = load(data + 3 * VECTOR_BYTES);
    size_t at = STRIDE_BYTES;
    for (; bytes - at >= STRIDE_BYTES; at += STRIDE_BYTES) {
        if (later != NULL)
            fetch(later + at - STRIDE_BYTES);
        a = fold(a, by_stride, load(data + at));
        b = fold(b, by_stride, load(data + at + VECTOR_BYTES));
        c = fold(c, by_stride, load(data + at + 2 * VECTOR_BYTES));
        d = fold(d, by_stride, load(data + at + 3 * VECTOR_BYTES));
    }
    vector x = fold(fold(fold(a, by_vector, b), by_vector, c), by_vector, d);
    for (; bytes - at >= VECTOR_BYTES; at += VECTOR_BYTES)
        x = fold(x, by_vector, load(data + at));

    __m128i lane[LANES];
    memcpy(lane, &x, sizeof lane);
    __m128i rest = lane[0];
    for (unsigned i = 1; i < LANES; i++)
        rest = fold_lane(rest, MOVE_128, lane[i]);
    for (; bytes - at >= LANE_BYTES; at += LANE_BYTES)
        rest = fold_lane(rest, MOVE_128, _mm_loadu_si128((const __m128i *)(const void *)(data + at)));
    uint8_t last[2 * LANE_BYTES];
    memcpy(last, &rest, LANE_BYTES);
    memcpy(last + LANE_BYTES, data + at, bytes - at);
    /* A CRC of ~0 is a state of zeros. */
    return crc32_gzip_refl(~0u, last, LANE_BYTES + (uint64_t)(bytes - at));
}

#endif
