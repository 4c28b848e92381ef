/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/collective/sweep.h"

#include "cli/collective/measure.h"
#include "cli/collective/report.h"
#include "cli/results/result_file.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/output.h"
#include "cli/terminal/terminal.h"

#include <longhaul/units.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLE "collective allreduce"

struct run {
    const struct cli_sweep *sweep;
    struct cli_measure measure;
    struct cli_call call;
    struct cli_setup setup;
    bool reports;  /* rank 0 */
    bool complete; /* all sizes are measured */
    FILE *out;     /* the table's */
    struct cli_json json;
    uint64_t wrong;
};

/* ---- the report, at rank 0 --------------------------------------------------------------------------- */

/* Of rank 0, before there is a group: a path that is wrong ends it at once. */
static int open_json(struct run *run)
{
    const char *path = run->sweep->json;
    bool to_stdout = path && !strcmp(path, "-");
    run->out = to_stdout ? stderr : stdout;
    if (!path || !run->reports)
        return CLI_PROCEED;
    run->json.out = to_stdout ? stdout : cli_result_open("--json ", path);
    if (!run->json.out)
        return CLI_EXIT_FAILED;
    cli_json_open(&run->json, NULL, '[');
    return CLI_PROCEED;
}

/* What a file has of an earlier run stays where this one has not come to its end. */
static int close_json(struct run *run)
{
    FILE *out = run->json.out;
    if (!out)
        return CLI_PROCEED;
    if (!run->complete && out != stdout) {
        cli_result_drop(out);
        return CLI_PROCEED;
    }
    cli_json_close(&run->json, ']');
    cli_json_end(&run->json);
    return out == stdout ? CLI_PROCEED : cli_result_close("--json ", run->sweep->json, out);
}

static void print_head(const struct run *run)
{
    const struct cli_setup *setup = &run->setup;
    fprintf(run->out, " %s: ranks %" PRIu32 ", sites %" PRIu32 ", reliability %s", run->call.kind->name,
            run->call.ranks, setup->sites, setup->inside);
    if (setup->sites > 1)
        fprintf(run->out, ", between sites %s", setup->across);
    fprintf(run->out, ", iterations %" PRIu32 ", warm-up %" PRIu32 "\n", run->measure.iterations,
            run->measure.warmup);
    cli_collective_titles(run->out, &run->setup);
    fflush(run->out);
}

/* ---- sizes ------------------------------------------------------------------------------------------- */

static int measure_size(struct run *run, uint64_t bytes)
{
    struct cli_measured measured = {0};
    run->call.count = cli_call_count(&run->call, bytes / lh_type_bytes(run->call.type));
    int status = cli_measure(&run->measure, &run->call, &measured);
    if (status != CLI_PROCEED)
        return status;
    run->wrong += measured.wrong;
    if (!run->reports)
        return CLI_PROCEED;
    cli_collective_row(run->out, &run->setup, &run->call, &measured);
    fflush(run->out);
    if (run->json.out)
        cli_collective_json(&run->json, &run->setup, &run->call, &measured);
    return CLI_PROCEED;
}

static int measure_all(struct run *run)
{
    const struct cli_sweep *sweep = run->sweep;
    int status = CLI_PROCEED;
    if (run->reports)
        print_head(run);
    for (uint64_t bytes = sweep->begin_bytes; bytes <= sweep->end_bytes && status == CLI_PROCEED;
         bytes *= sweep->factor)
        status = measure_size(run, bytes);
    if (status != CLI_PROCEED)
        return status;
    run->complete = true;
    if (run->wrong && run->reports)
        return cli_failed("%s: %" PRIu64 " wrong element%s", sweep->kind->name, run->wrong,
                          cli_plural((double)run->wrong));
    return run->wrong ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

/* Buffers that hold the largest size. */
static bool allocate(struct run *run)
{
    struct cli_measure *measure = &run->measure;
    size_t bytes = run->sweep->end_bytes + 64;
    bytes -= bytes % 64;
    measure->in = aligned_alloc(64, bytes);
    measure->out = aligned_alloc(64, bytes);
    measure->times_s = calloc(measure->iterations, sizeof *measure->times_s);
    measure->others_s = calloc(measure->iterations, sizeof *measure->others_s);
    return measure->in && measure->out && measure->times_s && measure->others_s;
}

static int run_in(struct run *run, struct lh_group *group)
{
    const struct cli_sweep *sweep = run->sweep;
    struct cli_measure *measure = &run->measure;
    *measure =
        (struct cli_measure){.group = group, .iterations = sweep->iterations, .warmup = sweep->warmup};
    lh_collective_options_init(&measure->options);
    measure->options.schedule = sweep->schedule;
    run->call = (struct cli_call){.kind = sweep->kind,
                                  .rank = lh_group_rank(group),
                                  .ranks = lh_group_size(group),
                                  .root = sweep->root,
                                  .type = sweep->type,
                                  .reduction = sweep->reduction,
                                  .encoded = cli_group_is_partial(sweep->group)};
    run->setup = (struct cli_setup){.sites = cli_group_sites(group),
                                    .inside = cli_group_inside(sweep->group),
                                    .across = cli_group_across(sweep->group, group),
                                    .partial = cli_group_is_partial(sweep->group)};
    if (sweep->root >= run->call.ranks)
        return cli_misused("--root %" PRIu32 ": out of range (0 to %" PRIu32 ")", sweep->root,
                           run->call.ranks - 1);
    size_t elements = sweep->begin_bytes / lh_type_bytes(sweep->type);
    bool in_parts = sweep->kind->in_parts || sweep->kind->out_parts;
    if (!sweep->kind->no_data && !cli_call_count(&run->call, elements))
        return cli_misused("--begin %" PRIu64 ": less than an element%s (at least %zu)", sweep->begin_bytes,
                           in_parts ? " for each rank" : "",
                           cli_call_elements_min(&run->call) * lh_type_bytes(sweep->type));
    if (sweep->measure && lh_group_measure(group) != 0)
        return cli_failed("measuring the paths: %s", lh_last_error());
    if (sweep->measure && run->reports)
        cli_collective_paths(run->out, group);
    int status =
        allocate(run) ? measure_all(run) : cli_failed("no memory for %" PRIu64 " bytes", sweep->end_bytes);
    free(measure->in);
    free(measure->out);
    free(measure->times_s);
    free(measure->others_s);
    return status;
}

static int run_group(struct run *run)
{
    struct lh_group *group;
    int status = cli_group_create(run->sweep->group, EXAMPLE, &group);
    if (status != CLI_PROCEED)
        return status;
    status = run_in(run, group);
    lh_group_destroy(group);
    return status;
}

int cli_sweep(const struct cli_sweep *sweep)
{
    struct run run = {.sweep = sweep};
    int status = cli_group_is_first(EXAMPLE, &run.reports);
    if (status == CLI_PROCEED)
        status = open_json(&run);
    if (status != CLI_PROCEED)
        return status;
    status = run_group(&run);
    int written = close_json(&run);
    return status == CLI_EXIT_OK && written != CLI_PROCEED ? written : status;
}
