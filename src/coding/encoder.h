/*
 * encoder.h - the threads of an encoder: a pool for work that can be cut into shares.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CODING_ENCODER_H
#define LH_CODING_ENCODER_H

#include <stdbool.h>
#include <stdint.h>

#include <longhaul/code.h>

/* Runs shares 0 … shares - 1, each once, on the threads and the caller; returns when all are done. One call
 * at a time. */
void encoder_share_out(struct lh_encoder *encoder, uint64_t shares,
                       void (*run)(void *argument, uint64_t share), void *argument);

/* ---- work pool ------------------------------------------------------------------------------------- */

/*
 * Threads that carry out pieces of work in the order in which they were given.
 *
 * A piece is the caller's memory, and the pool's from work_pool_give() until it begins to run or was taken
 * back. Calls come from any thread, a piece that runs included. Not pure: this is where coding meets threads.
 */

struct work {
    /* On a thread of the pool, without a lock held. The piece is the caller's again from the moment that
     * run() begins: it may be given again, or freed. */
    void (*run)(struct work *work);
    struct work *next; /* the pool's */
};

struct work_pool;

/* cpus: one a thread, -1 for any; NULL: any. Threads start asleep; with 0 threads nothing ever runs. NULL
 * when there is no memory, or no thread: lh_last_error() names which. */
struct work_pool *work_pool_create(uint32_t threads, const int *cpus);
/* All pieces must have begun to run or have been taken back; waits for those that run. NULL is allowed. */
void work_pool_destroy(struct work_pool *pool);

void work_pool_give(struct work_pool *pool, struct work *work);
/* True: it had not begun, and will not run. False: it has begun, or has run, or was never given. Takes time
 * with the number of waiting pieces. */
bool work_pool_take_back(struct work_pool *pool, struct work *work);

#endif
