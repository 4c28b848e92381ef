/*
 * worker.h - a thread that turns arrivals into bitmap bits and ranges into packets (the paper's DPA
 * thread).
 *
 * Worker w serves the channels c of every QP with c % workers == w. Worker 0 also serves control: messages,
 * timers, and the driver of the layer above.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_WORKER_H
#define LH_SDR_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <longhaul/types.h>

#include "sdr/gate.h"
#include "sdr/run/rest.h"
#include "sdr/run/run_queue.h"
#include "sdr/run/turns.h"
#include "sdr/run/waker.h"
#include "sdr/run/watch.h"

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
    struct rest_lately rest;
};

/* What a round needs, with or without a thread. places: twice qps_max of the context, the caller's. */
void worker_init(struct worker *worker, struct sdr_context *context, uint32_t index, struct due **places);
void worker_free(struct worker *worker);
int worker_start(struct worker *worker, int cpu);
void worker_stop(struct worker *worker);

#endif
