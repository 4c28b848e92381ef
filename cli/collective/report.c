/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/collective/report.h"

#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"

#include <longhaul/units.h>

#include <inttypes.h>

/* The first one where something may be missing. */
static const struct cli_column columns[] = {
    {"missing[%]", 10, false},  {"size[B]", 12, false},
    {"count", 11, false},       {"type", 4, false},
    {"redop", 5, false},        {"root", 4, false},
    {"schedule", 17, true},     {"time", 8, false},
    {"p50", 8, false},          {"p99", 8, false},
    {"algbw[GB/s]", 11, false}, {"busbw[GB/s]", 11, false},
    {"#wrong", 6, false},       {.title = NULL},
};

static struct cli_table make_table(FILE *out, const struct cli_setup *setup)
{
    return (struct cli_table){columns + !setup->partial, out, " ", cli_terminal_colours(fileno(out))};
}

static uint64_t size_of(const struct cli_call *call)
{
    return cli_call_total(call) * lh_type_bytes(call->type);
}

static double algorithm_bandwidth(const struct cli_call *call, const struct cli_measured *measured)
{
    return measured->mean_s > 0 ? (double)size_of(call) / measured->mean_s : 0;
}

/* ---- measured paths ---------------------------------------------------------------------------------- */

static void print_order(FILE *out, struct lh_group *group)
{
    uint32_t ranks = lh_group_size(group), last_site = 0;
    uint32_t rank_at[LH_GROUP_RANKS_MAX], site_at[LH_GROUP_RANKS_MAX];
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t place = 0, site = 0;
        lh_group_place(group, rank, &place, &site);
        rank_at[place] = rank;
        site_at[place] = site;
    }
    fprintf(out, " measured: order of ranks");
    for (uint32_t place = 0; place < ranks; place++) {
        fprintf(out, "%s %" PRIu32, site_at[place] != last_site ? " |" : "", rank_at[place]);
        last_site = site_at[place];
    }
}

void cli_collective_paths(FILE *out, struct lh_group *group)
{
    struct lh_group_path slowest = {0}, path;
    uint32_t ranks = lh_group_size(group), slow_from = 0, slow_to = 0;
    char rate[32], rtt[32] = "unknown";
    for (uint32_t from = 0; from < ranks; from++)
        for (uint32_t to = 0; to < ranks; to++) {
            if (from == to || lh_group_path(group, from, to, &path) != 0 || path.rate_bps == 0 ||
                (slowest.rate_bps > 0 && path.rate_bps >= slowest.rate_bps))
                continue;
            slowest = path;
            slow_from = from;
            slow_to = to;
        }
    print_order(out, group);
    if (slowest.rtt_ns > 0)
        lh_format_time((double)slowest.rtt_ns * 1e-9, rtt, sizeof rtt);
    if (slowest.rate_bps > 0)
        fprintf(out, "; slowest path %" PRIu32 " to %" PRIu32 ": %s, round trip %s, loss %.2g", slow_from,
                slow_to, lh_format_rate((double)slowest.rate_bps, rate, sizeof rate), rtt, slowest.loss);
    fprintf(out, "\n");
}

/* ---- rows -------------------------------------------------------------------------------------------- */

void cli_collective_titles(FILE *out, const struct cli_setup *setup)
{
    struct cli_table table = make_table(out, setup);
    cli_table_titles(&table);
}

void cli_collective_row(FILE *out, const struct cli_setup *setup, const struct cli_call *call,
                        const struct cli_measured *measured)
{
    struct cli_table table = make_table(out, setup);
    struct cli_cell all[sizeof columns / sizeof columns[0]] = {0}, *cells = all + 1;
    double bandwidth = algorithm_bandwidth(call, measured);
    snprintf(cells[0].text, CLI_CELL_MAX, "%" PRIu64, size_of(call));
    snprintf(cells[1].text, CLI_CELL_MAX, "%zu", call->count);
    snprintf(cells[2].text, CLI_CELL_MAX, "%s", lh_type_name(call->type));
    snprintf(cells[3].text, CLI_CELL_MAX, "%s",
             call->kind->reduces ? lh_reduction_name(call->reduction) : "-");
    if (call->kind->rooted)
        snprintf(cells[4].text, CLI_CELL_MAX, "%" PRIu32, call->root);
    else
        snprintf(cells[4].text, CLI_CELL_MAX, "-");
    snprintf(cells[5].text, CLI_CELL_MAX, "%s", measured->schedule ? measured->schedule : "-");
    lh_format_time(measured->mean_s, cells[6].text, CLI_CELL_MAX);
    lh_format_time(measured->p50_s, cells[7].text, CLI_CELL_MAX);
    lh_format_time(measured->p99_s, cells[8].text, CLI_CELL_MAX);
    snprintf(cells[9].text, CLI_CELL_MAX, "%.3f", bandwidth / 1e9);
    snprintf(cells[10].text, CLI_CELL_MAX, "%.3f", bandwidth * cli_call_bus_factor(call) / 1e9);
    snprintf(cells[11].text, CLI_CELL_MAX, "%" PRIu64, measured->wrong);
    if (measured->wrong)
        cells[11].colour = CLI_RED;
    snprintf(all[0].text, CLI_CELL_MAX, "%.3f", 100 * measured->missing_share);
    cli_table_row(&table, all + !setup->partial);
}

void cli_collective_json(struct cli_json *json, const struct cli_setup *setup, const struct cli_call *call,
                         const struct cli_measured *measured)
{
    double bandwidth = algorithm_bandwidth(call, measured);
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", call->kind->name);
    cli_json_text(json, "schedule", measured->schedule ? measured->schedule : "");
    cli_json_count(json, "ranks", call->ranks);
    cli_json_count(json, "sites", setup->sites);
    cli_json_text(json, "reliability", setup->inside);
    cli_json_text(json, "reliability_across", setup->across);
    cli_json_count(json, "size_bytes", size_of(call));
    cli_json_count(json, "count", call->count);
    cli_json_text(json, "type", lh_type_name(call->type));
    if (call->kind->reduces)
        cli_json_text(json, "redop", lh_reduction_name(call->reduction));
    if (call->kind->rooted)
        cli_json_count(json, "root", call->root);
    cli_json_number(json, "time_mean_s", measured->mean_s);
    cli_json_number(json, "time_p50_s", measured->p50_s);
    cli_json_number(json, "time_p99_s", measured->p99_s);
    cli_json_number(json, "algbw_Bps", bandwidth);
    cli_json_number(json, "busbw_Bps", bandwidth * cli_call_bus_factor(call));
    cli_json_count(json, "wrong", measured->wrong);
    if (setup->partial)
        cli_json_number(json, "missing_share", measured->missing_share);
    cli_json_close(json, '}');
}
