/*
 * hadamard_reference.c - slowly, and without anything of src/coding.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/hadamard_reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int tensor_sign(uint64_t seed, uint64_t element)
{
    uint64_t state = seed + (element / 64 + 1) * UINT64_C(0x9E3779B97F4A7C15);
    state = (state ^ (state >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94D049BB133111EB);
    state ^= state >> 31;
    return state >> (element % 64) & 1 ? -1 : 1;
}

double tensor_coefficient(const double *in, uint32_t block, uint32_t k)
{
    double sum = 0;
    for (uint32_t i = 0; i < block; i++)
        sum += __builtin_popcount(i & k) % 2 ? -in[i] : in[i];
    return sum / sqrt(block);
}

void tensor_transform(double *block, uint32_t elements)
{
    for (uint32_t half = 1; half < elements; half *= 2)
        for (uint32_t i = 0; i < elements; i++)
            if (!(i & half)) {
                double a = block[i], b = block[i + half];
                block[i] = a + b;
                block[i + half] = a - b;
            }
    for (uint32_t i = 0; i < elements; i++)
        block[i] /= sqrt(elements);
}

/* Tiles of `blocks` blocks of `block` elements, from number `first` on. */
static void tile(uint64_t seed, const double *in, double *out, double *norms, size_t first, uint32_t block,
                 uint32_t blocks)
{
    const uint32_t run = block / blocks;
    double *work = malloc(block * sizeof *work);
    for (uint32_t b = 0; b < blocks; b++) {
        double squares = 0;
        for (uint32_t i = 0; i < block; i++) {
            size_t element = first + (size_t)b * block + i;
            work[i] = in[element] * tensor_sign(seed, element);
            squares += work[i] * work[i];
        }
        tensor_transform(work, block);
        for (uint32_t k = 0; k < block; k++) {
            size_t place = first + (size_t)(k / run) * block + b * run + k % run;
            out[place] = work[k];
            if (norms)
                norms[place] = sqrt(squares);
        }
    }
    free(work);
}

void tensor_encode(const struct lh_hadamard *hadamard, const double *in, double *out, double *norms,
                   size_t count)
{
    uint32_t block = hadamard->block, blocks = hadamard->stride;
    for (size_t first = 0; first < count;) {
        while (blocks > 1 && count - first < (size_t)block * blocks)
            blocks /= 2;
        while (count - first < block)
            block /= 2;
        tile(hadamard->seed, in, out, norms, first, block, blocks);
        first += (size_t)block * blocks;
    }
}

size_t tensor_bytes(enum lh_hadamard_type type)
{
    return type == LH_HADAMARD_F32 ? 4 : 2;
}

/* Bits of the fraction, the least exponent of a normal number. */
static int fraction_bits(enum lh_hadamard_type type)
{
    return type == LH_HADAMARD_F32 ? 23 : type == LH_HADAMARD_BF16 ? 7 : 10;
}

static int exponent_min(enum lh_hadamard_type type)
{
    return type == LH_HADAMARD_F16 ? -14 : -126;
}

double tensor_get(const void *tensor, size_t i, enum lh_hadamard_type type)
{
    float number;
    uint16_t half;
    if (type == LH_HADAMARD_F32) {
        memcpy(&number, (const char *)tensor + 4 * i, 4);
        return (double)number;
    }
    memcpy(&half, (const char *)tensor + 2 * i, 2);
    const int bits = fraction_bits(type);
    const int exponents = (1 << (15 - bits)) - 1;
    int exponent = half >> bits & exponents;
    double fraction = half & ((1 << bits) - 1);
    double sign = half & 0x8000 ? -1 : 1;
    if (exponent == exponents)
        return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, exponent_min(type) - bits);
    return sign * ldexp(fraction + (1 << bits), exponent_min(type) + exponent - 1 - bits);
}

void tensor_put(void *tensor, size_t i, double value, enum lh_hadamard_type type)
{
    if (type == LH_HADAMARD_F32) {
        float number = (float)value;
        memcpy((char *)tensor + 4 * i, &number, 4);
        return;
    }
    const int bits = fraction_bits(type);
    uint16_t half = signbit(value) ? 0x8000 : 0;
    const int exponents = (1 << (15 - bits)) - 1;
    if (isnan(value)) {
        half |= (uint16_t)((exponents << bits) + 1);
    } else if (isinf(value)) {
        half |= (uint16_t)(exponents << bits);
    } else if (value != 0) {
        int exponent = ilogb(value);
        if (exponent < exponent_min(type))
            exponent = exponent_min(type);
        /* In units of the last place; one that rounds up to the next power of two carries into the
         * exponent. */
        double units = nearbyint(ldexp(fabs(value), bits - exponent));
        half |= (uint16_t)(((exponent - exponent_min(type)) << bits) + (int)units);
    }
    memcpy((char *)tensor + 2 * i, &half, 2);
}

double tensor_tolerance(const struct lh_hadamard *hadamard, double value, double norm)
{
    const double f32 = (log2(hadamard->block) + 1) * ldexp(norm, -23);
    if (hadamard->type == LH_HADAMARD_F32)
        return f32;
    return f32 + ldexp(fabs(value) + f32, -fraction_bits(hadamard->type)) +
           ldexp(1, exponent_min(hadamard->type) - 10);
}

double tensor_normal(struct lh_prng *prng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += lh_prng_double(prng);
    return sum;
}
