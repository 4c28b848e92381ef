/*
 * sdr_context.h - a context: one fabric, its workers, its QPs and its memory.
 *
 * Locks, in the order in which they may be taken: context->lock, the gates of the workers in ascending
 * order, qp->driver_lock, qp->lock, the gates of a QP's channels in ascending order, and inmost
 * qp->pacer_lock, memory_lock, the lock of the keepalive groups and those of the workers' queues. A worker
 * holds its own gate while it serves QPs; so what runs in its round, such as a driver's step, can neither
 * create nor destroy a QP.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_SDR_CONTEXT_H
#define LH_SDR_SDR_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include <longhaul/sdr_ext.h>

#include "fabric/fabric.h"
#include "history/path_history.h"
#include "sdr/rate_control.h"
#include "sdr/sdr_worker.h"
#include "sdr/worker_sleep.h"
#include "store/store.h"

#define CONTEXT_MEMORY_LISTS_LOG 8u
#define CONTEXT_MEMORY_LISTS     (1u << CONTEXT_MEMORY_LISTS_LOG)

struct sdr_context {
    struct fabric *fabric;
    pthread_mutex_t lock;
    /* qps_max places, those in use come first. Changed under the gates of all workers. Behind them are
     * twice as many for each worker. */
    struct sdr_qp **qps;
    uint32_t qp_count;
    uint32_t qps_max;
    struct sdr_mr *memory[CONTEXT_MEMORY_LISTS]; /* what is registered, by key; under memory_lock */
    uint32_t memory_count;
    uint32_t memory_keys; /* the newest key that was given out */
    pthread_mutex_t memory_lock;
    struct keepalive_table keepalive_table;
    struct known_paths paths; /* under paths_lock */
    pthread_mutex_t paths_lock;
    struct store store;      /* that QPs take from while they are used, and the layer above */
    _Atomic uint32_t warned; /* bits of enum sdk_warning: not to be printed (any more) */
    bool link_has_rate;      /* it is emulated, and pushes back */
    struct shared_rate
        rate; /* of all QPs together, under rate_lock; none, or on from before the first one */
    pthread_mutex_t rate_lock;
    uint32_t channels;
    uint32_t worker_count; /* 0: the caller makes progress */
    lh_time spin_ns;       /* of workers; 0: none */
    uint32_t turns;        /* workers that share the channels; without threads, the caller's turns */
    uint32_t queues;       /* of workers: as many as there may be turns */
    struct worker *workers;
};

/* Adds a QP to the workers' rounds; removes it, and returns when no worker touches it any more. */
int context_add_qp(struct sdr_context *context, struct sdr_qp *qp);
void context_remove_qp(struct sdr_context *context, struct sdr_qp *qp);

#endif
