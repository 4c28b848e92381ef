/*
 * figure.h - what is measured of a simulation: names, titles and units.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_SIM_SCENARIO_FIGURE_H
#define LH_CLI_SIM_SCENARIO_FIGURE_H

#include <stddef.h>

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
    CLI_FIGURE_OPERATION_MEAN, /* of operations of a collective, of all seeds together */
    CLI_FIGURE_OPERATION_P50,
    CLI_FIGURE_OPERATION_P99,
    CLI_FIGURE_OPERATION_MAX,
    CLI_FIGURE_SLOWDOWN_MEAN, /* completion time over that of the same flow in an empty network */
    CLI_FIGURE_SLOWDOWN_P50,
    CLI_FIGURE_SLOWDOWN_P99,
    CLI_FIGURE_SLOWDOWN_MAX,
    CLI_FIGURE_MAKESPAN,  /* from the start of the first flow to the end of the last */
    CLI_FIGURE_GOODPUT,   /* payload that arrived, over the makespan */
    CLI_FIGURE_DELIVERED, /* of the payload of the flows that are done; less than all with a deadline */
    CLI_FIGURE_DROPPED,
    CLI_FIGURE_LOST,
    CLI_FIGURE_MARKED,
    CLI_FIGURE_PAUSES,
    CLI_FIGURE_PAUSED, /* all links together */
    CLI_FIGURE_SIGNALS_LOST,
    CLI_FIGURE_REPEATED,
    CLI_FIGURE_TIMEOUTS,
    CLI_FIGURE_QUEUE_MAX,
    CLI_FIGURE_JAIN, /* this one and the next three: between output.from and output.to */
    CLI_FIGURE_SHARE,
    CLI_FIGURE_QUEUE_MEAN, /* of the links of output.queues, each period */
    CLI_FIGURE_QUEUE_P99,
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
    CLI_UNIT_SHARE,
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

#endif
