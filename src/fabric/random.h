/*
 * random.h - unpredictable random bytes, for secrets that a fabric keeps from its peers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_RANDOM_H
#define LH_FABRIC_RANDOM_H

#include <stddef.h>

/* Uniform, from the kernel. -LH_ESYSTEM when there is none. */
int fabric_random(void *out, size_t bytes);

#endif
