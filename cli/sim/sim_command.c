/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/batch.h"

#include "cli/results/folder.h"
#include "cli/results/result_file.h"
#include "cli/sim/folders.h"
#include "cli/sim/report/notes.h"
#include "cli/sim/report/picture_slowdowns.h"
#include "cli/sim/report/pictures.h"
#include "cli/sim/report/results.h"
#include "cli/sim/report/summary.h"
#include "cli/sim/report/table.h"
#include "cli/sim/run/figures.h"
#include "cli/sim/run/run.h"
#include "cli/sim/scenario/figure.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/output.h"
#include "cli/terminal/stop.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>
#include <string.h>

/* Where results go; all is found to be writable before the first run. */
struct places {
    struct cli_folder top; /* "": no files */
    const char *json_path; /* NULL: none; "-": stdout */
    FILE *json;
};

/* ---- places --------------------------------------------------------------------------------------- */

/* The file's name without folder and ending. */
static const char *title_of(const struct cli_sim_plan *plan, char *room, size_t size)
{
    const char *path = plan->scenario.path, *slash = strrchr(path, '/');
    if (*plan->output.title)
        return plan->output.title;
    snprintf(room, size, "%s", slash ? slash + 1 : path);
    char *dot = strrchr(room, '.');
    if (dot && dot != room)
        *dot = 0;
    return room;
}

static int open_places(struct places *places, const char *output, const char *json)
{
    int status = CLI_PROCEED;
    *places = (struct places){.json_path = json};
    if (output)
        status = cli_folder_make(&places->top, "--output ", output);
    if (status == CLI_PROCEED && output)
        status = cli_folder_check(&places->top);
    if (status == CLI_PROCEED)
        status = cli_sim_folders_check(&places->top);
    if (status != CLI_PROCEED || !json)
        return status;
    places->json = strcmp(json, "-") ? cli_result_open("--json ", json) : stdout;
    return places->json ? CLI_PROCEED : CLI_EXIT_FAILED;
}

/* ---- the runs ------------------------------------------------------------------------------------- */

static int run_one(const struct cli_sim_results *results, const struct cli_folder *top,
                   struct cli_sim_run *run)
{
    const struct cli_sim_plan *plan = results->plan;
    char point[CLI_POINT_LABEL_MAX], label[CLI_POINT_LABEL_MAX + 32];
    cli_sim_plan_label(plan, run->point, point, sizeof point);
    if (plan->seeds > 1)
        snprintf(label, sizeof label, "seed %llu %s", (unsigned long long)run->seed, point);
    else
        snprintf(label, sizeof label, "%s", *point ? point : results->title);
    int status = cli_sim_folder_make(plan, top, run);
    if (status == CLI_PROCEED)
        status = cli_sim_run(plan, run, label);
    if (status == CLI_PROCEED && *top->path)
        status = cli_picture_data(&run->folder, &run->figures);
    if (status != CLI_PROCEED)
        cli_sim_folder_drop(top, run);
    cli_figures_free_samples(&run->figures);
    return status;
}

static int run_all(struct cli_sim_results *results, const struct cli_folder *top)
{
    const struct cli_sim_plan *plan = results->plan;
    unsigned runs = plan->points * plan->seeds;
    for (results->done = 0; results->done < runs; results->done++) {
        struct cli_sim_run *run = &results->runs[results->done];
        run->point = results->done / plan->seeds;
        run->seed = (uint64_t)plan->seed + results->done % plan->seeds;
        int status = run_one(results, top, run);
        if (status != CLI_PROCEED)
            return status;
    }
    return CLI_PROCEED;
}

/* ---- report ---------------------------------------------------------------------------------------- */

static int write_files(const struct cli_sim_results *results, const struct cli_folder *top)
{
    FILE *summary = cli_folder_open(top, "summary.json");
    if (!summary)
        return CLI_EXIT_FAILED;
    cli_sim_json(results, summary);
    int status = cli_folder_close(top, "summary.json", summary);
    if (status == CLI_PROCEED && results->plan->axes_count)
        status = cli_sim_sweep_csv(results, top);
    if (status == CLI_PROCEED && !cli_stopped()) /* who stops it does not wait for pictures */
        status = cli_pictures(results, top);
    return status;
}

static int write_json(const struct cli_sim_results *results, const struct places *places)
{
    cli_sim_json(results, places->json);
    return places->json == stdout ? CLI_PROCEED
                                  : cli_result_close("--json ", places->json_path, places->json);
}

static int report(const struct cli_sim_results *results, const struct places *places)
{
    int status = CLI_PROCEED;
    if (places->json != stdout)
        cli_sim_report(results);
    if (places->json)
        status = write_json(results, places);
    if (status == CLI_PROCEED && *places->top.path)
        status = write_files(results, &places->top);
    return status;
}

/* Flows that will never be done; those that run.until cut short were asked for. */
static int check_flows(const struct cli_sim_results *results)
{
    double flows = 0, failed = 0, stuck = 0;
    unsigned runs = 0;
    char where[48] = "";
    for (unsigned i = 0; i < results->done; i++) {
        const double *value = results->runs[i].figures.value;
        flows += value[CLI_FIGURE_FLOWS];
        failed += value[CLI_FIGURE_FAILED];
        stuck += value[CLI_FIGURE_STUCK];
        runs += value[CLI_FIGURE_FAILED] + value[CLI_FIGURE_STUCK] > 0;
    }
    if (!runs)
        return CLI_PROCEED;
    if (results->done > 1)
        snprintf(where, sizeof where, ", in %u of %u runs", runs, results->done);
    return cli_failed("%.0f of %.0f flow%s did not finish: %.0f failed, %.0f stuck%s", failed + stuck,
                      flows, cli_plural(flows), failed, stuck, where);
}

static int finish(const struct cli_sim_results *results, const struct places *places, int status)
{
    unsigned runs = results->plan->points * results->plan->seeds;
    cli_output_flush();
    if (cli_stopped())
        cli_note("interrupted after %u of %u run%s%s", results->done, runs, cli_plural(runs),
                 results->done ? " (reported)" : "");
    else if (results->done < runs && results->done)
        cli_note("reporting the %u of %u runs before", results->done, runs);
    if (results->done) {
        int reported = report(results, places);
        cli_sim_notes_after(results);
        status = status == CLI_PROCEED ? reported : status;
        status = status == CLI_PROCEED ? check_flows(results) : status;
    } else if (places->json && places->json != stdout) {
        cli_result_drop(places->json);
    }
    if (cli_stopped())
        return cli_stopped();
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}

int cli_sim_batch(const struct cli_sim_plan *plan, const char *output, const char *json)
{
    char room[NAME_MAX + 1];
    struct places places;
    struct cli_sim_results results = {.plan = plan, .title = title_of(plan, room, sizeof room)};
    results.runs = calloc((size_t)plan->points * plan->seeds, sizeof *results.runs);
    if (!results.runs)
        return cli_failed("out of memory");
    cli_stop_at_once(false); /* from here on there are files */
    int status = open_places(&places, output, json);
    if (status == CLI_PROCEED) {
        cli_sim_notes_before(plan, output != NULL);
        status = cli_sim_folders_clear(&places.top);
        status = finish(&results, &places, status == CLI_PROCEED ? run_all(&results, &places.top) : status);
    }
    for (unsigned i = 0; i < plan->points * plan->seeds; i++)
        cli_operations_free(&results.runs[i].figures.operations);
    free(results.runs);
    return status;
}
