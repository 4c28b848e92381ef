/*
 * sim.c - longhaul sim: its options, and the scenario that they ask for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/sim/sim.h"

#include "cli/options/options.h"
#include "cli/results/read_text.h"
#include "cli/results/result_file.h"
#include "cli/sim/batch.h"
#include "cli/sim/scenario/dry_run.h"
#include "cli/sim/scenario/keys.h"
#include "cli/sim/scenario/plan.h"
#include "cli/sim/scenario/ready_scenarios.h"
#include "cli/sim/scenario/scenario.h"
#include "cli/sim/scenario/sweep.h"
#include "cli/terminal/diagnostic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
