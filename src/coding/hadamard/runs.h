/*
 * runs.h - exchanging the runs of a tile in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_HADAMARD_RUNS_H
#define LH_CODING_HADAMARD_RUNS_H

#include <stddef.h>

/* Of `count` rows of `count` runs of run_bytes each, exchanges run j of row i with run i of row j: blocks
 * become packets, and packets blocks. */
void runs_exchange(void *tile, size_t count, size_t run_bytes);

#endif
