/*
 * figures.h - the figures of a simulation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_RUN_FIGURES_H
#define LH_CLI_SIM_RUN_FIGURES_H

#include "cli/sim/run/operations.h"
#include "cli/sim/scenario/figure.h"
#include "cli/sim/scenario/keys.h"

#include <longhaul/netsim.h>

#include <stdio.h>

#define CLI_GROUPS_MAX (CLI_SITES_MAX * CLI_SITES_MAX)
_Static_assert(CLI_GROUPS_MAX >= CLI_CLASSES_MAX, "both fit");

/* Flows of one range of sizes, or of one pair of sites; those that are done. */
struct cli_class {
    uint64_t from_bytes, to_bytes; /* to: excluded; UINT64_MAX: no end */
    bool by_sites;
    unsigned from_site, to_site; /* those from CLI_SITES_MAX - 1 on are one */
    uint64_t done;
    double fct_mean, fct_p50, fct_p99, fct_max;
    double slowdown_mean, slowdown_p50, slowdown_p99, slowdown_max;
    /* Sorted; of done flows. The owner is struct cli_figures. NULL when they were given back. */
    double *fct, *slowdown;
};

struct cli_figures {
    double value[CLI_FIGURES]; /* NaN: not known */
    unsigned classes_count;
    struct cli_class classes[CLI_GROUPS_MAX];
    struct cli_class all;
    double *memory; /* of all samples */
    struct cli_operations operations;
};

/* Collects the figures of a simulation. over: no event is left. 0, or -LH_ENOMEM. */
int cli_figures_collect(struct cli_figures *figures, const struct lh_netsim *simulation,
                        const struct cli_sim_output *output, double wall_s, bool over);
/* Gives the samples of flows back; the numbers stay. */
void cli_figures_free_samples(struct cli_figures *figures);

/* "10kB … 100kB", "a > b" */
void cli_class_format(const struct cli_class *group, char *out, size_t size);

#endif
