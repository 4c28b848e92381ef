/*
 * hadamard_blocks.h - the transform of groups with their signs, and of one block of any length.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_HADAMARD_HADAMARD_BLOCKS_H
#define LH_CODING_HADAMARD_HADAMARD_BLOCKS_H

#include <stddef.h>

#include "coding/hadamard/hadamard_kernel.h"

/* Work space of a thread. */
struct block_space {
    _Alignas(64) float scratch[GROUP_ELEMENTS_MAX];
    uint64_t signs[GROUP_ELEMENTS_MAX / 64];
};

/* Of the element `first` of a tensor. */
struct block_place {
    uint64_t seed;
    uint64_t first;
};

/* As the kernel's, with signs and with the kernel in use, or the simple one. */
bool group_encode(struct group_task *task, struct block_place place, struct block_space *space);
bool group_decode(struct group_task *task, struct block_place place, struct block_space *space);

/* Of one block with S = 1 and any block_log; with more than GROUP_BLOCK_LOG_MAX of F32 only. Decoding such
 * a one uses `in`, of which nothing may be zeroed. */
bool block_encode(struct group_task *task, struct block_place place, struct block_space *space);
bool block_decode(struct group_task *task, struct block_place place, struct block_space *space);

/* ---- runs ------------------------------------------------------------------------------------------ */

/* Exchanging the runs of a tile in place. */

/* Of `count` rows of `count` runs of run_bytes each, exchanges run j of row i with run i of row j: blocks
 * become packets, and packets blocks. */
void runs_exchange(void *tile, size_t count, size_t run_bytes);

#endif
