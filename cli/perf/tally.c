/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/perf/tally.h"

#define UNITS 1e9

void cli_perf_tally_init(struct cli_perf_tally *tally, uint64_t warmup)
{
    *tally = (struct cli_perf_tally){.warmup = warmup, .share_min = 1};
}

int cli_perf_tally_add(struct cli_perf_tally *tally, uint64_t index, struct lh_request *request)
{
    struct lh_delivery delivery;
    int error = lh_delivery(request, &delivery);
    if (error || index < tally->warmup)
        return error;
    double all = (double)delivery.arrived_bytes + (double)delivery.missing_bytes;
    double share = all > 0 ? (double)delivery.arrived_bytes / all : 1;
    tally->count++;
    tally->share_sum += share;
    tally->share_min = share < tally->share_min ? share : tally->share_min;
    tally->ranges += delivery.missing_ranges;
    tally->deadline_hits += delivery.end == LH_END_DEADLINE;
    tally->preempted += delivery.end == LH_END_PREEMPTED;
    return 0;
}

void cli_perf_tally_write(const struct cli_perf_tally *tally, uint64_t numbers[CLI_PERF_TALLY_NUMBERS])
{
    double mean = tally->count > 0 ? tally->share_sum / (double)tally->count : 1;
    numbers[CLI_PERF_SHARE_MEAN] = (uint64_t)(mean * UNITS + 0.5);
    numbers[CLI_PERF_SHARE_MIN] = (uint64_t)(tally->share_min * UNITS + 0.5);
    numbers[CLI_PERF_MISSING_RANGES] = tally->ranges;
    numbers[CLI_PERF_DEADLINE_HITS] = tally->deadline_hits;
    numbers[CLI_PERF_PREEMPTED] = tally->preempted;
}
