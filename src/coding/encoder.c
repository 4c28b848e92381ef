/* SPDX-License-Identifier: BSD-3-Clause */
#include "coding/encoder.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <longhaul/code.h>

#include "base/error.h"
#include "coding/erasure_code.h"

/* ---- work pool ------------------------------------------------------------------------------------- */

/* A list of pieces under one lock, and threads that take them from its front. */

#define WORK_THREADS_MAX 255u

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

/* ---- encoder --------------------------------------------------------------------------------------- */

/*
 * Groups of chunks shared out among the caller and the threads of a pool.
 *
 * A call is cut into shares: to encode, a group, or a part of the bytes of one when there are few groups.
 * Whoever is free takes the next. The caller takes shares too, so that a call ends even when no thread ever
 * gets to run, and then waits only for those that have begun.
 */

/* Shares for each thread: more even out threads that are held up. */
#define SHARES_A_THREAD 4u
/* Shares begin at a multiple of it, and are no shorter: less is not worth the matrix. */
#define SHARE_BYTES_UNIT ((size_t)4096)

struct job {
    void (*run)(void *argument, uint64_t share);
    void *argument;
    uint64_t shares;
    _Atomic uint64_t next;
};

/* What is encoded. */
struct groups {
    const struct lh_code *code;
    const void *const *data;
    void *const *parity;
    size_t bytes;
    size_t share_bytes;
    uint64_t shares_a_group;
};

struct helper {
    struct work work; /* first: the pool gives it back */
    struct lh_encoder *encoder;
};

struct lh_encoder {
    struct work_pool *pool;
    pthread_mutex_t lock;
    pthread_cond_t helped; /* running became 0 */
    uint32_t running;      /* helpers that were given and neither ended nor taken back */
    struct job job;
    uint32_t threads;
    struct helper helpers[];
};

static void take_shares(struct job *job)
{
    uint64_t share;
    while ((share = atomic_fetch_add(&job->next, 1)) < job->shares)
        job->run(job->argument, share);
}

static void no_longer_running(struct lh_encoder *encoder, uint32_t count)
{
    pthread_mutex_lock(&encoder->lock);
    assert(encoder->running >= count);
    encoder->running -= count;
    if (encoder->running == 0)
        pthread_cond_signal(&encoder->helped);
    pthread_mutex_unlock(&encoder->lock);
}

static void help(struct work *work)
{
    struct lh_encoder *encoder = ((struct helper *)work)->encoder;
    take_shares(&encoder->job);
    no_longer_running(encoder, 1);
}

int lh_encoder_create(uint32_t threads, const int *cpus, struct lh_encoder **encoder)
{
    if (threads > WORK_THREADS_MAX)
        return lh_fail(LH_EINVAL, "encoder: %u threads exceed the maximum of %u", threads,
                       WORK_THREADS_MAX);
    struct lh_encoder *made = calloc(1, sizeof *made + threads * sizeof made->helpers[0]);
    if (!made)
        return lh_fail(LH_ENOMEM, "no memory for an encoder of %u threads", threads);
    made->pool = work_pool_create(threads, cpus);
    if (!made->pool) {
        free(made);
        return -LH_ESYSTEM; /* its error text is set */
    }
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->helped, NULL);
    made->threads = threads;
    for (uint32_t i = 0; i < threads; i++)
        made->helpers[i] = (struct helper){.work = {.run = help}, .encoder = made};
    *encoder = made;
    return 0;
}

void encoder_share_out(struct lh_encoder *encoder, uint64_t shares,
                       void (*run)(void *argument, uint64_t share), void *argument)
{
    assert(encoder->running == 0);
    if (shares == 0)
        return;
    struct job *job = &encoder->job;
    job->run = run;
    job->argument = argument;
    job->shares = shares;
    atomic_store(&job->next, 0);
    uint32_t helpers = shares - 1 < encoder->threads ? (uint32_t)shares - 1 : encoder->threads;
    encoder->running = helpers;
    for (uint32_t i = 0; i < helpers; i++)
        work_pool_give(encoder->pool, &encoder->helpers[i].work);
    take_shares(job);
    uint32_t not_begun = 0;
    for (uint32_t i = 0; i < helpers; i++)
        not_begun += work_pool_take_back(encoder->pool, &encoder->helpers[i].work);
    no_longer_running(encoder, not_begun);
    pthread_mutex_lock(&encoder->lock);
    while (encoder->running > 0)
        pthread_cond_wait(&encoder->helped, &encoder->lock);
    pthread_mutex_unlock(&encoder->lock);
}

static void encode_share(void *argument, uint64_t share)
{
    const struct groups *groups = argument;
    const struct lh_code *code = groups->code;
    uint64_t group = share / groups->shares_a_group;
    size_t from = (size_t)(share % groups->shares_a_group) * groups->share_bytes;
    size_t left = groups->bytes - from;
    code_encode_range(code, groups->data + group * code->k, groups->parity + group * code->m, from,
                      left < groups->share_bytes ? left : groups->share_bytes);
}

/* Cuts each of `count` groups into shares, so that there are enough for all. */
static void cut(struct groups *groups, uint32_t count, uint32_t threads)
{
    uint64_t wanted = (uint64_t)SHARES_A_THREAD * threads;
    uint64_t parts = threads > 1 ? (wanted + count - 1) / count : 1;
    size_t bytes = groups->bytes / (size_t)parts + 1;
    bytes = (bytes + SHARE_BYTES_UNIT - 1) / SHARE_BYTES_UNIT * SHARE_BYTES_UNIT;
    groups->share_bytes = parts > 1 ? bytes : groups->bytes;
    groups->shares_a_group = (groups->bytes + groups->share_bytes - 1) / groups->share_bytes;
}

void lh_encoder_encode(struct lh_encoder *encoder, const struct lh_code *code, uint32_t groups,
                       const void *const *data, void *const *parity, size_t bytes)
{
    if (groups == 0 || bytes == 0)
        return;
    struct groups all = {.code = code, .data = data, .parity = parity, .bytes = bytes};
    cut(&all, groups, encoder->threads + 1);
    encoder_share_out(encoder, all.shares_a_group * groups, encode_share, &all);
}

void lh_encoder_destroy(struct lh_encoder *encoder)
{
    if (!encoder)
        return;
    assert(encoder->running == 0);
    work_pool_destroy(encoder->pool);
    pthread_cond_destroy(&encoder->helped);
    pthread_mutex_destroy(&encoder->lock);
    free(encoder);
}
