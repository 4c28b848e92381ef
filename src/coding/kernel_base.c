/*
 * kernel_base.c - the portable kernel: eight bytes in a machine word, multiplied bit by bit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/kernel.h"

#include <assert.h>
#include <string.h>

#include "coding/gf256.h"

#define WORD_BYTES 8u
#define EACH_BYTE  0x0101010101010101u

static bool runs_here(void)
{
    return true;
}

/* Up to eight bytes; those that are missing are 0. Their order in the word does not matter. */
static uint64_t load(const uint8_t *at, size_t bytes)
{
    uint64_t word = 0;
    memcpy(&word, at, bytes < WORD_BYTES ? bytes : WORD_BYTES);
    return word;
}

static void store(uint8_t *at, uint64_t word, size_t bytes)
{
    memcpy(at, &word, bytes < WORD_BYTES ? bytes : WORD_BYTES);
}

/* Each byte times x. */
static uint64_t times_x(uint64_t word)
{
    uint64_t over = word >> 7 & EACH_BYTE;
    return (word & 0x7f * EACH_BYTE) << 1 ^ over * (GF256_POLYNOMIAL & 0xff);
}

static void product(const struct kernel_task *task)
{
    assert(task->rows >= 1 && task->rows <= KERNEL_ROWS_MAX && task->columns >= 1);
    for (size_t at = 0; at < task->bytes; at += WORD_BYTES) {
        uint64_t sums[KERNEL_ROWS_MAX] = {0};
        for (uint32_t j = 0; j < task->columns; j++) {
            const uint8_t *in = task->in[j];
            uint64_t word = load(in + task->from + at, task->bytes - at);
            for (unsigned bit = 0; bit < 8; bit++, word = times_x(word))
                for (uint32_t r = 0; r < task->rows; r++) {
                    uint64_t wanted = task->matrix[r * task->columns + j] >> bit & 1;
                    sums[r] ^= word & (0 - wanted);
                }
        }
        for (uint32_t r = 0; r < task->rows; r++)
            store((uint8_t *)task->out[r] + task->from + at, sums[r], task->bytes - at);
    }
}

static void sum(const struct kernel_task *task)
{
    assert(task->rows == 1 && task->columns >= 1);
    uint8_t *out = task->out[0];
    for (size_t at = 0; at < task->bytes; at += WORD_BYTES) {
        uint64_t word = 0;
        for (uint32_t j = 0; j < task->columns; j++)
            word ^= load((const uint8_t *)task->in[j] + task->from + at, task->bytes - at);
        store(out + task->from + at, word, task->bytes - at);
    }
}

const struct kernel kernel_base = {"base", runs_here, product, sum};
