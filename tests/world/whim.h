/*
 * whim.h - `auto` that takes any scheme for any message: whatever was chosen, the message must come.
 *
 * What the model finds best changes little within a life. With a whim, neighbours in flight come by schemes
 * of every kind, cut into segments of every length.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_WHIM_H
#define LH_TESTS_WORLD_WHIM_H

#include <stdbool.h>
#include <stdint.h>

/* From now on; the choices follow from the seed. */
void whim_set(bool on, uint64_t seed);

#endif
