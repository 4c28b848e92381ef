/*
 * kernel_simple.c - any block, any run, and elements that are not finite: for what the others leave.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/hadamard/kernel.h"

#include <assert.h>

#include "coding/hadamard/elements.h"

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
