/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "connection/coder.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "coding/work_pool.h"
#include "connection/connection.h"
#include "connection/receiver.h"
#include "sdr/driver.h"

#define JOBS_MAX 256u

struct coder_job {
    struct work work; /* first: a piece of work is its job */
    struct coder *coder;
    bool in_use; /* under the connection's lock, like all below but `ran` */
    bool ran;    /* under the coder's lock; nobody has seen that yet */
    struct send_segment *send;
    struct recv_segment *recv; /* one of the two */
    const struct lh_scheme_coding *ops;
    const struct lh_coding *coding;
    uint32_t group;
    uint32_t groups;    /* decode: so many from `group` on */
    uint32_t first_row; /* encode */
    uint32_t rows;
    uint32_t number; /* encode: of the segment's */
    uint32_t recovered;
    lh_time took_ns;
    struct coder_job *next; /* while unused */
};

struct coder {
    struct lh_connection *connection;
    struct work_pool *pool; /* NULL: no threads */
    bool threads_tried;
    pthread_mutex_t lock;
    pthread_cond_t ran;
    _Atomic uint32_t news; /* jobs that ran */
    struct coder_job *unused;
    struct coder_job jobs[JOBS_MAX];
};

struct coder *coder_create(struct lh_connection *c)
{
    struct coder *coder = calloc(1, sizeof *coder);
    if (!coder)
        return NULL;
    coder->connection = c;
    pthread_mutex_init(&coder->lock, NULL);
    pthread_cond_init(&coder->ran, NULL);
    for (uint32_t i = 0; i < JOBS_MAX; i++) {
        coder->jobs[i].coder = coder;
        coder->jobs[i].next = coder->unused;
        coder->unused = &coder->jobs[i];
    }
    return coder;
}

void coder_destroy(struct coder *coder)
{
    if (!coder)
        return;
    if (coder->pool)
        work_pool_destroy(coder->pool);
    pthread_cond_destroy(&coder->ran);
    pthread_mutex_destroy(&coder->lock);
    free(coder);
}

/* ---- one job ----------------------------------------------------------------------------------------- */

static void compute(struct coder_job *job)
{
    struct sdr_context *context = job->coder->connection->context;
    lh_time began = lh_sdr_now(context);
    if (job->send) {
        job->ops->encode(job->coding, job->group, job->first_row, job->rows);
    } else {
        const uint8_t *chunks = job->recv->coded.buffer->notes;
        const uint8_t *extra = chunks + job->coding->chunks;
        for (uint32_t g = job->group; g < job->group + job->groups; g++)
            job->recovered += job->ops->decode(job->coding, g, chunks, extra);
    }
    job->took_ns = lh_sdr_now(context) - began;
}

static void run_on_thread(struct work *work)
{
    struct coder_job *job = (struct coder_job *)work;
    struct coder *coder = job->coder;
    compute(job);
    pthread_mutex_lock(&coder->lock);
    job->ran = true;
    atomic_fetch_add(&coder->news, 1);
    pthread_cond_broadcast(&coder->ran);
    pthread_mutex_unlock(&coder->lock);
    sdr_qp_driver_kick(coder->connection->qp);
}

static void note_encoded(struct coded_send *coded, uint32_t number)
{
    assert(number - coded->encoded < LH_ENCODES_MAX);
    coded->ran |= (uint64_t)1 << (number - coded->encoded);
    for (; coded->ran & 1; coded->ran >>= 1) /* at most LH_ENCODES_MAX */
        coded->encoded++;
}

/* What it did counts from here on. */
static void enter(struct lh_connection *c, const struct coder_job *job, lh_time now)
{
    if (job->send) {
        c->stats.encode_ns += job->took_ns;
        note_encoded(&job->send->coded, job->number);
        job->send->touched = true;
        return;
    }
    c->stats.decode_ns += job->took_ns;
    c->stats.chunks_recovered += job->recovered;
    job->recv->coded.jobs--;
    if (job->recv->coded.jobs == 0)
        receiver_segment_decoded(c, job->recv, now);
}

static void give_back(struct coder *coder, struct coder_job *job)
{
    job->in_use = false;
    job->ran = false;
    job->next = coder->unused;
    coder->unused = job;
}

/* ---- giving ------------------------------------------------------------------------------------------ */

static struct work_pool *pool_of(struct lh_connection *c)
{
    struct coder *coder = c->coder;
    if (!coder->threads_tried && c->attr.coders != LH_NO_CODERS)
        coder->pool = work_pool_create(c->attr.coders, NULL); /* without them the worker does it */
    coder->threads_tried = true;
    return coder->pool;
}

