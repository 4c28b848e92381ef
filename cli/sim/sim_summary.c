/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/sim_report.h"

#include "cli/results/json.h"
#include "cli/sim/scenario.h"
#include "cli/terminal/terminal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void put_figures(struct cli_json *json, const double *values)
{
    for (unsigned figure = 0; figure < CLI_FIGURES; figure++)
        cli_json_number(json, cli_figure_infos[figure].json, values[figure]);
}

static void put_class(struct cli_json *json, const struct cli_class *group)
{
    if (group->by_sites && !group->done)
        return;
    cli_json_open(json, NULL, '{');
    if (group->by_sites) {
        cli_json_count(json, "from_site", group->from_site);
        cli_json_count(json, "to_site", group->to_site);
    }
    cli_json_count(json, "from_bytes", group->from_bytes);
    if (group->to_bytes == UINT64_MAX)
        cli_json_number(json, "to_bytes", NAN);
    else
        cli_json_count(json, "to_bytes", group->to_bytes);
    cli_json_count(json, "done", group->done);
    cli_json_number(json, "fct_mean_s", group->fct_mean);
    cli_json_number(json, "fct_p50_s", group->fct_p50);
    cli_json_number(json, "fct_p99_s", group->fct_p99);
    cli_json_number(json, "fct_max_s", group->fct_max);
    cli_json_number(json, "slowdown_mean", group->slowdown_mean);
    cli_json_number(json, "slowdown_p50", group->slowdown_p50);
    cli_json_number(json, "slowdown_p99", group->slowdown_p99);
    cli_json_number(json, "slowdown_max", group->slowdown_max);
    cli_json_close(json, '}');
}

static void put_run(struct cli_json *json, const struct cli_sim_run *run)
{
    cli_json_open(json, NULL, '{');
    cli_json_count(json, "seed", run->seed);
    put_figures(json, run->figures.value);
    cli_json_open(json, "classes", '[');
    for (unsigned i = 0; i < run->figures.classes_count; i++)
        put_class(json, &run->figures.classes[i]);
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void put_settings(struct cli_json *json, const struct cli_sim_plan *plan, unsigned point)
{
    size_t count = 0;
    const struct lh_netsim_key *keys = lh_netsim_keys(&count);
    cli_json_open(json, "settings", '{');
    for (size_t i = 0; i < count; i++)
        if (*cli_sim_plan_text(plan, point, keys[i].name))
            cli_json_text(json, keys[i].name, cli_sim_plan_text(plan, point, keys[i].name));
    cli_json_close(json, '}');
}

static void put_means(struct cli_json *json, const struct cli_sim_results *results, unsigned point)
{
    double means[CLI_FIGURES], halves[CLI_FIGURES];
    for (unsigned figure = 0; figure < CLI_FIGURES; figure++)
        means[figure] = cli_sim_mean(results, point, figure, &halves[figure]);
    cli_json_open(json, "mean", '{');
    put_figures(json, means);
    cli_json_close(json, '}');
    cli_json_open(json, "ci95", '{');
    put_figures(json, halves);
    cli_json_close(json, '}');
}

static void put_point(struct cli_json *json, const struct cli_sim_results *results, unsigned point)
{
    const struct cli_sim_plan *plan = results->plan;
    cli_json_open(json, NULL, '{');
    cli_json_open(json, "sweep", '{');
    for (unsigned axis = 0; axis < plan->axes_count; axis++)
        cli_json_text(json, plan->axes[axis].key, cli_sim_plan_value(plan, point, axis));
    cli_json_close(json, '}');
    put_settings(json, plan, point);
    cli_json_open(json, "runs", '[');
    for (unsigned seed = 0; seed < cli_sim_seeds(results, point); seed++)
        put_run(json, cli_sim_result(results, point, seed));
    cli_json_close(json, ']');
    if (plan->seeds > 1)
        put_means(json, results, point);
    cli_json_close(json, '}');
}

void cli_sim_json(const struct cli_sim_results *results, FILE *out)
{
    const struct cli_sim_plan *plan = results->plan;
    struct cli_json json = {.out = out};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "scenario", plan->scenario.path);
    cli_json_text(&json, "title", results->title);
    cli_json_count(&json, "missing_runs", (uint64_t)plan->points * plan->seeds - results->done);
    cli_json_open(&json, "points", '[');
    for (unsigned point = 0; point < cli_sim_points(results); point++)
        put_point(&json, results, point);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

/* Text in quotes when it has a comma in it. */
static void put_csv_text(FILE *out, const char *text)
{
    bool quoted = strpbrk(text, ",\"") != NULL;
    if (quoted)
        fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    if (quoted)
        fputc('"', out);
}

static void put_csv_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.9g", value);
    else
        fputc(',', out);
}

int cli_sim_sweep_csv(const struct cli_sim_results *results, const struct cli_folder *folder)
{
    const struct cli_sim_plan *plan = results->plan;
    FILE *out = cli_folder_open(folder, "sweep.csv");
    if (!out)
        return CLI_EXIT_FAILED;
    for (unsigned axis = 0; axis < plan->axes_count; axis++)
        fprintf(out, "%s%s", axis ? "," : "", plan->axes[axis].key);
    for (unsigned figure = 0; figure < CLI_FIGURES; figure++)
        fprintf(out, ",%s,%s_ci95", cli_figure_infos[figure].json, cli_figure_infos[figure].json);
    fputc('\n', out);
    for (unsigned point = 0; point < cli_sim_points(results); point++) {
        for (unsigned axis = 0; axis < plan->axes_count; axis++) {
            fputs(axis ? "," : "", out);
            put_csv_text(out, cli_sim_plan_value(plan, point, axis));
        }
        for (unsigned figure = 0; figure < CLI_FIGURES; figure++) {
            double half = NAN;
            put_csv_number(out, cli_sim_mean(results, point, figure, &half));
            put_csv_number(out, half);
        }
        fputc('\n', out);
    }
    return cli_folder_close(folder, "sweep.csv", out);
}
