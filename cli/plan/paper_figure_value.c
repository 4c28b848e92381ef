/*
 * paper_figure_value.c - one value of a figure.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/paper_figure_value.h"

#include <longhaul/error.h>

#include <math.h>
#include <stdlib.h>

/* 3750 km are 25 ms of round trip in the paper (figure 3), light in vacuum; in glass they are 37.5 ms. */
#define RTT_S_PER_KM (0.025 / 3750)

/* Ten are beyond the 99.9th percentile. */
#define SAMPLES 10000
#define SEED    1
#define THREADS 2

static double measure(const struct lh_model_times *times, enum lh_plan_by by)
{
    return by == LH_PLAN_BY_P999 ? times->p999_s : times->mean_s;
}

/* The 99.9th percentile of a ring allreduce with that scheme. */
static int allreduce(const struct lh_model_path *path, uint32_t datacenters, const char *text,
                     double *seconds)
{
    struct lh_model_scheme scheme;
    struct lh_model_summary summary;
    double *samples = malloc(SAMPLES * sizeof *samples);
    int code = samples ? lh_model_scheme_parse(text, &scheme) : -LH_ENOMEM;
    if (!code)
        code = lh_model_collective_sample(path, &scheme, LH_MODEL_RING_ALLREDUCE, datacenters, SEED,
                                          THREADS, samples, SAMPLES);
    if (!code)
        code = lh_model_summarize(samples, SAMPLES, &summary);
    if (!code)
        *seconds = summary.p999_s;
    free(samples);
    return code;
}

static int speedup(const struct lh_model_path *path, uint32_t datacenters, double *value)
{
    double repeat = 0, code = 0;
    int failed = allreduce(path, datacenters, "sr-rto", &repeat);
    if (!failed)
        failed = allreduce(path, datacenters, "ec:mds,k=32,m=8,fallback=sr", &code);
    if (!failed)
        *value = repeat / code;
    return failed;
}

static struct lh_model_path path_of(const struct cli_paper_figure *figure,
                                    const struct cli_paper_curve *curve, double x)
{
    struct lh_model_path path = figure->path;
    if (curve->bandwidth_bps > 0)
        path.bandwidth_bps = curve->bandwidth_bps;
    if (curve->loss > 0)
        path.loss = curve->loss;
    if (curve->message_bytes)
        path.message_bytes = curve->message_bytes;
    if (figure->x == CLI_X_SIZE)
        path.message_bytes = (uint64_t)x;
    if (figure->x == CLI_X_LOSS)
        path.loss = x;
    if (figure->x == CLI_X_KM)
        path.rtt_s = x * RTT_S_PER_KM;
    return path;
}

int cli_paper_figure_value(const struct cli_paper_figure *figure, const struct cli_paper_curve *curve,
                           double x, double *value)
{
    struct lh_model_path path = path_of(figure, curve, x);
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    if (figure->y == CLI_Y_CHUNK_LOSS)
        return lh_model_chunk_loss(path.loss, 0, (uint32_t)x, value);
    if (figure->y == CLI_Y_ALLREDUCE)
        return speedup(&path, curve->datacenters, value);
    int code = lh_model_scheme_parse(curve->scheme, &scheme);
    if (!code)
        code = lh_model_predict(&path, &scheme, &times);
    if (!code)
        *value = measure(&times, curve->by) / (figure->y == CLI_Y_SECONDS ? 1 : times.ideal_s);
    return code;
}
