/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/commands.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/cli_options.h"
#include "cli/results/result_file.h"
#include "cli/sim/scenario.h"
#include "cli/sim/sim_report.h"
#include "cli/sim/sim_results.h"
#include "cli/terminal/terminal.h"

/* ---- folders --------------------------------------------------------------------------------------- */

/*
 * The folders of a plan: one for each point of a sweep, one in that for each seed; and what
 * an earlier run left in them.
 */

#define SEED "seed-"

/* What is done with files: CLI_PROCEED, or the end of it. */
typedef int act_on(const struct cli_folder *folder, const char *name);

static int remove_one(const struct cli_folder *folder, const char *name)
{
    cli_folder_remove(folder, name);
    return CLI_PROCEED;
}

static int expect_none(const struct cli_folder *folder, const char *name)
{
    return cli_folder_is_marked(folder) ? CLI_PROCEED : cli_folder_vacant(folder, "--output ", name);
}

/* With each file that a run may write. */
static int each_file(const struct cli_folder *folder, act_on *act)
{
    static const char *const names[] = {
        "flows.csv",    "links.csv",  "queues.csv", "rates.csv", "capture.pcap", "fct.dat",
        "summary.json", "sweep.csv",  "sweep.dat",  "fct.gp",    "queues.gp",    "rates.gp",
        "sweep.gp",     "queues.svg", "rates.svg",  "fct.svg",   "sweep.svg",
    };
    int status = CLI_PROCEED;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && status == CLI_PROCEED; i++)
        status = act(folder, names[i]);
    return status;
}

static int is_of_seed(const struct dirent *entry)
{
    size_t digits =
        strncmp(entry->d_name, SEED, strlen(SEED)) ? 0 : strspn(entry->d_name + strlen(SEED), "0123456789");
    return digits && !entry->d_name[strlen(SEED) + digits];
}

/* Begins with a key that can be swept, without its section, and '='. */
static int is_of_point(const struct dirent *entry)
{
    size_t count = 0, length = strcspn(entry->d_name, "=");
    const struct lh_netsim_key *keys = lh_netsim_keys(&count);
    for (size_t i = 0; i < count && entry->d_name[length]; i++) {
        const char *key = cli_sim_plan_short(keys[i].name);
        if (strlen(key) == length && !memcmp(key, entry->d_name, length))
            return 1;
    }
    return 0;
}

/* What a folder in another is called; false: it is too long for one of ours. */
static bool find_inside(struct cli_folder *inside, const struct cli_folder *folder, const char *name)
{
    int length = snprintf(inside->path, sizeof inside->path, "%s/%s", folder->path, name);
    return length > 0 && (size_t)length < sizeof inside->path;
}

