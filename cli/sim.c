/*
 * sim.c - longhaul sim: its options, and the scenario that they ask for.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sim.h"

#include "commands.h"
#include "folder.h"
#include "options.h"
#include "say.h"
#include "sim_batch.h"
#include "sim_find.h"
#include "sim_plan.h"
#include "sim_trial.h"

#include <stdlib.h>
#include <string.h>

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
            return cli_misused("--sweep: \"%.200s\" is not key=a,b,c, such as workload.senders=2,4,8",
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
        status = cli_misused("this would be %llu simulations, at most %d; take fewer seeds",
                             (unsigned long long)plan->points * plan->seeds, CLI_SIM_RUNS_MAX);
    if (status == CLI_PROCEED)
        status = cli_sim_trial(plan);
    return status;
}

/* ---- the command ---------------------------------------------------------------------------------- */

static int run_request(const struct request *request, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 64];
    int status = cli_sim_find(name, path, sizeof path);
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
        {"set", "KEY=VALUE", "replaces what the file says; may be given several times", &request.sets,
         .kind = CLI_TEXTS},
        {"sweep", "KEY=A,B,C", "one simulation for each value, in place of the file's sweep; up to two",
         &request.sweeps, .kind = CLI_TEXTS},
        {"no-sweep", NULL, "passes the file's sweep over", &request.no_sweep, .kind = CLI_FLAG},
        {"seed", "N", "of everything that is drawn (1)", &request.seed, .kind = CLI_COUNT,
         .max = UINT32_MAX},
        {"seeds", "N", "runs N seeds, from --seed on, and tells means with 95 % confidence", &request.seeds,
         .kind = CLI_COUNT, .min = 1, .max = CLI_SIM_RUNS_MAX},
        {"output", "FOLDER", "writes tables, a capture and pictures there", &request.output, .letter = 'o',
         .kind = CLI_TEXT},
        {"json", "FILE", "writes the results there; - is standard output", &request.json, .kind = CLI_TEXT},
        {"keys", NULL, "lists what a scenario can say, with defaults", &request.keys, .kind = CLI_FLAG},
        {"list", NULL, "lists the ready scenarios", &request.list, .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "sim",
        .operands = "FILE",
        .about =
            "Simulates a network of hosts and switches in virtual time, packet by packet. FILE says what: "
            "a\n"
            "scenario, or the name of a ready one. The same file, seed and build give the same results.",
        .groups = {own},
        .operands_max = 1,
    };
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status != CLI_PROCEED)
        return status;
    if (request.keys)
        return cli_sim_keys_print();
    if (request.list)
        return cli_sim_list();
    if (!operands.count)
        return cli_misused(
            "FILE is missing; 'longhaul sim --list' tells ready scenarios, --keys what a file can "
            "say");
    if (request.no_sweep && request.sweeps.count)
        return cli_misused("--no-sweep and --sweep contradict each other");
    return run_request(&request, operands.text[0]);
}
