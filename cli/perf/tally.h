/*
 * tally.h - what came of messages with a deadline, at the side that receives them.
 *
 * A sender's request is done when all has left. So the server answers each message that is done with an empty
 * one, and the client takes that for its acknowledgement; it begins with one that has the number of warm-up
 * messages, after which the server posts its receives.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PERF_TALLY_H
#define LH_CLI_PERF_TALLY_H

#include <longhaul/connection.h>

/* As a RESULT carries it, behind the counters; shares in units of 1e-9. */
enum cli_perf_tally_number {
    CLI_PERF_SHARE_MEAN,
    CLI_PERF_SHARE_MIN,
    CLI_PERF_MISSING_RANGES,
    CLI_PERF_DEADLINE_HITS,
    CLI_PERF_PREEMPTED,
    CLI_PERF_TALLY_NUMBERS,
};

struct cli_perf_tally {
    uint64_t warmup, count, ranges, deadline_hits, preempted;
    double share_sum, share_min;
};

/* The first of the messages are warm-up. */
void cli_perf_tally_init(struct cli_perf_tally *tally, uint64_t warmup);
/* The receive of the index-th message is done. 0, or the error of lh_delivery(). */
int cli_perf_tally_add(struct cli_perf_tally *tally, uint64_t index, struct lh_request *request);
void cli_perf_tally_write(const struct cli_perf_tally *tally, uint64_t numbers[CLI_PERF_TALLY_NUMBERS]);

#endif
