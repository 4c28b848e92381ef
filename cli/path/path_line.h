/*
 * path_line.h - one direction of an emulated path: queue, bottleneck, delay, and the statistics of its flows.
 *
 * A pure machine: packets and their times in, fates out. A packet that arrives waits until those before
 * it have left, takes its bytes / rate, and then the delay. What waits is counted in bytes, together
 * with the rest of the packet that is on its way out: an arrival that does not fit is dropped at the
 * tail, one that finds more than the threshold is marked. With a token bucket packets wait only while it is
 * empty; with one and no queue, a policer, those are dropped. What is lost at random has taken its time of
 * the bottleneck.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_PATH_LINE_H
#define LH_CLI_PATH_PATH_LINE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- histogram ------------------------------------------------------------------------------------- */

/* Times from nanoseconds to hours, counted in buckets of at most 1/16 of their value. */

#define PATH_HISTOGRAM_STEPS   16u
#define PATH_HISTOGRAM_BUCKETS (48u * PATH_HISTOGRAM_STEPS)

struct path_histogram {
    uint64_t bucket[PATH_HISTOGRAM_BUCKETS];
    uint64_t count;
    int64_t max_ns;
    double sum_ns;
};

/* Counts one time; a negative one as 0. */
void path_histogram_add(struct path_histogram *histogram, int64_t ns);
/* Of all times counted, in nanoseconds; 0 where there is none. The share is 0 to 1: 0.99 gives p99, as
 * the upper end of its bucket, at most the largest time. */
double path_histogram_mean_ns(const struct path_histogram *histogram);
int64_t path_histogram_quantile_ns(const struct path_histogram *histogram, double share);

/* ---- line ------------------------------------------------------------------------------------------ */

#define PATH_NO_LIMIT UINT64_MAX

struct path_line_config {
    uint64_t rate_bps; /* of bytes of IP packets, headers included; 0: no bottleneck, and no queue */
    int64_t delay_ns;
    uint64_t queue_bytes;  /* PATH_NO_LIMIT: never full */
    uint64_t bucket_bytes; /* token bucket: after a pause they pass at once; 0: none */
    uint64_t mark_bytes;   /* PATH_NO_LIMIT: no marks */
    double loss;           /* 0 to 1, of each packet by itself */
    uint64_t seed;
};

struct path_line_counts {
    uint64_t packets, bytes; /* that arrived */
    uint64_t delivered_packets, delivered_bytes;
    uint64_t queue_dropped_packets, queue_dropped_bytes;
    uint64_t lost_packets, lost_bytes; /* at random */
    uint64_t marked_packets;
    uint64_t queue_peak_bytes;
    struct path_histogram queueing; /* delay in the queue, of what was not dropped there */
};

struct path_line {
    struct path_line_config config;
    int64_t free_ns;     /* when the bottleneck has sent all that it holds */
    uint64_t carry_bits; /* bits times 1e9 that free_ns has rounded away, below rate_bps */
    uint64_t random;
    struct path_line_counts counts;
};

enum path_fate { PATH_DELIVERED, PATH_LOST, PATH_QUEUE_FULL };

struct path_verdict {
    enum path_fate fate;
    bool marked;      /* congestion experienced, if the packet can carry that */
    int64_t leave_ns; /* delivered: when it is at the other end */
};

void path_line_init(struct path_line *line, const struct path_line_config *config);
/* A packet of so many bytes; capable: it carries ECT or CE. Times never go back. */
struct path_verdict path_line_arrival(struct path_line *line, int64_t now_ns, uint32_t bytes, bool capable);
/* What waits now, in bytes. */
uint64_t path_line_backlog(const struct path_line *line, int64_t now_ns);

/* A new rate from now on: what is in the queue leaves at that. Each packet that has a verdict and has
 * not left takes path_line_moved() of its leave_ns. */
struct path_rate_change {
    int64_t now_ns, delay_ns;
    double stretch; /* old rate / new rate */
};
struct path_rate_change path_line_set_rate(struct path_line *line, int64_t now_ns, uint64_t rate_bps);
int64_t path_line_moved(const struct path_rate_change *change, int64_t leave_ns);

/* ---- ring ------------------------------------------------------------------------------------------ */

/* Packets in flight, of any size, in the order in which they leave. */

struct path_packet {
    int64_t leave_ns;
    uint32_t bytes;
    uint8_t flow;
    uint32_t stride; /* to the next one; 0: that is at the start of the ring */
    uint8_t data[];
};

struct path_ring {
    uint8_t *memory;
    size_t size, packet_max;
    size_t head, tail; /* equal: empty */
};

/* For packets of at most packet_max bytes, capacity bytes of them together with struct path_packet,
 * each rounded up to 16. False: out of memory. */
bool path_ring_open(struct path_ring *ring, size_t capacity, size_t packet_max);
void path_ring_close(struct path_ring *ring);

/* Where the next packet may be written, packet_max bytes at its data; NULL: full. path_ring_push()
 * puts it in. */
struct path_packet *path_ring_space(struct path_ring *ring);
void path_ring_push(struct path_ring *ring, struct path_packet *packet);
/* The oldest packet; NULL: empty. */
struct path_packet *path_ring_first(const struct path_ring *ring);
void path_ring_pop(struct path_ring *ring);
/* The one after it; NULL: it was the last. */
struct path_packet *path_ring_next(const struct path_ring *ring, const struct path_packet *packet);

/* ---- flows ----------------------------------------------------------------------------------------- */

/*
 * What each flow of a path got, over time. Flows are told apart by the last byte of the left
 * end's address.
 */

#define PATH_FLOWS          256
#define PATH_INTERVAL_NS    100000000
#define PATH_INTERVALS      1200 /* what comes after is not counted */
#define PATH_FLOW_FIRST     11   /* addresses 10.99.0.11 …, and as many at 10.99.0.131 … */
#define PATH_FLOW_FAR_FIRST 131
#define PATH_FLOW_FAR       128 /* from here on flows have the longer delay */
#define PATH_FLOWS_MAX      32

struct path_flows {
    int64_t started_ns;
    unsigned intervals; /* that anything was counted in, and those before */
    uint64_t bytes[PATH_INTERVALS][PATH_FLOWS];
};

void path_flows_add(struct path_flows *flows, int64_t now_ns, uint8_t flow, uint32_t bytes);

/* ---- processors ------------------------------------------------------------------------------------ */

/*
 * A processor for the path, the others for what runs at its ends.
 *
 * A path that keeps its times spins while packets are due, for as long as a message takes. What the
 * scheduler puts on that processor meanwhile does not run, and what is measured is that.
 */

/* Divides processors: the first for the path, the others for its ends. False: there are fewer than two; both
 * sets are empty then. */
bool path_processors_divide(const cpu_set_t *all, cpu_set_t *path, cpu_set_t *ends);
/* Divides those of this process, and moves it to the path's. False: it stays where it was, and `ends` is
 * empty: there is only one, or the system does not allow it. */
bool path_processors_take(cpu_set_t *ends);
/* In a process that is started for an end: moves it to those processors, if there are any. */
void path_processors_give(const cpu_set_t *ends);

#endif
