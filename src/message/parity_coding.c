/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/parity_coding.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <longhaul/connection.h>
#include <longhaul/scheme.h>
#include <longhaul/sdr_ext.h>
#include <longhaul/types.h>
#include <sdr.h>
#include <sdr_mr.h>

#include "coding/encoder.h"
#include "sdr/sdr_driver.h"
#include "store/store.h"

/* ---- coder ----------------------------------------------------------------------------------------- */

struct place {
    struct work work; /* first: a piece of work is its place */
    struct coder *coder;
    bool in_use; /* under the connection's lock, like all below but `ran` */
    bool ran;    /* under the coder's lock; its result was not returned yet */
    struct coder_job job;
    struct coder_result result;
    struct place *next; /* while unused */
};

#define PLACES_A_BLOCK 16u

struct place_block {
    struct place_block *next;
    struct place places[PLACES_A_BLOCK];
};

struct coder {
    struct sdr_context *context;
    struct sdr_qp *qp;
    struct coder_threads *threads;
    struct work_pool *pool; /* theirs; NULL: none, or not asked for yet */
    pthread_mutex_t lock;
    pthread_cond_t ran;
    _Atomic uint32_t results; /* places that ran */
    struct store *store;
    struct place_block *blocks;
    struct place *unused; /* of all blocks */
    uint32_t count;       /* in all blocks */
    uint32_t in_use;
};

/* ---- threads ----------------------------------------------------------------------------------------- */

void coder_threads_init(struct coder_threads *threads, uint32_t count)
{
    *threads = (struct coder_threads){.count = count};
    if (sched_getaffinity(0, sizeof threads->allowed, &threads->allowed))
        CPU_ZERO(&threads->allowed);
    pthread_mutex_init(&threads->lock, NULL);
}

void coder_threads_end(struct coder_threads *threads)
{
    work_pool_destroy(threads->pool);
    pthread_mutex_destroy(&threads->lock);
}

/* Threads begin where their creator may run: here a worker, which may be bound to one CPU. */
static struct work_pool *start_unbound(const struct coder_threads *threads)
{
    cpu_set_t own;
    bool bound = CPU_COUNT(&threads->allowed) > 0 && !sched_getaffinity(0, sizeof own, &own) &&
                 !CPU_EQUAL(&own, &threads->allowed) &&
                 !sched_setaffinity(0, sizeof threads->allowed, &threads->allowed);
    struct work_pool *pool = work_pool_create(threads->count, NULL);
    if (bound)
        sched_setaffinity(0, sizeof own, &own);
    return pool;
}

/* NULL: without them the worker does it. */
static struct work_pool *start_threads(struct coder_threads *threads)
{
    pthread_mutex_lock(&threads->lock);
    if (!threads->started)
        threads->pool = start_unbound(threads);
    threads->started = true;
    pthread_mutex_unlock(&threads->lock);
    return threads->pool;
}

/* ---- a coder ----------------------------------------------------------------------------------------- */

struct coder *coder_create(struct coder_threads *threads, struct store *store)
{
    struct coder *coder = store_take(store, sizeof *coder);
    if (!coder)
        return NULL;
    coder->threads = threads;
    coder->store = store;
    pthread_mutex_init(&coder->lock, NULL);
    pthread_cond_init(&coder->ran, NULL);
    return coder;
}

static void add_places(struct coder *coder)
{
    struct place_block *block =
        coder->count < CODER_JOBS_MAX ? store_take(coder->store, sizeof *block) : NULL;
    if (!block)
        return;
    block->next = coder->blocks;
    coder->blocks = block;
    coder->count += PLACES_A_BLOCK;
    for (uint32_t i = 0; i < PLACES_A_BLOCK; i++) {
        block->places[i].coder = coder;
        block->places[i].next = coder->unused;
        coder->unused = &block->places[i];
    }
}

void coder_give_back(struct coder *coder)
{
    struct place_block *next;
    if (coder->in_use > 0)
        return;
    for (struct place_block *block = coder->blocks; block; block = next) {
        next = block->next;
        store_give(coder->store, block, sizeof *block);
    }
    coder->blocks = NULL;
    coder->unused = NULL;
    coder->count = 0;
}

/* The first place from this one on that the caller is looking for, or NULL. */
typedef bool is_wanted(const struct place *place, const void *owner);
static struct place *find_place(const struct coder *coder, is_wanted *wanted, const void *owner)
{
    for (struct place_block *block = coder->blocks; block; block = block->next)
        for (uint32_t i = 0; i < PLACES_A_BLOCK; i++) /* CODER_JOBS_MAX in all */
            if (wanted(&block->places[i], owner))
                return &block->places[i];
    return NULL;
}

