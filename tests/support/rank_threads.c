/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/rank_threads.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct rank_threads {
    pthread_barrier_t barrier;
    const void *blobs[RANK_THREADS_MAX];
};

static void *run(void *context)
{
    struct rank_thread *thread = context;
    thread->run(thread);
    return NULL;
}

void rank_threads_run(uint32_t size, void (*body)(struct rank_thread *thread))
{
    struct rank_threads all;
    struct rank_thread threads[RANK_THREADS_MAX];
    pthread_t ids[RANK_THREADS_MAX];
    assert_true(size <= RANK_THREADS_MAX);
    assert_int_equal(pthread_barrier_init(&all.barrier, NULL, size), 0);
    for (uint32_t r = 0; r < size; r++) {
        threads[r] = (struct rank_thread){.rank = r, .size = size, .all = &all, .run = body};
        assert_int_equal(pthread_create(&ids[r], NULL, run, &threads[r]), 0);
    }
    for (uint32_t r = 0; r < size; r++)
        pthread_join(ids[r], NULL);
    pthread_barrier_destroy(&all.barrier);
}

void rank_threads_meet(struct rank_thread *thread)
{
    pthread_barrier_wait(&thread->all->barrier);
}

int rank_threads_exchange(void *context, const void *mine, size_t bytes, void *all)
{
    struct rank_thread *thread = context;
    thread->all->blobs[thread->rank] = mine;
    rank_threads_meet(thread);
    for (uint32_t r = 0; r < thread->size; r++)
        memcpy((uint8_t *)all + r * bytes, thread->all->blobs[r], bytes);
    rank_threads_meet(thread);
    return 0;
}
