/* SPDX-License-Identifier: BSD-3-Clause */
#include "coding/hadamard/hadamard_kernel.h"

#include <assert.h>
#include <string.h>

#include <longhaul/hadamard.h>

/* ---- elements -------------------------------------------------------------------------------------- */

/*
 * Looks at the exponents of a stretch of elements at once, and at each one only where that
 * found one.
 */

#define STRETCH_BYTES 1024u

/* The bits that are all ones where an element is NaN or infinite. */
static uint32_t exponent_of(enum lh_hadamard_type type)
{
    return type == LH_HADAMARD_F32 ? 0x7f800000 : type == LH_HADAMARD_BF16 ? 0x7f80 : 0x7c00;
}

static bool is_finite(const uint8_t *at, enum lh_hadamard_type type)
{
    const uint32_t exponent = exponent_of(type);
    uint32_t word;
    uint16_t half;
    if (type == LH_HADAMARD_F32) {
        memcpy(&word, at, sizeof word);
        return (word & exponent) != exponent;
    }
    memcpy(&half, at, sizeof half);
    return (half & exponent) != exponent;
}

/* Of STRETCH_BYTES. Adding the exponent's lowest bit to an exponent of ones carries into the sign's place.
 */
static bool stretch_is_finite(const uint8_t *at, enum lh_hadamard_type type)
{
    typedef uint16_t eight_halves __attribute__((vector_size(16)));
    const uint32_t exponent = exponent_of(type);
    if (type == LH_HADAMARD_F32) {
        four_words over = {0};
        for (size_t i = 0; i < STRETCH_BYTES; i += sizeof over) {
            four_words bits;
            memcpy(&bits, at + i, sizeof bits);
            over |= (bits & exponent) + (exponent & -exponent);
        }
        return ((over[0] | over[1] | over[2] | over[3]) >> 31) == 0;
    }
    const uint16_t ones = (uint16_t)exponent;
    const uint16_t lowest = (uint16_t)(exponent & -exponent);
    eight_halves over = {0};
    for (size_t i = 0; i < STRETCH_BYTES; i += sizeof over) {
        eight_halves bits;
        memcpy(&bits, at + i, sizeof bits);
        over |= (bits & ones) + lowest;
    }
    uint32_t all = 0;
    for (size_t i = 0; i < 8; i++)
        all |= over[i];
    return (all & 0x8000) == 0;
}

/* The first stretch from element i on that has one which is not finite, or is cut off by the end. */
static size_t skip_finite(const void *at, size_t i, size_t end, enum lh_hadamard_type type)
{
    const size_t bytes = element_bytes(type);
    const size_t stretch = STRETCH_BYTES / bytes;
    while (end - i >= stretch && stretch_is_finite((const uint8_t *)at + i * bytes, type))
        i += stretch;
    return i;
}

static size_t stretch_end(size_t i, size_t end, enum lh_hadamard_type type)
{
    const size_t stretch = STRETCH_BYTES / element_bytes(type);
    return end - i < stretch ? end : i + stretch;
}

size_t elements_first_non_finite(const void *at, size_t from, size_t count, enum lh_hadamard_type type)
{
    const size_t end = from + count;
    for (size_t i = from; (i = skip_finite(at, i, end, type)) < end;)
        for (const size_t stop = stretch_end(i, end, type); i < stop; i++)
            if (!is_finite((const uint8_t *)at + i * element_bytes(type), type))
                return i;
    return end;
}

size_t elements_zero_non_finite(void *at, size_t from, size_t count, enum lh_hadamard_type type)
{
    const size_t end = from + count;
    size_t zeroed = 0;
    for (size_t i = from; (i = skip_finite(at, i, end, type)) < end;)
        for (const size_t stop = stretch_end(i, end, type); i < stop; i++) {
            uint8_t *place = (uint8_t *)at + i * element_bytes(type);
            if (is_finite(place, type))
                continue;
            memset(place, 0, element_bytes(type));
            zeroed++;
        }
    return zeroed;
}

/* Multiplies elements at … at + 3. Each that is finite then has all bits of its word set. */
static four_words scale_four(void *in, size_t at, enum lh_hadamard_type type, float factor)
{
    const int32_t limit = (int32_t)hadamard_limit_bits(type);
    const four_words product = (four_words)((four_floats)load_four(in, at, type) * factor);
    const four_words in_range = (four_words)((four_ints)(product & 0x7fffffff) < (four_ints){0} + limit);
    store_four(in, at, product & in_range, type);
    return in_range;
}

