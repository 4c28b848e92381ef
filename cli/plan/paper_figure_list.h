/*
 * paper_figure_list.h - the figures of the SDR-RDMA paper: axes, links and curves.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_PLAN_PAPER_FIGURE_LIST_H
#define LH_CLI_PLAN_PAPER_FIGURE_LIST_H

#include <longhaul/model.h>
#include <longhaul/plan.h>

#define CLI_CURVES_MAX 6

/* What runs along. */
enum cli_figure_x { CLI_X_SIZE, CLI_X_LOSS, CLI_X_KM, CLI_X_PACKETS };

/* What is shown: completion time, that over the ideal, how many times faster MDS(32, 8) is than SR RTO in a
 * ring allreduce (99.9th percentile), or the share of chunks that is lost. */
enum cli_figure_y { CLI_Y_SECONDS, CLI_Y_TIMES_IDEAL, CLI_Y_ALLREDUCE, CLI_Y_CHUNK_LOSS };

struct cli_paper_curve {
    const char *name;   /* NULL ends the list */
    const char *scheme; /* as lh_model_scheme_parse takes it */
    enum lh_plan_by by; /* mean or p99.9 */
    double bandwidth_bps, loss;
    uint64_t message_bytes;
    uint32_t datacenters; /* where they are not 0, these stand for the figure's */
};

struct cli_paper_figure {
    const char *name; /* "figure3a" */
    const char *title;
    enum cli_figure_x x;
    double from, to, step; /* of x; step: the factor between two points */
    enum cli_figure_y y;
    struct lh_model_path path;
    struct cli_paper_curve curves[CLI_CURVES_MAX + 1];
};

/* A list that ends with a figure without name. */
extern const struct cli_paper_figure cli_paper_figures[];

#endif