static void give(struct lh_connection *c, const struct coder_job *wanted, lh_time now)
{
    struct coder *coder = c->coder;
    struct work_pool *pool = pool_of(c);
    struct coder_job *job = coder->unused;
    if (!pool || !job) {
        struct coder_job here = *wanted;
        compute(&here);
        enter(c, &here, now);
        return;
    }
    coder->unused = job->next;
    *job = *wanted;
    job->in_use = true;
    work_pool_give(pool, &job->work);
}

void coder_encode(struct lh_connection *c, struct send_segment *segment, uint32_t group, uint32_t first_row,
                  uint32_t rows)
{
    struct coded_send *coded = &segment->coded;
    struct coder_job job = {
        .work = {.run = run_on_thread},
        .coder = c->coder,
        .send = segment,
        .ops = segment->scheme->coding,
        .coding = &coded->coding,
        .group = group,
        .first_row = first_row,
        .rows = rows,
        .number = coded->asked++,
    };
    give(c, &job, 0);
}

void coder_decode(struct lh_connection *c, struct recv_segment *segment)
{
    const struct lh_scheme_coding *ops = segment->scheme->coding;
    struct coded_recv *coded = &segment->coded;
    uint32_t groups = ops->groups(coded->coding.params, coded->coding.chunks);
    uint32_t threads = c->attr.coders == LH_NO_CODERS ? 1 : c->attr.coders;
    uint32_t jobs = groups < threads ? groups : threads;
    assert(jobs > 0);
    lh_time now = lh_sdr_now(c->context);
    coded->jobs = jobs;
    for (uint32_t i = 0; i < jobs; i++) {
        uint32_t from = (uint32_t)((uint64_t)groups * i / jobs);
        uint32_t to = (uint32_t)((uint64_t)groups * (i + 1) / jobs);
        struct coder_job job = {
            .work = {.run = run_on_thread},
            .coder = c->coder,
            .recv = segment,
            .ops = ops,
            .coding = &coded->coding,
            .group = from,
            .groups = to - from,
        };
        give(c, &job, now);
    }
}

/* ---- seeing what was done ---------------------------------------------------------------------------- */

bool coder_has_news(const struct coder *coder)
{
    return atomic_load_explicit(&coder->news, memory_order_acquire) > 0;
}

/* A job that ran, taken off the list; NULL when there is none. */
static struct coder_job *take_ran(struct coder *coder)
{
    struct coder_job *found = NULL;
    pthread_mutex_lock(&coder->lock);
    for (uint32_t i = 0; i < JOBS_MAX && !found; i++)
        if (coder->jobs[i].ran)
            found = &coder->jobs[i];
    if (found) {
        found->ran = false;
        atomic_fetch_sub(&coder->news, 1);
    }
    pthread_mutex_unlock(&coder->lock);
    return found;
}

void coder_collect(struct lh_connection *c, lh_time now)
{
    struct coder *coder = c->coder;
    struct coder_job *job;
    while (coder_has_news(coder) && (job = take_ran(coder)) != NULL) { /* at most JOBS_MAX are out */
        struct coder_job done = *job;
        give_back(coder, job);
        enter(c, &done, now);
    }
}

static void wait_until_ran(struct coder *coder, struct coder_job *job)
{
    pthread_mutex_lock(&coder->lock);
    while (!job->ran)
        pthread_cond_wait(&coder->ran, &coder->lock);
    job->ran = false;
    atomic_fetch_sub(&coder->news, 1);
    pthread_mutex_unlock(&coder->lock);
}

void coder_drop(struct lh_connection *c, struct send_segment *segment)
{
    struct coder *coder = c->coder;
    if (segment->coded.asked == segment->coded.encoded)
        return;
    for (uint32_t i = 0; i < JOBS_MAX; i++) {
        struct coder_job *job = &coder->jobs[i];
        if (!job->in_use || job->send != segment)
            continue;
        if (!work_pool_take_back(coder->pool, &job->work))
            wait_until_ran(coder, job);
        give_back(coder, job);
    }
}

void coder_finish(struct lh_connection *c, lh_time now)
{
    struct coder *coder = c->coder;
    for (uint32_t i = 0; i < JOBS_MAX; i++) {
        struct coder_job *job = &coder->jobs[i];
        if (!job->in_use || !job->recv)
            continue;
        struct coder_job done;
        if (work_pool_take_back(coder->pool, &job->work)) {
            done = *job;
            compute(&done);
        } else {
            wait_until_ran(coder, job);
            done = *job;
        }
        give_back(coder, job);
        enter(c, &done, now);
    }
}
