/*
 * memory.h - every allocation of the program, counted, and refused on demand.
 *
 * The linker puts these wrappers in front of malloc and its kin (-Wl,--wrap). The world itself takes its
 * memory from an arena, so that what is counted during a run is the product's.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_MEMORY_H
#define LH_TESTS_WORLD_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Blocks that were taken and not given back. */
int64_t memory_blocks(void);
/* From now on each allocation fails with this chance; 0: none. */
void memory_refuse(double chance, uint64_t seed);
/* How many were refused so far. */
uint64_t memory_refusals(void);
/* Memory until memory_arena_clear(); aligned to 64, not zeroed. Ends the program when the arena is full. */
void *memory_arena(size_t bytes);
void memory_arena_clear(void);
/* Changes what a run finds there: as much as was used before the last memory_arena_clear(). */
void memory_arena_fill(int byte);
/* Takes a block and forgets it: for the canary. */
void memory_lose_block(void);
void memory_find_block(void);

#endif
