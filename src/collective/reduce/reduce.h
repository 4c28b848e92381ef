/*
 * reduce.h - reductions of arrays by type and operation, with the kernel in use.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_REDUCE_REDUCE_H
#define LH_COLLECTIVE_REDUCE_REDUCE_H

#include "collective/reduce/kernel.h"

size_t element_bytes_of(enum element_type type);
/* "bf16" */
const char *element_name(enum element_type type);

/* to[i] = left[i] op right[i], as reduce_function. */
void reduce_elements(enum element_type type, enum reduce_operation operation, void *to, const void *left,
                     const void *right, size_t count);
/* at[i] /= by; of integers towards 0. by: not 0. */
void reduce_divide(enum element_type type, void *at, size_t count, uint32_t by);

#endif
