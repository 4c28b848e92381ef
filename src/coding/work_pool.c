/*
 * work_pool.c - a list of pieces under one lock, and threads that take them from its front.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coding/work_pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/error.h"

struct work_pool {
    pthread_mutex_t lock;
    pthread_cond_t given; /* a piece was put into the list, or stop was set */
    struct work *first;
    struct work **end; /* where the next piece is linked in */
    bool stop;
    uint32_t threads; /* that were started */
    pthread_t thread[];
};

/* With the lock held. NULL: the pool ends. */
static struct work *wait_for_piece(struct work_pool *pool)
{
    while (!pool->first && !pool->stop)
        pthread_cond_wait(&pool->given, &pool->lock);
    struct work *work = pool->first;
    if (work) {
        pool->first = work->next;
        if (!pool->first)
            pool->end = &pool->first;
    }
    return work;
}

static void *pool_thread(void *argument)
{
    struct work_pool *pool = argument;
    prctl(PR_SET_NAME, "lh-work");
    pthread_mutex_lock(&pool->lock);
    for (struct work *work; (work = wait_for_piece(pool)) != NULL;) {
        pthread_mutex_unlock(&pool->lock);
        work->run(work);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* 0, or the error of pthread_create(). */
static int start_thread(struct work_pool *pool, int cpu)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    int failed = 0;
    if (cpu >= CPU_SETSIZE) {
        failed = EINVAL;
    } else if (cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)cpu, &set);
        failed = pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    }
    /* The program's signal handlers run in the program's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!failed)
        failed = pthread_create(&pool->thread[pool->threads], &attr, pool_thread, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!failed)
        pool->threads++;
    return failed;
}

struct work_pool *work_pool_create(uint32_t threads, const int *cpus)
{
    assert(threads <= WORK_THREADS_MAX);
    struct work_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->thread[0]);
    if (!pool) {
        lh_fail(LH_ENOMEM, "no memory for a pool of %u threads", threads);
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->given, NULL);
    pool->end = &pool->first;
    for (uint32_t i = 0; i < threads; i++) {
        int cpu = cpus ? cpus[i] : -1;
        int failed = start_thread(pool, cpu);
        if (failed) {
            work_pool_destroy(pool);
            lh_fail(LH_ESYSTEM, "thread %u of the pool: cannot start on CPU %d: %s (use -1 for any CPU)", i,
                    cpu, strerror(failed));
            return NULL;
        }
    }
    return pool;
}

void work_pool_destroy(struct work_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    assert(!pool->first);
    pool->stop = true;
    pthread_cond_broadcast(&pool->given);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->threads; i++)
        pthread_join(pool->thread[i], NULL);
    pthread_cond_destroy(&pool->given);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void work_pool_give(struct work_pool *pool, struct work *work)
{
    assert(work->run);
    work->next = NULL;
    pthread_mutex_lock(&pool->lock);
    assert(!pool->stop);
    *pool->end = work;
    pool->end = &work->next;
    pthread_cond_signal(&pool->given);
    pthread_mutex_unlock(&pool->lock);
}

bool work_pool_take_back(struct work_pool *pool, struct work *work)
{
    pthread_mutex_lock(&pool->lock);
    struct work **link = &pool->first;
    while (*link && *link != work)
        link = &(*link)->next;
    bool waited = *link == work;
    if (waited) {
        *link = work->next;
        if (!*link)
            pool->end = link;
    }
    pthread_mutex_unlock(&pool->lock);
    return waited;
}
