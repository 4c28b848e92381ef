/*
 * sdr_worker.h - a thread that turns arrivals into bitmap bits and ranges into packets (the paper's DPA
 * thread).
 *
 * Worker w serves the channels c of every QP with c % workers == w. Worker 0 also serves control: messages,
 * timers, and the driver of the layer above.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_SDR_WORKER_H
#define LH_SDR_SDR_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <longhaul/types.h>
#include <sdr.h>

#include "sdr/run_queue.h"
#include "sdr/worker_sleep.h"

struct sdr_context;

struct worker {
    struct sdr_context *context;
    uint32_t index;
    pthread_t thread;
    bool started;
    struct gate gate; /* held during a round */
    struct waker waker;
    _Atomic bool stop;

    struct run_queue queue; /* of the QPs; each has an entry in each worker's */
    /* The rest under the gate. */
    struct turn_order turns; /* of the entries that were taken from there */
    struct watch watch;
    bool moved;         /* anything, in the last round */
    uint32_t following; /* entries with descriptors that the next round serves in any case */
    lh_time looked_ns;  /* at the descriptors */
    struct coalesce_recent coalesce;
};

/* What a round needs, with or without a thread. places: twice qps_max of the context, the caller's. */
void worker_init(struct worker *worker, struct sdr_context *context, uint32_t index, struct due **places);
void worker_free(struct worker *worker);
int worker_start(struct worker *worker, int cpu);
void worker_stop(struct worker *worker);

/* ---- round ----------------------------------------------------------------------------------------- */

/*
 * A worker's round: it serves the QPs that are ready and those that are due, and no others.
 *
 * A QP is ready when it was marked (qp.h: qp_wake_channel and its like), when one of its descriptors is
 * readable, and when something moved in it the last time. It is due when it said so when it was served last.
 */

/* One round of worker `index` (of `count`). Returns whether anything moved; *next: when the next round is due
 * at the latest. */
bool round_run(struct sdr_context *context, uint32_t index, uint32_t count, lh_time *next);
/* Under the gates of all workers: the QP has an entry in each worker's queue from then on, or in none. */
void round_add_qp(struct sdr_context *context, struct sdr_qp *qp);
void round_remove_qp(struct sdr_context *context, struct sdr_qp *qp);

#endif
