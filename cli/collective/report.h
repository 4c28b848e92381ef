/*
 * report.h - the results of 'longhaul collective', as the table of nccl-tests and as JSON.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_COLLECTIVE_REPORT_H
#define LH_CLI_COLLECTIVE_REPORT_H

#include "cli/collective/measure.h"
#include "cli/results/json.h"

#include <stdio.h>

/* Of the group, the same in all rows. */
struct cli_setup {
    uint32_t sites;
    const char *inside, *across; /* schemes in a site, and between sites */
    bool partial;                /* one of them delivers parts of messages: a column for what is missing */
};

/* After lh_group_measure(): the ranks in their order, by sites, and the slowest path. */
void cli_collective_paths(FILE *out, struct lh_group *group);
void cli_collective_titles(FILE *out, const struct cli_setup *setup);
void cli_collective_row(FILE *out, const struct cli_setup *setup, const struct cli_call *call,
                        const struct cli_measured *measured);
void cli_collective_json(struct cli_json *json, const struct cli_setup *setup, const struct cli_call *call,
                         const struct cli_measured *measured);

#endif
