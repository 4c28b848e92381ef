/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/report/notes.h"

#include "cli/sim/scenario/plan.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/terminal.h"

#include <longhaul/units.h>

#include <string.h>

static bool is_written_down(const char *key)
{
    return !strcmp(key, "output.queues") || !strcmp(key, "output.rates") || !strcmp(key, "output.pcap");
}

/* A share that the library takes and that is above 1. */
static bool is_overload(const struct cli_sim_plan *plan, unsigned point)
{
    double ratio = 0;
    return !strcmp(cli_sim_plan_text(plan, point, "workload.kind"), "poisson") &&
           !strcmp(cli_sim_plan_text(plan, point, "workload.load_base"), "line") &&
           lh_parse_ratio(cli_sim_plan_text(plan, point, "workload.load"), &ratio) == -LH_ERANGE;
}

void cli_sim_notes_before(const struct cli_sim_plan *plan, bool has_folder)
{
    /* Ready scenarios name links for those who give a folder; who names them on the command line wants them
     * now. */
    for (unsigned i = 0; i < plan->scenario.count; i++) {
        const struct cli_setting *setting = &plan->scenario.settings[i];
        if (!has_folder && !setting->line && is_written_down(setting->key) &&
            strcmp(setting->value, "none") != 0)
            cli_note("%s: ignored without --output FOLDER", setting->key);
    }
    for (unsigned point = 0; point < plan->points; point++)
        if (is_overload(plan, point)) {
            cli_note("workload.load = %s: above the rate of the hosts' links, queues grow without bound",
                     cli_sim_plan_text(plan, point, "workload.load"));
            return;
        }
}

/* Retransmissions without loss. Of unfinished flows the table gives the cause. */
static bool is_needless(const double *value)
{
    return value[CLI_FIGURE_REPEATED] > 0 && value[CLI_FIGURE_DROPPED] + value[CLI_FIGURE_LOST] <= 0 &&
           value[CLI_FIGURE_FAILED] + value[CLI_FIGURE_STUCK] <= 0;
}

static void note_captures(const struct cli_sim_results *results)
{
    unsigned runs = 0;
    uint64_t captured = 0, packets = 0;
    for (unsigned i = 0; i < results->done; i++) {
        const struct cli_sim_run *run = &results->runs[i];
        if (!run->uncaptured)
            continue;
        runs++;
        captured = run->captured;
        packets = run->captured + run->uncaptured;
    }
    if (runs == 1)
        cli_note("capture.pcap: first %llu of %llu packet%s (raise output.packets for more)",
                 (unsigned long long)captured, (unsigned long long)packets, cli_plural((double)packets));
    else if (runs)
        cli_note("capture.pcap: first %llu packet%s only, in %u of %u runs (raise output.packets for more)",
                 (unsigned long long)captured, cli_plural((double)captured), runs, results->done);
}

static void note_repeats(const struct cli_sim_results *results)
{
    double repeated = 0, timeouts = 0;
    unsigned runs = 0;
    char where[48] = "";
    for (unsigned i = 0; i < results->done; i++) {
        const double *value = results->runs[i].figures.value;
        if (!is_needless(value))
            continue;
        runs++;
        repeated += value[CLI_FIGURE_REPEATED];
        timeouts += value[CLI_FIGURE_TIMEOUTS];
    }
    if (!runs)
        return;
    if (results->done > 1)
        snprintf(where, sizeof where, " in %u of %u runs", runs, results->done);
    cli_note("%.0f packet%s retransmitted%s without loss: raise %s", repeated, cli_plural(repeated), where,
             timeouts > 0
                 ? "transport.rto_min or transport.rto (irn: rto_low and rto_high), or transport.reorder "
                   "where packets are reordered"
                 : "transport.reorder, since packets are reordered");
}

void cli_sim_notes_after(const struct cli_sim_results *results)
{
    note_captures(results);
    note_repeats(results);
}
