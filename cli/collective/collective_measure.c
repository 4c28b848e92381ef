/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/collective/data.h"

#include <math.h>
#include <string.h>

#define STALE 0xA5
/* A sum of encoded tensors: roundings of the size of a block's norm; of halves they are as coarse as what
 * is added. */
#define ENCODED_ROUNDINGS 1024
#define ENCODED_ERROR_MAX 0.125

static bool is_float(enum lh_type type)
{
    return type <= LH_BF16;
}

/* splitmix64 of rank and element. */
static uint64_t mix(uint32_t rank, size_t element)
{
    uint64_t x = ((uint64_t)rank << 48) + element * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* ---- 16-bit floats ----------------------------------------------------------------------------------- */

/* Values here are multiples of 2^-8 below 2 in magnitude, or powers of two from 2^-4 to 2^4: exact. */
static uint16_t half_of(double value)
{
    int exponent;
    double fraction = frexp(fabs(value), &exponent);
    uint16_t sign = value < 0 ? 0x8000 : 0;
    if (value == 0)
        return sign;
    return (uint16_t)(sign | (exponent + 14) << 10 | ((int)ldexp(fraction, 11) & 0x3ff));
}

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : ldexp(fraction + 1024, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

/* ---- elements ---------------------------------------------------------------------------------------- */

/* Of bf16 as many bits as it holds; sums of all are rounded there, and in f16. */
static double float_element(const struct cli_call *call, uint32_t rank, size_t element)
{
    uint64_t random = mix(rank, element);
    if (call->kind->reduces && call->reduction == LH_PROD) {
        /* The product of any number of ranks stays in the range of f16. */
        double size = rank < 4 ? ldexp(1, (int)(random >> 1 & 3) - 1) : 1;
        return random & 1 ? -size : size;
    }
    double fraction = call->type == LH_BF16  ? ldexp((double)(random & 0xff), -8)
                      : call->type == LH_F16 ? ldexp((double)(random & 0x3ff), -10)
                                             : ldexp((double)(random & 0xfffff), -20);
    return random >> 63 ? -fraction : fraction;
}

/* Of an average small enough that no sum wraps. */
static uint64_t integer_element(const struct cli_call *call, uint32_t rank, size_t element)
{
    uint64_t random = mix(rank, element);
    if (!call->kind->reduces || call->reduction != LH_AVG)
        return random;
    if (call->type == LH_U8)
        return random % (256 / call->ranks);
    return (uint64_t)((int64_t)(random % 2000001) - 1000000);
}

static void put_float(enum lh_type type, void *buffer, size_t index, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (type == LH_F32)
        ((float *)buffer)[index] = single;
    else if (type == LH_F64)
        ((double *)buffer)[index] = value;
    else
        ((uint16_t *)buffer)[index] = type == LH_F16 ? half_of(value) : (uint16_t)(bits >> 16);
}

static double get_float(enum lh_type type, const void *buffer, size_t index)
{
    float single;
    uint32_t bits;
    if (type == LH_F32)
        return ((const float *)buffer)[index];
    if (type == LH_F64)
        return ((const double *)buffer)[index];
    uint16_t half = ((const uint16_t *)buffer)[index];
    if (type == LH_F16)
        return half_value(half);
    bits = (uint32_t)half << 16;
    memcpy(&single, &bits, sizeof single);
    return single;
}

static void put_integer(enum lh_type type, void *buffer, size_t index, uint64_t value)
{
    if (type == LH_U8)
        ((uint8_t *)buffer)[index] = (uint8_t)value;
    else if (type == LH_I32)
        ((uint32_t *)buffer)[index] = (uint32_t)value;
    else
        ((uint64_t *)buffer)[index] = value;
}

/* As the type has it: u8 without, the others with a sign. */
static int64_t truncated(enum lh_type type, uint64_t value)
{
    if (type == LH_U8)
        return (uint8_t)value;
    return type == LH_I32 ? (int32_t)(uint32_t)value : (int64_t)value;
}

static int64_t get_integer(enum lh_type type, const void *buffer, size_t index)
{
    if (type == LH_U8)
        return ((const uint8_t *)buffer)[index];
    return type == LH_I32 ? ((const int32_t *)buffer)[index] : ((const int64_t *)buffer)[index];
}

static void put(const struct cli_call *call, void *buffer, size_t index, uint32_t rank)
{
    if (is_float(call->type))
        put_float(call->type, buffer, index, float_element(call, rank, index));
    else
        put_integer(call->type, buffer, index, integer_element(call, rank, index));
}

void cli_data_fill(const struct cli_call *call, void *in, void *out)
{
    bool is_source = call->kind->rooted && !call->kind->reduces && !call->kind->in_parts &&
                     !call->kind->out_parts && call->rank == call->root;
    memset(out, STALE, cli_call_out(call) * lh_type_bytes(call->type));
    for (size_t i = 0; i < cli_call_in(call); i++)
        put(call, in, i, call->rank);
    for (size_t i = 0; is_source && i < call->count; i++)
        put(call, out, i, call->rank);
}

/* ---- the result -------------------------------------------------------------------------------------- */

/* Largest relative error of one rounding. */
static double rounding(enum lh_type type)
{
    static const double errors[] = {
        [LH_F32] = 0x1p-24, [LH_F64] = 0x1p-53, [LH_F16] = 0x1p-11, [LH_BF16] = 0x1p-8};
    return errors[type];
}

static bool float_is_right(const struct cli_call *call, size_t index, double got)
{
    double sum = 0, product = 1, least = INFINITY, most = -INFINITY, magnitude = 0;
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        double x = float_element(call, rank, index);
        sum += x;
        product *= x;
        magnitude += fabs(x);
        least = fmin(least, x);
        most = fmax(most, x);
    }
    /* Each addition rounds a partial sum, which is at most the sum of magnitudes; so does the division. */
    double error = call->ranks * rounding(call->type) * magnitude;
    if (call->encoded)
        error +=
            call->ranks * fmin(call->ranks * ENCODED_ROUNDINGS * rounding(call->type), ENCODED_ERROR_MAX);
    switch (call->reduction) {
    case LH_SUM:
        return fabs(got - sum) <= error;
    case LH_AVG:
        return fabs(got - sum / call->ranks) <= 2 * error / call->ranks + 0x1p-24;
    case LH_PROD:
        return got == product;
    case LH_MIN:
        return got == least;
    default:
        return got == most;
    }
}

static bool integer_is_right(const struct cli_call *call, size_t index, int64_t got)
{
    uint64_t sum = 0, product = 1;
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (uint32_t rank = 0; rank < call->ranks; rank++) {
        uint64_t x = integer_element(call, rank, index);
        int64_t value = truncated(call->type, x);
        sum += x;
        product *= x;
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    switch (call->reduction) {
    case LH_SUM:
        return got == truncated(call->type, sum);
    case LH_AVG:
        return got == (int64_t)sum / (int64_t)call->ranks;
    case LH_PROD:
        return got == truncated(call->type, product);
    case LH_MIN:
        return got == least;
    default:
        return got == most;
    }
}

static bool is_right(const struct cli_call *call, const void *out, size_t element)
{
    uint32_t source;
    size_t index;
    cli_call_source(call, element, &source, &index);
    if (is_float(call->type)) {
        double got = get_float(call->type, out, element);
        return call->kind->reduces ? float_is_right(call, index, got)
                                   : got == float_element(call, source, index);
    }
    int64_t got = get_integer(call->type, out, element);
    return call->kind->reduces ? integer_is_right(call, index, got)
                               : got == truncated(call->type, integer_element(call, source, index));
}

static bool is_zero(const struct cli_call *call, const void *out, size_t element)
{
    return is_float(call->type) ? get_float(call->type, out, element) == 0
                                : get_integer(call->type, out, element) == 0;
}

uint64_t cli_data_check(const struct cli_call *call, const void *out, bool missing)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < cli_call_out(call) && !(missing && call->kind->reduces); i++)
        wrong += !is_right(call, out, i) && !(missing && is_zero(call, out, i));
    return wrong;
}
