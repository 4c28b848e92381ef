/*
 * progress.h - what a rank may send, and which arrivals it may apply, by dependencies alone.
 *
 * A send waits until all receives of earlier steps into its blocks are applied. An arrival is applied (stored
 * or added) after all earlier receives of its blocks, in the order of the schedule: so sums are the same in
 * each run, whatever arrives first. Nothing waits for a step as a whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_COLLECTIVE_RUN_PROGRESS_H
#define LH_COLLECTIVE_RUN_PROGRESS_H

#include "collective/run/pieces.h"

#define PROGRESS_NONE UINT32_MAX

/* Who waits: sends and receives, each in one list at a time. */
struct progress_list {
    uint32_t first;
    uint32_t last;
};

struct progress_receive {
    struct progress_list waiting; /* for it to be applied */
    uint32_t entry;               /* in `follows`, one per block */
};

/* Arrays are the caller's: by send, receive, block, and block received. */
struct progress {
    const struct piece *sends;
    const struct piece *receives;
    struct progress_receive *states; /* by receive */
    uint32_t *next_of_sends;         /* in lists */
    uint32_t *next_of_receives;
    uint32_t *next;          /* by block: the next receive of it to be applied */
    uint32_t *reduced_until; /* by block: it is passed on to be added, after so many receives */
    bool *received;          /* by block: one has been applied */
    uint32_t *follows;       /* by receive and block: the receive after it */
    uint32_t send_count;
    uint32_t receive_count;
    uint32_t applied;
    struct progress_list ready; /* sends */
    struct progress_list due;   /* receives that may be applied */
};

/* The pointers and counts are set. blocks: of all rows. */
void progress_begin(struct progress *progress, uint32_t blocks);
/* The next send that may leave; false: none now. */
bool progress_next_send(struct progress *progress, uint32_t *send);
/* A piece has arrived, once. */
void progress_on_arrival(struct progress *progress, uint32_t receive);
/* The next arrival to apply; then call on_applied. False: none now. */
bool progress_next_due(struct progress *progress, uint32_t *receive);
void progress_on_applied(struct progress *progress, uint32_t receive);
/* Whether a receive completes the sum of the index-th of its blocks: all contributions are in it. */
bool progress_is_final(const struct progress *progress, uint32_t receive, uint32_t index);
/* Whether all receives are applied. */
bool progress_is_complete(const struct progress *progress);

#endif