bool elements_scale(void *at, size_t from, size_t count, enum lh_hadamard_type type, float factor)
{
    const size_t end = from + count, whole = end - count % 4;
    four_words fit = (four_words){0} - 1;
    for (size_t i = from; i < whole; i += 4)
        fit &= scale_four(at, i, type, factor);
    if (whole < end) {
        uint8_t four[16] = {0}, *place = (uint8_t *)at + whole * element_bytes(type);
        const size_t bytes = (end - whole) * element_bytes(type);
        memcpy(four, place, bytes);
        fit &= scale_four(four, 0, type, factor);
        memcpy(place, four, bytes);
    }
    return (fit[0] & fit[1] & fit[2] & fit[3]) != 0;
}

/* ---- kernel simple --------------------------------------------------------------------------------- */

/* Any block, any run, and elements that are not finite: for what the others leave. */

static bool runs_here(void)
{
    return true;
}

static bool all_ones(four_words mask)
{
    return (mask[0] & mask[1] & mask[2] & mask[3]) != 0;
}

/* The bits from `at` on as signs of floats. */
static four_words signs_of(const uint64_t *signs, size_t at)
{
    const four_words bits = (four_words){0} + (uint32_t)(signs[at / 64] >> at % 64);
    const four_words bit = {1, 2, 4, 8};
    return (four_words)((bits & bit) == bit) & 0x80000000;
}

/* Zeroes what is not finite. */
static four_words only_finite(four_words bits, uint64_t *zeroed)
{
    const four_words good = (four_words)((four_ints)(bits & 0x7fffffff) < 0x7f800000);
    for (size_t i = 0; i < 4; i++)
        *zeroed += !good[i];
    return bits & good;
}

/* Elements at … at + count - 1, scaled; signs: NULL, or of element 0. */
static void load(const struct group_task *task, size_t at, size_t count, float *to, const uint64_t *signs,
                 size_t sign)
{
    const size_t bytes = element_bytes(task->type);
    for (size_t i = 0; i < count; i += 4) {
        const size_t here = count - i < 4 ? count - i : 4;
        four_words four;
        if (here == 4) {
            four = load_four(task->in, at + i, task->type);
        } else {
            uint8_t few[16] = {0};
            memcpy(few, (const uint8_t *)task->in + (at + i) * bytes, here * bytes);
            four = load_four(few, 0, task->type);
        }
        if (task->zeroed)
            four = only_finite(four, task->zeroed);
        four = (four_words)((four_floats)four * task->scale);
        if (signs)
            four ^= signs_of(signs, sign + i);
        if (here == 4)
            memcpy(to + i, &four, sizeof four);
        else
            memcpy(to + i, &four, here * sizeof *to);
    }
}

/* False: one exceeds the type. */
static bool store(const struct group_task *task, size_t at, size_t count, const float *from,
                  const uint64_t *signs, size_t sign)
{
    const size_t bytes = element_bytes(task->type);
    const four_ints limit = (four_ints){0} + (int32_t)hadamard_limit_bits(task->type);
    four_words fits = ~(four_words){0};
    for (size_t i = 0; i < count; i += 4) {
        const size_t here = count - i < 4 ? count - i : 4;
        four_words bits = {0};
        if (here == 4)
            memcpy(&bits, from + i, sizeof bits);
        else
            memcpy(&bits, from + i, here * sizeof *from);
        fits &= (four_words)((four_ints)(bits & 0x7fffffff) < limit);
        if (signs)
            bits ^= signs_of(signs, sign + i);
        if (here == 4) {
            store_four(task->out, at + i, bits, task->type);
        } else {
            uint8_t few[16];
            store_four(few, 0, bits, task->type);
            memcpy((uint8_t *)task->out + (at + i) * bytes, few, here * bytes);
        }
    }
    return all_ones(fits);
}

static void two_bits_of_four(float *block, size_t elements)
{
    for (size_t i = 0; i < elements; i += 4) {
        float *x = block + i;
        float a = x[0] + x[1], b = x[0] - x[1], c = x[2] + x[3], d = x[2] - x[3];
        x[0] = a + c;
        x[1] = b + d;
        x[2] = a - c;
        x[3] = b - d;
    }
}

static four_floats get(const float *at)
{
    four_floats four;
    memcpy(&four, at, sizeof four);
    return four;
}

static void put(float *at, four_floats four)
{
    memcpy(at, &four, sizeof four);
}

/* Of 2 * distance floats, scaled. */
static void one_bit(float *x, size_t distance, float scale)
{
    for (size_t i = 0; i < distance; i += 4) {
        four_floats a = get(x + i) * scale, b = get(x + i + distance) * scale;
        put(x + i, a + b);
        put(x + i + distance, a - b);
    }
}