/* In the folders of that kind; those that are left empty go when it is done. */
static int each_inside(const struct cli_folder *folder, int (*is_ours)(const struct dirent *), act_on *act)
{
    struct dirent **entries = NULL;
    struct cli_folder inside;
    int count = scandir(folder->path, &entries, is_ours, NULL), status = CLI_PROCEED;
    for (int i = 0; i < count; i++) {
        if (status == CLI_PROCEED && find_inside(&inside, folder, entries[i]->d_name)) {
            if (is_ours == is_of_point)
                status = each_inside(&inside, is_of_seed, act);
            if (status == CLI_PROCEED)
                status = each_file(&inside, act);
            if (act == remove_one) {
                cli_folder_unmark(&inside);
                rmdir(inside.path);
            }
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static int each_of_a_run(const struct cli_folder *top, act_on *act)
{
    int status = each_file(top, act);
    if (status == CLI_PROCEED)
        status = each_inside(top, is_of_point, act);
    return status == CLI_PROCEED ? each_inside(top, is_of_seed, act) : status;
}

/* Whether a run may write there: refuses a folder without our mark in which a file has the name of one of the
 * run's, also in folders that are named as those of points and seeds are ("senders=4", "seed-2"). "": nothing
 * is written. CLI_PROCEED, or reports the file. */
static int cli_sim_folders_check(const struct cli_folder *top)
{
    return !*top->path || cli_folder_is_marked(top) ? CLI_PROCEED : each_of_a_run(top, expect_none);
}

/* Marks the folder. In one that is marked, takes away what an earlier run wrote, in it and in those of points
 * and seeds: it would look like results of this one. Files of other names stay, and the folders that they are
 * in. CLI_PROCEED, or reports the cause. */
static int cli_sim_folders_clear(const struct cli_folder *top)
{
    if (!*top->path)
        return CLI_PROCEED;
    int status = cli_folder_mark(top);
    return status == CLI_PROCEED ? each_of_a_run(top, remove_one) : status;
}

/* Sets run->folder, and makes it: one of its own where there are several points, and one in it where there
 * are several seeds. CLI_PROCEED, or reports the cause. */
static int cli_sim_folder_make(const struct cli_sim_plan *plan, const struct cli_folder *top,
                               struct cli_sim_run *run)
{
    char name[CLI_POINT_LABEL_MAX];
    run->folder = *top;
    if (!*top->path)
        return CLI_PROCEED;
    int status = CLI_PROCEED;
    if (plan->axes_count)
        status =
            cli_folder_make_in(&run->folder, top, cli_sim_plan_label(plan, run->point, name, sizeof name));
    if (plan->seeds > 1 && status == CLI_PROCEED) {
        struct cli_folder above = run->folder;
        snprintf(name, sizeof name, SEED "%llu", (unsigned long long)run->seed);
        status = cli_folder_make_in(&run->folder, &above, name);
    }
    return status;
}

/* Of a run that did not end: takes it away where it is empty. */
static void cli_sim_folder_drop(const struct cli_folder *top, const struct cli_sim_run *run)
{
    struct cli_folder folder = run->folder;
    while (strlen(folder.path) > strlen(top->path) && !rmdir(folder.path))
        *strrchr(folder.path, '/') = 0;
}

/* ---- batch ----------------------------------------------------------------------------------------- */

/*
 * All runs of a plan in sequence, and their report.
 *
 * When a run fails or a signal comes, the runs before are still reported.
 */

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

/* output: the folder for all files; json: the file for summary.json, "-" for stdout instead of the table.
 * NULL: none. Both are found to be writable before the first run. Returns the exit status. */
static int cli_sim_batch(const struct cli_sim_plan *plan, const char *output, const char *json)
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

/* ---- sim ------------------------------------------------------------------------------------------- */

/* Longhaul sim: its options, and the scenario that they ask for. */

/* Simulations of one command, and seeds of one point. */
#define CLI_SIM_RUNS_MAX 100000

struct request {
    uint32_t seed, seeds;
    struct cli_texts sets, sweeps;
    const char *output, *json;
    bool keys, list, no_sweep;
};

/* ---- the scenario --------------------------------------------------------------------------------- */

static int read_scenario(struct cli_sim_plan *plan, const char *path)
{
    size_t bytes = 0;
    char *text = cli_read_text("", path, CLI_SCENARIO_BYTES_MAX, &bytes);
    if (!text)
        return CLI_EXIT_FAILED;
    int code = cli_scenario_parse(&plan->scenario, path, text, bytes);
    free(text);
    return code ? cli_misused("%s", plan->scenario.wrong) : CLI_PROCEED;
}

static void drop_sweeps(struct cli_scenario *scenario)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < scenario->count; i++)
        if (strncmp(scenario->settings[i].key, "sweep.", 6) != 0)
            scenario->settings[kept++] = scenario->settings[i];
    scenario->count = kept;
}

/* What the command line adds. */
static int add_settings(struct cli_sim_plan *plan, const struct request *request)
{
    char sweep[CLI_SETTING_KEY_MAX + CLI_SETTING_VALUE_MAX];
    if (request->no_sweep || request->sweeps.count)
        drop_sweeps(&plan->scenario);
    for (unsigned i = 0; i < request->sets.count; i++)
        if (cli_scenario_set(&plan->scenario, "set", request->sets.text[i]))
            return cli_misused("%s", plan->scenario.wrong);
    for (unsigned i = 0; i < request->sweeps.count; i++) {
        if (!strchr(request->sweeps.text[i], '='))
            return cli_misused("--sweep %.200s: invalid sweep (example: workload.senders=2,4,8)",
                               request->sweeps.text[i]);
        snprintf(sweep, sizeof sweep, "sweep.%s", request->sweeps.text[i]);
        if (cli_scenario_set(&plan->scenario, "sweep", sweep))
            return cli_misused("%s", plan->scenario.wrong);
    }
    return CLI_PROCEED;
}

static int make_plan(struct cli_sim_plan *plan, const struct request *request, const char *path)
{
    int status = read_scenario(plan, path);
    if (status == CLI_PROCEED)
        status = add_settings(plan, request);
    plan->seed = request->seed;
    plan->seeds = request->seeds;
    if (status == CLI_PROCEED)
        status = cli_sim_plan_make(plan);
    if (status == CLI_PROCEED && (uint64_t)plan->points * plan->seeds > CLI_SIM_RUNS_MAX)
        status = cli_misused("%llu simulations: out of range (at most %d; use fewer --seeds)",
                             (unsigned long long)plan->points * plan->seeds, CLI_SIM_RUNS_MAX);
    if (status == CLI_PROCEED)
        status = cli_sim_dry_run(plan);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------------- */

static int run_request(const struct request *request, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 64];
    int status = cli_scenario_path(name, path, sizeof path);
    if (status == CLI_PROCEED && request->json)
        status = cli_result_spare("--json ", request->json, path);
    if (status != CLI_PROCEED)
        return status;
    struct cli_sim_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cli_failed("out of memory");
    status = make_plan(plan, request, path);
    if (status == CLI_PROCEED)
        status = cli_sim_batch(plan, request->output, request->json);
    free(plan);
    return status;
}

int cli_sim(int argc, char **argv)
{
    struct request request = {.seed = 1, .seeds = 1};
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"set", "KEY=VALUE", "override a setting of the file; may be given several times", &request.sets,
         .kind = CLI_TEXTS},
        {"sweep", "KEY=A,B,C", "one simulation for each value, instead of the file's sweep; up to two",
         &request.sweeps, .kind = CLI_TEXTS},
        {"no-sweep", NULL, "ignore the file's sweep", &request.no_sweep, .kind = CLI_FLAG},
        {"seed", "N", "seed of all random choices (1)", &request.seed, .kind = CLI_COUNT,
         .max = UINT32_MAX},
        {"seeds", "N", "run N seeds, from --seed on, and report means with 95 % confidence intervals",
         &request.seeds, .kind = CLI_COUNT, .min = 1, .max = CLI_SIM_RUNS_MAX},
        {"output", "FOLDER", "folder for tables, a capture and pictures", &request.output, .letter = 'o',
         .kind = CLI_TEXT},
        {"json", "FILE", "write the results to FILE; - is standard output", &request.json,
         .kind = CLI_TEXT},
        {"keys", NULL, "list the keys of a scenario, with defaults", &request.keys, .kind = CLI_FLAG},
        {"list", NULL, "list the installed scenarios", &request.list, .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "sim",
        .operands = "FILE",
        .about = "Simulates a network of hosts and switches in virtual time, packet by packet. FILE: a\n"
                 "scenario, or the name of an installed one. The same file, seed and build give the same "
                 "results.",
        .groups = {own},
        .operands_max = 1,
    };
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status != CLI_PROCEED)
        return status;
    if (request.keys)
        return cli_sim_keys_print();
    if (request.list)
        return cli_scenarios_list();
    if (!operands.count)
        return cli_misused("missing FILE (longhaul sim --list lists scenarios, --keys the keys of a file)");
    if (request.no_sweep && request.sweeps.count)
        return cli_misused("--no-sweep, --sweep: mutually exclusive");
    return run_request(&request, operands.text[0]);
}
