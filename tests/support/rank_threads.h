/*
 * rank_threads.h - the ranks of a group as threads of a test, with the exchange of lh_group_create().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_SUPPORT_RANK_THREADS_H
#define LH_TESTS_SUPPORT_RANK_THREADS_H

#include <stddef.h>
#include <stdint.h>

#define RANK_THREADS_MAX 16u

struct rank_threads;

struct rank_thread {
    uint32_t rank;
    uint32_t size;
    struct rank_threads *all;
    void (*run)(struct rank_thread *thread);
};

/* Runs a thread per rank, and waits for them. */
void rank_threads_run(uint32_t size, void (*run)(struct rank_thread *thread));
/* All of them call it, and go on together. */
void rank_threads_meet(struct rank_thread *thread);
/* lh_exchange_fn; context: the thread. */
int rank_threads_exchange(void *context, const void *mine, size_t bytes, void *all);

#endif