/* Of 4 * distance floats. */
static void two_bits(float *x, size_t distance)
{
    for (size_t i = 0; i < distance; i += 4) {
        four_floats p = get(x + i), q = get(x + i + distance);
        four_floats r = get(x + i + 2 * distance), s = get(x + i + 3 * distance);
        four_floats a = p + q, b = p - q, c = r + s, d = r - s;
        put(x + i, a + c);
        put(x + i + distance, b + d);
        put(x + i + 2 * distance, a - c);
        put(x + i + 3 * distance, b - d);
    }
}

static void transform(float *block, uint32_t block_log)
{
    const size_t elements = (size_t)1 << block_log;
    if (block_log == 1) {
        float a = block[0], b = block[1];
        block[0] = a + b;
        block[1] = a - b;
    }
    if (block_log < 2)
        return;
    two_bits_of_four(block, elements);
    size_t distance = 4;
    for (; 4 * distance <= elements; distance *= 4)
        for (size_t at = 0; at < elements; at += 4 * distance)
            two_bits(block + at, distance);
    if (2 * distance == elements)
        one_bit(block, distance, 1);
}

static bool encode(const struct group_task *task, float *scratch)
{
    const size_t block = (size_t)1 << task->block_log;
    const size_t run = (size_t)1 << task->run_log;
    for (size_t b = 0; b < task->blocks; b++) {
        load(task, b * block, block, scratch + b * block, task->signs, b * block);
        transform(scratch + b * block, task->block_log);
    }
    bool fits = true;
    for (size_t packet = 0; packet < block / run; packet++) {
        float line[64];
        if (task->blocks == 1) {
            fits &= store(task, packet * block, run, scratch + packet * run, NULL, 0);
            continue;
        }
        assert(task->blocks * run <= 64);
        for (size_t b = 0; b < task->blocks; b++)
            memcpy(line + b * run, scratch + b * block + packet * run, run * sizeof *line);
        fits &= store(task, packet * block, task->blocks * run, line, NULL, 0);
    }
    return fits;
}

static bool decode(const struct group_task *task, float *scratch)
{
    const size_t block = (size_t)1 << task->block_log;
    const size_t run = (size_t)1 << task->run_log;
    for (size_t packet = 0; packet < block / run; packet++) {
        float line[64];
        if (task->blocks == 1) {
            load(task, packet * block, run, scratch + packet * run, NULL, 0);
            continue;
        }
        assert(task->blocks * run <= 64);
        load(task, packet * block, task->blocks * run, line, NULL, 0);
        for (size_t b = 0; b < task->blocks; b++)
            memcpy(scratch + b * block + packet * run, line + b * run, run * sizeof *line);
    }
    bool fits = true;
    for (size_t b = 0; b < task->blocks; b++) {
        transform(scratch + b * block, task->block_log);
        fits &= store(task, b * block, block, scratch + b * block, task->signs, b * block);
    }
    return fits;
}

static bool combine(float *data, size_t distance, uint32_t bits, float scale)
{
    const size_t floats = distance << bits;
    for (size_t step = distance; step < floats; step *= 2)
        for (size_t at = 0; at < floats; at += 2 * step)
            one_bit(data + at, step, step == distance ? scale : 1);
    return elements_first_non_finite(data, 0, floats, LH_HADAMARD_F32) == floats;
}

const struct hadamard_kernel hadamard_kernel_simple = {"simple", runs_here, 0, encode, decode, combine};

/* ---- kernel ---------------------------------------------------------------------------------------- */

/*
 * Which kernels this CPU can run, and which is in use.
 *
 * Decided before main(), so that no call has to look, or to lock.
 */

/* Best first. */
static const struct hadamard_kernel *const all[] = {
#if defined(__x86_64__)
    &hadamard_kernel_avx512,
    &hadamard_kernel_avx2,
#endif
    &hadamard_kernel_base,
    &hadamard_kernel_simple,
};
#define ALL_COUNT (sizeof all / sizeof all[0])

static const struct hadamard_kernel *runnable[ALL_COUNT + 1];
static const struct hadamard_kernel *in_use = &hadamard_kernel_simple;

__attribute__((constructor)) static void find_runnable(void)
{
    size_t count = 0;
    for (size_t i = 0; i < ALL_COUNT; i++)
        if (all[i]->runs_here())
            runnable[count++] = all[i];
    assert(count >= 1); /* base and simple run anywhere */
    in_use = runnable[0];
}

const struct hadamard_kernel *const *hadamard_kernels(void)
{
    return runnable;
}

const struct hadamard_kernel *hadamard_kernel_now(void)
{
    return in_use;
}

void hadamard_kernel_use(const struct hadamard_kernel *kernel)
{
    assert(kernel->runs_here());
    in_use = kernel;
}
