/*
 * hadamard_base.c - four floats at once, in portable C: a vector of every CPU, or four instructions.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/hadamard_kernel.h"

#include <assert.h>

#define LANES_LOG     2u
#define REGISTERS_LOG 3u

#define TARGET
/* Inlined with constant arguments, so that all vectors are registers. */
#define TEMPLATE __attribute__((always_inline)) static inline

typedef four_floats vector;
typedef uint16_t eight_halves __attribute__((vector_size(16)));

static bool runs_here(void)
{
    return true;
}

TEMPLATE vector load_float(const float *at)
{
    vector v;
    memcpy(&v, at, sizeof v);
    return v;
}

TEMPLATE void store_float(float *at, vector v)
{
    memcpy(at, &v, sizeof v);
}

TEMPLATE vector broadcast(float value)
{
    return (vector){value, value, value, value};
}

TEMPLATE vector multiply_add(vector a, vector b, vector c)
{
    return a * b + c;
}

TEMPLATE vector multiply_subtract(vector a, vector b, vector c)
{
    return a * b - c;
}

TEMPLATE four_words flip(four_words bits, const uint64_t *signs, size_t at)
{
    const four_words some = (four_words){0} + (uint32_t)(signs[at / 64] >> at % 64);
    return bits ^ ((some << (four_words){31, 30, 29, 28}) & 0x80000000);
}

TEMPLATE eight_halves flip_halves(eight_halves halves, const uint64_t *signs, size_t at)
{
    const eight_halves some = (eight_halves){0} + (uint16_t)(signs[at / 64] >> at % 64);
    const eight_halves to_the_sign = {0x8000, 0x4000, 0x2000, 0x1000, 0x800, 0x400, 0x200, 0x100};
    return halves ^ ((some * to_the_sign) & 0x8000);
}

/* Of a word of two BF16, the one in the upper half. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define UPPER 1
#else
#define UPPER 0
#endif

TEMPLATE void load_typed(vector *v, const void *from, size_t at, size_t more, enum lh_hadamard_type type,
                         const uint64_t *signs)
{
    if (type == LH_HADAMARD_BF16) {
        eight_halves halves;
        memcpy(&halves, (const uint8_t *)from + 2 * (at + more), sizeof halves);
        if (signs)
            halves = flip_halves(halves, signs, at + more);
        v[!UPPER] = (vector)((four_words)halves << 16);
        v[UPPER] = (vector)((four_words)halves & 0xffff0000);
        return;
    }
    const four_words bits = load_four(from, at + more, type);
    v[0] = (vector)(signs ? flip(bits, signs, at + more) : bits);
}

struct range {
    four_words over; /* all ones where a result is NaN or exceeds the type */
};

TEMPLATE struct range range_none(void)
{
    return (struct range){{0}};
}

TEMPLATE void range_add(struct range *range, four_words bits, enum lh_hadamard_type type)
{
    const four_ints limit = (four_ints){0} + (int32_t)hadamard_limit_bits(type);
    range->over |= (four_words)((four_ints)(bits & 0x7fffffff) >= limit);
}

TEMPLATE bool range_ok(const struct range *range, enum lh_hadamard_type type)
{
    (void)type;
    return (range->over[0] | range->over[1] | range->over[2] | range->over[3]) == 0;
}

TEMPLATE void store_typed(const vector *v, void *to, size_t at, size_t more, enum lh_hadamard_type type,
                          const uint64_t *signs, bool stream, struct range *range)
{
    (void)stream;
    const four_words bits = (four_words)v[0];
    range_add(range, bits, type);
    if (type == LH_HADAMARD_BF16) {
        range_add(range, (four_words)v[1], type);
        const four_words upper = f32_to_bf16((four_words)v[UPPER]) << 16;
        eight_halves halves = (eight_halves)(upper | f32_to_bf16((four_words)v[!UPPER]));
        if (signs)
            halves = flip_halves(halves, signs, at + more);
        memcpy((uint8_t *)to + 2 * (at + more), &halves, sizeof halves);
        return;
    }
    store_four(to, at + more, signs ? flip(bits, signs, at + more) : bits, type);
}

TEMPLATE vector lane_butterfly(vector v, uint32_t bit)
{
    const vector other = bit == 0 ? (vector){v[1], v[0], v[3], v[2]} : (vector){v[2], v[3], v[0], v[1]};
    const four_words minus =
        bit == 0 ? (four_words){0, 1u << 31, 0, 1u << 31} : (four_words){0, 0, 1u << 31, 1u << 31};
    return (vector)((four_words)v ^ minus) + other;
}

TEMPLATE void exchange(vector *a, vector *b, uint32_t bit)
{
    const vector x = *a, y = *b;
    if (bit == 0) {
        *a = (vector){x[0], y[0], x[2], y[2]};
        *b = (vector){x[1], y[1], x[3], y[3]};
    } else {
        *a = (vector){x[0], x[1], y[0], y[1]};
        *b = (vector){x[2], x[3], y[2], y[3]};
    }
}

#include "coding/hadamard/hadamard_template.h"

const struct hadamard_kernel hadamard_kernel_base = {"base", runs_here, BLOCK_LOG_MIN,
                                                     encode, decode,    combine};
