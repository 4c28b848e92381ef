/*
 * coder.h - computes what a scheme asks for: parity to be sent, lost chunks to be recovered.
 *
 * Jobs run on the engine's threads (attr.coders), so that the worker goes on injecting and receiving
 * meanwhile; without threads or memory, or when CODER_JOBS_MAX jobs wait, at once on the caller. Results
 * are returned to the caller: nothing of a job's owner is touched but the memory of its lh_coding. All calls
 * are made under the connection's lock, which no job takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_CODING_CODER_H
#define LH_MESSAGE_CODING_CODER_H

#include <pthread.h>
#include <sched.h>

#include <sdr.h>

#include <longhaul/scheme.h>

#define CODER_JOBS_MAX 256u

struct coder;
struct store;
struct work_pool;

/* Threads that the coders of an engine share. */
struct coder_threads {
    uint32_t count;    /* attr.coders */
    cpu_set_t allowed; /* where they may run; empty: not known */
    pthread_mutex_t lock;
    bool started;           /* or failed to */
    struct work_pool *pool; /* NULL: no threads */
};

/* They start with the first job of a coder, and may run where the caller may. */
void coder_threads_init(struct coder_threads *threads, uint32_t count);
/* No coder uses them any more. */
void coder_threads_end(struct coder_threads *threads);

struct coder_job {
    void *owner; /* the caller's name for the transfer */
    const struct lh_scheme_coding *ops;
    const struct lh_coding *coding; /* until the result was returned, or the job dropped */
    uint32_t group;
    uint32_t first_row; /* encode */
    uint32_t rows;
    uint32_t number;       /* encode: of the owner's */
    uint32_t groups;       /* decode: number of groups, from `group` on; 0: encode */
    const uint8_t *chunks; /* decode: bitmaps, one byte a chunk */
    const uint8_t *extra;
};

struct coder_result {
    void *owner;
    bool decoded; /* else encoded */
    uint32_t number;
    uint32_t recovered; /* decode: chunks */
    lh_time took_ns;
};

/* The threads, and the store that it takes memory from, outlive it. NULL: no memory. */
struct coder *coder_create(struct coder_threads *threads, struct store *store);
/* Before the first job: the clock, and whose driver is woken when a job is done. */
void coder_bind(struct coder *coder, struct sdr_context *context, struct sdr_qp *qp);
/* The memory of jobs, when there is none left. */
void coder_give_back(struct coder *coder);
/* No job may be left: coder_drop and coder_finish_decoding see to that. NULL is allowed. */
void coder_destroy(struct coder *coder);

/* True: the job was done at once, *result is set. False: coder_collect() returns it. */
bool coder_submit(struct coder *coder, const struct coder_job *wanted, struct coder_result *result);
/* Whether jobs are done whose results were not returned yet. Cheap; needs no lock. */
bool coder_has_results(const struct coder *coder);
/* One result; false when there is none. */
bool coder_collect(struct coder *coder, struct coder_result *result);
/* Nothing is computed for this owner any more when this returns; its results are discarded. */
void coder_drop(struct coder *coder, const void *owner);
/* Waits for one decoding job, or does it, and returns its result; false when there is none. What the sender
 * was told to have arrived must be handed over, whatever happens to the connection. */
bool coder_finish_decoding(struct coder *coder, struct coder_result *result);

#endif
