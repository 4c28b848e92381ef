/*
 * sim_figures.h - what is said about one simulation in numbers, and about several in means.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_SIM_FIGURES_H
#define CLI_SIM_FIGURES_H

#include "sim_keys.h"

#include <longhaul/netsim.h>

#include <stdio.h>

enum cli_figure {
    CLI_FIGURE_FLOWS,
    CLI_FIGURE_DONE,
    CLI_FIGURE_FAILED,   /* gave up, see transport.retries */
    CLI_FIGURE_STUCK,    /* neither, and nothing is left to happen: stopped for ever */
    CLI_FIGURE_FCT_MEAN, /* flow completion time: from a flow's start to its last acknowledgement */
    CLI_FIGURE_FCT_P50,
    CLI_FIGURE_FCT_P99,
    CLI_FIGURE_FCT_MAX,
    CLI_FIGURE_RECEIVED_MEAN, /* from its start to when its receiver has the last byte */
    CLI_FIGURE_RECEIVED_P99,
    CLI_FIGURE_ACROSS_MEAN, /* completion time of flows between sites; and as their receivers see it */
    CLI_FIGURE_ACROSS_P99,
    CLI_FIGURE_ACROSS_RECEIVED_MEAN,
    CLI_FIGURE_ACROSS_RECEIVED_P99,
    CLI_FIGURE_SLOWDOWN_MEAN, /* completion time over that of the same flow in an empty network */
    CLI_FIGURE_SLOWDOWN_P50,
    CLI_FIGURE_SLOWDOWN_P99,
    CLI_FIGURE_SLOWDOWN_MAX,
    CLI_FIGURE_MAKESPAN, /* from the start of the first flow to the end of the last */
    CLI_FIGURE_GOODPUT,  /* payload that arrived, over the makespan */
    CLI_FIGURE_DROPPED,
    CLI_FIGURE_LOST,
    CLI_FIGURE_MARKED,
    CLI_FIGURE_PAUSES,
    CLI_FIGURE_PAUSED, /* all links together */
    CLI_FIGURE_SIGNALS_LOST,
    CLI_FIGURE_REPEATED,
    CLI_FIGURE_TIMEOUTS,
    CLI_FIGURE_QUEUE_MAX,
    CLI_FIGURE_VIRTUAL,
    CLI_FIGURE_HOPS,
    CLI_FIGURE_HOPS_RATE, /* this one and all below depend on the machine */
    CLI_FIGURE_WALL,
    CLI_FIGURE_MEMORY,
    CLI_FIGURES
};

enum cli_unit {
    CLI_UNIT_NONE,
    CLI_UNIT_SECONDS,
    CLI_UNIT_BPS,
    CLI_UNIT_BYTES,
    CLI_UNIT_RATIO,
    CLI_UNIT_PER_S
};

struct cli_figure_info {
    const char *name; /* "fct_p99" */
    const char *json; /* "fct_p99_s": with its unit */
    const char *title;
    enum cli_unit unit;
};
extern const struct cli_figure_info cli_figure_infos[CLI_FIGURES];

/* By its name, with its unit or without. CLI_FIGURES: there is none of that name. */
unsigned cli_figure_find(const char *name);
/* The value for people, into out[CLI_CELL_MAX]; "-" when it is NaN. */
void cli_figure_format(unsigned figure, double value, char *out, size_t size);

#define CLI_GROUPS_MAX (CLI_SITES_MAX * CLI_SITES_MAX)
_Static_assert(CLI_GROUPS_MAX >= CLI_CLASSES_MAX, "either has room");

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
};

/* Looks at everything that a simulation tells. over: nothing is left to happen in it. 0, or -LH_ENOMEM. */
int cli_figures_collect(struct cli_figures *figures, const struct lh_netsim *simulation,
                        const struct cli_sim_output *output, double wall_s, bool over);
/* Gives the samples back; the numbers stay. */
void cli_figures_free_samples(struct cli_figures *figures);

/* Mean of count values, and half the width of its 95 % confidence interval (Student's t; NaN for one
 * value). */
double cli_mean_ci95(const double *values, unsigned count, double *half);

/* "10kB … 100kB", "a > b" */
void cli_class_format(const struct cli_class *group, char *out, size_t size);

#endif
