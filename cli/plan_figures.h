/*
 * plan_figures.h - figures of the SDR-RDMA paper, by the model: data, scripts for gnuplot, pictures.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CLI_PLAN_FIGURES_H
#define CLI_PLAN_FIGURES_H

#include <longhaul/model.h>
#include <longhaul/plan.h>

#include <stdbool.h>

#define CLI_CURVES_MAX 6

/* What runs along. */
enum cli_figure_x { CLI_X_SIZE, CLI_X_LOSS, CLI_X_KM, CLI_X_PACKETS };

/* What is shown: completion time, that over the ideal, how many times faster MDS(32, 8) is than SR RTO in a
 * ring allreduce (99.9th percentile), or the share of chunks that is lost. */
enum cli_figure_y { CLI_Y_SECONDS, CLI_Y_TIMES_IDEAL, CLI_Y_ALLREDUCE, CLI_Y_CHUNK_LOSS };

struct cli_curve {
    const char *name;   /* NULL ends the list */
    const char *scheme; /* as lh_model_scheme_parse takes it */
    enum lh_plan_by by; /* mean or p99.9 */
    double bandwidth_bps, loss;
    uint64_t message_bytes;
    uint32_t datacenters; /* where they are not 0, these stand for the figure's */
};

struct cli_figure {
    const char *name; /* "figure3a" */
    const char *title;
    enum cli_figure_x x;
    double from, to, step; /* of x; step: the factor between two points */
    enum cli_figure_y y;
    struct lh_model_path path;
    struct cli_curve curves[CLI_CURVES_MAX + 1];
};

/* A list that ends with a figure without name. */
extern const struct cli_figure cli_figures_of_paper[];

/* plan_figure_value.c: a curve's value at x into *value. 0, or an error of the library. */
int cli_figure_value(const struct cli_figure *figure, const struct cli_curve *curve, double x,
                     double *value);

/* Writes all of them, and the map of figure 9, into the folder, which is made. CLI_PROCEED, or says what
 * failed. */
int cli_plan_figures(const char *folder);

#endif
