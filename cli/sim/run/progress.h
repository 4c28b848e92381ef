/*
 * progress.h - how far a simulation is, on stderr; nothing at all when stderr is no terminal.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_RUN_PROGRESS_H
#define LH_CLI_SIM_RUN_PROGRESS_H

#include <longhaul/netsim.h>
#include <longhaul/types.h>

#include <stddef.h>

struct cli_sim_progress {
    const char *label; /* which of several runs */
    bool shown;
    lh_time started_ns, drawn_ns;
};

/* The label must stay. */
void cli_sim_progress_start(struct cli_sim_progress *progress, const char *label);
/* Draws at most ten times a second. until_ps: where it will end, UINT64_MAX: unknown. */
void cli_sim_progress_show(struct cli_sim_progress *progress, const struct lh_netsim_totals *totals,
                           uint64_t until_ps);
void cli_sim_progress_clear(struct cli_sim_progress *progress);

/* The line into out[size]: flows that are done, virtual time, speed, time left; columns wide at most. */
void cli_sim_progress_line(const char *label, const struct lh_netsim_totals *totals, uint64_t until_ps,
                           double elapsed_s, unsigned columns, char *out, size_t size);

#endif
