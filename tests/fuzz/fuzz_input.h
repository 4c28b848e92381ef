/*
 * fuzz_input.h - the input of a fuzz target that reads it as a program: numbers off its front.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct input {
    const uint8_t *at;
    size_t left;
};

/* Zeros when the input is used up. */
static inline uint8_t take8(struct input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

static inline uint32_t take32(struct input *input)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 8 | take8(input);
    return value;
}

/* Any magnitude: a byte says how far a number is shifted. */
static inline uint64_t take_scaled(struct input *input)
{
    uint64_t value = take32(input);
    uint8_t shift = take8(input);
    return shift & 0x80 ? value >> (shift & 31) : value << (shift & 31);
}

#endif
