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
#include "sdr/waker.h"

struct sdr_context;

struct worker {
    struct sdr_context *context;
    uint32_t index;
    pthread_t thread;
    bool started;
    struct gate gate; /* held during a round */
    struct waker waker;
    _Atomic bool stop;
};

int worker_start(struct worker *worker, struct sdr_context *context, uint32_t index, int cpu);
void worker_stop(struct worker *worker);
/* One round over all QPs of the context for the channels of worker `index` (of `count`). Returns whether
 * anything moved; *next: when the next round is due at the latest. */
bool worker_round(struct sdr_context *context, uint32_t index, uint32_t count, lh_time *next);

#endif
