/*
 * path_estimate.h - how lossy, how bursty and how fast a path is, from the chunks that arrive over it.
 *
 * Loss is that of chunks, for chunks are what a receiver sees; a *run* is a row of lost chunks. What is old
 * counts less: everything is halved now and then, and when the newest chunks contradict the older ones,
 * only the newest are believed. Runs are what is compared, not chunks: within a run, chunks are no news.
 *
 * Times are looks, not arrivals: a look finds what has come since the one before. So the rate is taken over
 * busy periods, from one look to a later one, and never over a pause. Pure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MODEL_PATH_ESTIMATE_H
#define LH_MODEL_PATH_ESTIMATE_H

#include <longhaul/types.h>

/* Chunks after which the newest ones are compared with the older. */
#define PATH_ESTIMATE_RECENT 2048u
/* Chunks after which what is known counts half. */
#define PATH_ESTIMATE_MEMORY (1u << 18)
/* A busy period of fewer chunks tells no rate. */
#define PATH_ESTIMATE_PERIOD 8u

struct path_counts {
    double seen; /* chunks that arrived or were lost */
    double lost;
    double runs;
};

struct path_estimate {
    struct path_counts known;
    struct path_counts recent; /* not in `known` yet */
    uint64_t chunks_seen;      /* ever */
    uint64_t chunks_lost;
    double rate_bytes; /* that came in busy periods, and */
    double rate_ns;    /* how long these took */
    lh_time period_at; /* the first look of the busy period */
    lh_time last_at;   /* the newest that found anything; LH_TIME_NEVER: none yet */
    uint64_t period_bytes;
    uint32_t period_chunks;
};

void path_estimate_init(struct path_estimate *estimate);

/* So many chunks were sent, of which some were lost, in so many runs. */
void path_estimate_on_chunks(struct path_estimate *estimate, uint32_t seen, uint32_t lost, uint32_t runs);
/* A look found so many new chunks. A pause of pause_ns ends a busy period. */
void path_estimate_on_arrivals(struct path_estimate *estimate, lh_time now, uint32_t chunks, uint64_t bytes,
                               lh_time pause_ns);

/* Share of the chunks that is lost; 0 when none was seen. */
double path_estimate_loss(const struct path_estimate *estimate);
/* The same, but as much as it well may be (a standard deviation more; when none was lost, one of those that
 * were seen): a plan for too little loss costs round trips, one for too much some parity. At most 0.5. */
double path_estimate_loss_upper(const struct path_estimate *estimate);
/* Mean length of a run; 1 when none was seen. */
double path_estimate_run_chunks(const struct path_estimate *estimate);
/* The same, but as long as it well may be: a standard deviation more. */
double path_estimate_run_upper(const struct path_estimate *estimate);
/* The mean in packets, where a chunk has so many: a burst of B that begins anywhere in a chunk of n touches
 * 1 + (B - 1) / n of them in the mean. */
double path_estimate_burst_packets(const struct path_estimate *estimate, uint32_t chunk_packets);
/* Bits a second; 0: not known yet. */
double path_estimate_rate_bps(const struct path_estimate *estimate);

#endif
