/*
 * batch.h - many seeds in several processes, so that one that falls over is known by its seed and stops no
 * other.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_TESTS_WORLD_BATCH_H
#define LH_TESTS_WORLD_BATCH_H

#include "world/world.h"

#define BATCH_FAILURES_MAX 16u

struct batch_failure {
    uint64_t seed;
    char checker[WORLD_CHECKER_MAX];
    char failure[WORLD_FAILURE_MAX];
};

struct batch_result {
    uint64_t seeds;
    uint64_t turns;
    uint64_t delivered;
    uint64_t canceled;
    uint64_t truncated;
    uint64_t exchanged;
    uint64_t operated; /* one-sided operations that are done */
    uint64_t lied;     /* seeds in which a report of arrivals was not true */
    uint64_t failures; /* also those that are not kept */
    struct batch_failure failed[BATCH_FAILURES_MAX];
    double heal_share; /* the most of its bound that any needed to end */
    uint64_t heal_seed;
    double seconds;
};

/* Seeds first … first + seeds - 1 (or until interrupted), in that number of processes; ends early after
 * BATCH_FAILURES_MAX failures. */
void batch_run(uint64_t first, uint64_t seeds, unsigned jobs, struct batch_result *result);

/* One run in a process of its own. What it printed on standard error is in report->failure when it fell
 * over: its checker is "abort" then, or "hang". */
void batch_run_alone(const struct plan *plan, enum world_canary canary, struct world_report *report);

#endif
