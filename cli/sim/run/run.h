/*
 * run.h - one simulation from its start to its end, and the files about it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_RUN_RUN_H
#define LH_CLI_SIM_RUN_RUN_H

#include "cli/results/folder.h"
#include "cli/sim/run/figures.h"
#include "cli/sim/run/series.h"
#include "cli/sim/scenario/sweep.h"

struct cli_sim_run {
    unsigned point;
    uint64_t seed;
    struct cli_folder folder; /* for its files; "": none */
    struct cli_figures figures;
    struct cli_series_shape queues, rates;
    uint64_t captured, uncaptured; /* packets in capture.pcap, and those that came when it was full */
};

/* Runs it; label is what the progress bar calls it. CLI_PROCEED with the figures, which the caller
 * frees; or reports the cause. */
int cli_sim_run(const struct cli_sim_plan *plan, struct cli_sim_run *run, const char *label);

#endif