static bool has_run(const struct place *place, const void *owner)
{
    (void)owner;
    return place->ran;
}

static bool is_of(const struct place *place, const void *owner)
{
    return place->in_use && place->job.owner == owner;
}

static bool is_decoding(const struct place *place, const void *owner)
{
    (void)owner;
    return place->in_use && place->job.groups > 0;
}

void coder_bind(struct coder *coder, struct sdr_context *context, struct sdr_qp *qp)
{
    coder->context = context;
    coder->qp = qp;
}

void coder_destroy(struct coder *coder)
{
    if (!coder)
        return;
    assert(coder->in_use == 0);
    coder_give_back(coder);
    pthread_cond_destroy(&coder->ran);
    pthread_mutex_destroy(&coder->lock);
    store_give(coder->store, coder, sizeof *coder);
}

/* ---- one job ----------------------------------------------------------------------------------------- */

static void compute(const struct coder *coder, const struct coder_job *job, struct coder_result *result)
{
    lh_time began = lh_sdr_now(coder->context);
    *result = (struct coder_result){.owner = job->owner, .decoded = job->groups > 0, .number = job->number};
    if (!result->decoded)
        job->ops->encode(job->coding, job->group, job->first_row, job->rows);
    for (uint32_t g = job->group; g < job->group + job->groups; g++)
        result->recovered += job->ops->decode(job->coding, g, job->chunks, job->extra);
    result->took_ns = lh_sdr_now(coder->context) - began;
}

static void run_on_thread(struct work *work)
{
    struct place *place = (struct place *)work;
    struct coder *coder = place->coder;
    compute(coder, &place->job, &place->result);
    pthread_mutex_lock(&coder->lock);
    place->ran = true;
    atomic_fetch_add(&coder->results, 1);
    pthread_cond_broadcast(&coder->ran);
    /* Under the lock: whoever has got the result may destroy coder and queue pair. */
    sdr_qp_driver_kick(coder->qp);
    pthread_mutex_unlock(&coder->lock);
}

static void give_back(struct coder *coder, struct place *place)
{
    place->in_use = false;
    coder->in_use--;
    place->ran = false;
    place->next = coder->unused;
    coder->unused = place;
}

/* ---- giving ------------------------------------------------------------------------------------------ */

static struct work_pool *pool_of(struct coder *coder)
{
    if (!coder->pool && coder->threads->count != LH_NO_CODERS)
        coder->pool = start_threads(coder->threads);
    return coder->pool;
}

bool coder_submit(struct coder *coder, const struct coder_job *wanted, struct coder_result *result)
{
    struct work_pool *pool = pool_of(coder);
    if (pool && !coder->unused)
        add_places(coder);
    struct place *place = coder->unused;
    if (!pool || !place) {
        compute(coder, wanted, result);
        return true;
    }
    coder->unused = place->next;
    coder->in_use++;
    place->job = *wanted;
    place->in_use = true;
    place->work = (struct work){.run = run_on_thread};
    work_pool_give(pool, &place->work);
    return false;
}

/* ---- results ----------------------------------------------------------------------------------------- */

bool coder_has_results(const struct coder *coder)
{
    return atomic_load_explicit(&coder->results, memory_order_acquire) > 0;
}

/* A place that ran, taken off the list; NULL when there is none. */
static struct place *take_ran(struct coder *coder)
{
    pthread_mutex_lock(&coder->lock);
    struct place *found = find_place(coder, has_run, NULL);
    if (found) {
        found->ran = false;
        atomic_fetch_sub(&coder->results, 1);
    }
    pthread_mutex_unlock(&coder->lock);
    return found;
}

bool coder_collect(struct coder *coder, struct coder_result *result)
{
    struct place *place = coder_has_results(coder) ? take_ran(coder) : NULL;
    if (!place)
        return false;
    *result = place->result;
    give_back(coder, place);
    return true;
}

static void wait_until_ran(struct coder *coder, struct place *place)
{
    pthread_mutex_lock(&coder->lock);
    while (!place->ran)
        pthread_cond_wait(&coder->ran, &coder->lock);
    place->ran = false;
    atomic_fetch_sub(&coder->results, 1);
    pthread_mutex_unlock(&coder->lock);
}

void coder_drop(struct coder *coder, const void *owner)
{
    struct place *place;
    while ((place = find_place(coder, is_of, owner)) != NULL) { /* each turn gives one back */
        if (!work_pool_take_back(coder->pool, &place->work))
            wait_until_ran(coder, place);
        give_back(coder, place);
    }
}

