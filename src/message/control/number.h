/*
 * number.h - message and segment numbers: they count up from 0 and wrap.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CONTROL_NUMBER_H
#define LH_MESSAGE_CONTROL_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Of two numbers that are less than half the range apart. */
static inline bool number_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

#endif
