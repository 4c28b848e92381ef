/*
 * line.h - one direction of a path: a queue, a bottleneck that drains it, and a propagation delay
 * behind.
 *
 * A pure machine: packets and their times in, fates out. A packet that arrives waits until those before
 * it have left, takes its bytes / rate, and then the delay. What waits is counted in bytes, together
 * with the rest of the packet that is on its way out: an arrival that does not fit is dropped at the
 * tail, one that finds more than the threshold is marked. What is lost at random has taken its time of
 * the bottleneck.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PATH_LINE_H
#define LH_CLI_PATH_LINE_H

#include "cli/path/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_NO_LIMIT UINT64_MAX

struct path_line_config {
    uint64_t rate_bps; /* of bytes of IP packets, headers included; 0: no bottleneck, and no queue */
    int64_t delay_ns;
    uint64_t queue_bytes; /* PATH_NO_LIMIT: never full */
    uint64_t mark_bytes;  /* PATH_NO_LIMIT: no marks */
    double loss;          /* 0 to 1, of each packet by itself */
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

#endif
