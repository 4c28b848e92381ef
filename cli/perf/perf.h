/*
 * perf.h - what the parts of longhaul perf share: the order, the result, the two sides.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_PERF_H
#define LH_CLI_PERF_PERF_H

#include "cli/options/address.h"
#include "cli/options/size_list.h"
#include "cli/perf/tally.h"

#include <longhaul/congestion.h>
#include <longhaul/connection.h>

/* A side takes at most that much memory for messages. */
#define CLI_PERF_MEMORY_MAX    ((uint64_t)4 << 30)
#define CLI_PERF_IN_FLIGHT_MAX 1024
#define CLI_PERF_MESSAGES_MAX  100000000

/* The command, with its own argc and argv; returns the exit status. */
int cli_perf(int argc, char **argv);

struct cli_perf_order {
    struct cli_address address;
    struct lh_attr attr;
    lh_time wait_ns;
    struct cli_size_list sizes;
    uint32_t iterations, warmup, in_flight;
    const char *json; /* file, "-": stdout; NULL: none */
};

/* One size, measured. */
struct cli_perf_result {
    uint64_t size_bytes;
    uint32_t iterations;
    double goodput_bps;
    double mean_s, p50_s, p99_s, p999_s, max_s; /* completion times */
    double first_s;                             /* of the very first message of the connection */
    double ideal_s;                             /* NAN: no link to compute it from */
    double rtt_s;                               /* the shortest seen; 0: not known */
    struct lh_attr agreed;
    char fabric[16];
    char chosen[LH_SCHEME_WORDS_MAX];       /* by auto, and why; "": a scheme was named */
    struct lh_congestion_report congestion; /* of this side */
    struct lh_stats local, peer;
    struct lh_bottleneck_report bottleneck;
    bool deadline;                          /* messages have one: */
    uint64_t tally[CLI_PERF_TALLY_NUMBERS]; /* what came of them */
};

#endif
