/*
 * parity_coding.h - encoding and decoding for connections: jobs, threads, memory for parity.
 *
 * Jobs run on the engine's threads (attr.coders), so that the worker goes on injecting and receiving
 * meanwhile; without threads or memory, or when CODER_JOBS_MAX jobs wait, at once on the caller. Results
 * are returned to the caller: nothing of a job's owner is touched but the memory of its lh_coding. All calls
 * are made under the connection's lock, which no job takes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_PARITY_CODING_H
#define LH_MESSAGE_PARITY_CODING_H

#include <pthread.h>
#include <sched.h>

#include <longhaul/error.h>
#include <longhaul/scheme.h>
#include <longhaul/types.h>
#include <sdr.h>
#include <sdr_mr.h>

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

/* ---- parity ---------------------------------------------------------------------------------------- */

/*
 * Memory for extra chunks (parity), and for segments that lie in several parts of the user's, at
 * both ends: taken as segments need it, kept for the next.
 *
 * A sender learns only from a clear-to-send which code its peer wants, so this memory cannot be taken when
 * the connection is opened. There are never more buffers than two for each segment in flight, and those of
 * aborted ones of which the fabric still reads; each stays registered.
 */

struct parity_buffer {
    uint8_t *chunks; /* aligned to 64 */
    size_t bytes;    /* of them */
    uint8_t
        *notes; /* behind them: the receiver's copy of the bitmaps while it decodes; the sender's pieces */
    size_t notes_bytes;
    struct sdr_mr *mr; /* of the chunks */
    uint32_t lkey;
    struct parity_buffer *next; /* while unused */
};

struct parity_pool {
    struct sdr_context *context;
    struct store *store;
    struct parity_buffer *unused;
    uint32_t in_use; /* buffers */
};

/* NULL when there is no memory, or it cannot be registered: lh_last_error() says which. */
struct parity_buffer *parity_take(struct parity_pool *pool, size_t bytes, size_t notes_bytes);
/* The same of what the caller can do without: at the limit of the memory it is no refusal of the store. */
struct parity_buffer *parity_try(struct parity_pool *pool, size_t bytes, size_t notes_bytes);
void parity_give(struct parity_pool *pool, struct parity_buffer *buffer);
/* Those that are not in use. */
void parity_give_back(struct parity_pool *pool);
/* All must have been given back. */
void parity_free_all(struct parity_pool *pool);

#endif