bool coder_finish_decoding(struct coder *coder, struct coder_result *result)
{
    struct place *place = find_place(coder, is_decoding, NULL);
    if (!place)
        return false;
    if (work_pool_take_back(coder->pool, &place->work))
        compute(coder, &place->job, &place->result);
    else
        wait_until_ran(coder, place);
    *result = place->result;
    give_back(coder, place);
    return true;
}

/* ---- parity ---------------------------------------------------------------------------------------- */

#define ALIGNMENT 64u

static size_t rounded_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t bytes_of(size_t bytes, size_t notes_bytes)
{
    return rounded_up(bytes) + rounded_up(notes_bytes);
}

static void free_buffer(struct parity_pool *pool, struct parity_buffer *buffer)
{
    sdr_mr_drop(buffer->mr);
    store_give(pool->store, buffer->chunks, bytes_of(buffer->bytes, buffer->notes_bytes));
    free(buffer);
}

typedef void *take_memory(struct store *store, size_t bytes);

static struct parity_buffer *make_buffer(struct parity_pool *pool, size_t bytes, size_t notes_bytes,
                                         take_memory *take)
{
    struct parity_buffer *buffer = calloc(1, sizeof *buffer);
    uint8_t *chunks = take(pool->store, bytes_of(bytes, notes_bytes));
    if (!buffer || !chunks)
        goto free_memory;
    struct sdr_mr *mr = sdr_mr_reg(pool->context, chunks, bytes, SDR_ACCESS_REMOTE_WRITE);
    if (!mr)
        goto free_memory;
    *buffer = (struct parity_buffer){
        .chunks = chunks,
        .bytes = bytes,
        .notes = chunks + rounded_up(bytes),
        .notes_bytes = notes_bytes,
        .mr = mr,
    };
    sdr_mr_lkey_get(mr, &buffer->lkey);
    return buffer;
free_memory:
    free(buffer);
    store_give(pool->store, chunks, bytes_of(bytes, notes_bytes));
    return NULL;
}

static bool fits(const struct parity_buffer *buffer, size_t bytes, size_t notes_bytes)
{
    return buffer->bytes >= bytes && buffer->notes_bytes >= notes_bytes;
}

/* The smallest that fits, else any; NULL: there is none. */
static struct parity_buffer *take_unused(struct parity_pool *pool, size_t bytes, size_t notes_bytes)
{
    struct parity_buffer **best = &pool->unused;
    for (struct parity_buffer **at = best; *at; at = &(*at)->next) /* as many as segments in flight were */
        if (fits(*at, bytes, notes_bytes) &&
            (!fits(*best, bytes, notes_bytes) || (*at)->bytes < (*best)->bytes))
            best = at;
    struct parity_buffer *buffer = *best;
    if (buffer)
        *best = buffer->next;
    return buffer;
}

static struct parity_buffer *take_buffer(struct parity_pool *pool, size_t bytes, size_t notes_bytes,
                                         take_memory *take)
{
    assert(bytes > 0);
    struct parity_buffer *buffer = take_unused(pool, bytes, notes_bytes);
    if (buffer && !fits(buffer, bytes, notes_bytes)) {
        /* Of another code, or the other direction: the next one fits both, or each would replace the
         * other's for ever. */
        bytes = larger(bytes, buffer->bytes);
        notes_bytes = larger(notes_bytes, buffer->notes_bytes);
        free_buffer(pool, buffer);
        buffer = NULL;
    }
    if (!buffer)
        buffer = make_buffer(pool, bytes, notes_bytes, take);
    if (buffer)
        pool->in_use++;
    return buffer;
}

struct parity_buffer *parity_take(struct parity_pool *pool, size_t bytes, size_t notes_bytes)
{
    return take_buffer(pool, bytes, notes_bytes, store_take_aligned);
}

struct parity_buffer *parity_try(struct parity_pool *pool, size_t bytes, size_t notes_bytes)
{
    return take_buffer(pool, bytes, notes_bytes, store_try_aligned);
}

void parity_give(struct parity_pool *pool, struct parity_buffer *buffer)
{
    assert(pool->in_use > 0);
    pool->in_use--;
    buffer->next = pool->unused;
    pool->unused = buffer;
}

void parity_free_all(struct parity_pool *pool)
{
    assert(pool->in_use == 0);
    parity_give_back(pool);
}

void parity_give_back(struct parity_pool *pool)
{
    while (pool->unused) { /* at most as many as there ever were segments in flight */
        struct parity_buffer *buffer = pool->unused;
        pool->unused = buffer->next;
        free_buffer(pool, buffer);
    }
}
