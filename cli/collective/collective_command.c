/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/units.h>

#include "cli/collective/collective_measure.h"
#include "cli/options/cli_options.h"
#include "cli/options/option_values.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- report ---------------------------------------------------------------------------------------- */

/* The results of 'longhaul collective', as the table of nccl-tests and as JSON. */

/* Of the group, the same in all rows. */
struct cli_setup {
    uint32_t sites;
    const char *inside, *across; /* schemes in a site, and between sites */
    const char *encryption;
    bool partial; /* one of them delivers parts of messages: a column for what is missing */
};

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

/* After lh_group_measure(): the ranks in their order, by sites, and the slowest path. */
static void cli_collective_paths(FILE *out, struct lh_group *group)
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

static void cli_collective_titles(FILE *out, const struct cli_setup *setup)
{
    struct cli_table table = make_table(out, setup);
    cli_table_titles(&table);
}

static void cli_collective_row(FILE *out, const struct cli_setup *setup, const struct cli_call *call,
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

static void cli_collective_json(struct cli_json *json, const struct cli_setup *setup,
                                const struct cli_call *call, const struct cli_measured *measured)
{
    double bandwidth = algorithm_bandwidth(call, measured);
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", call->kind->name);
    cli_json_text(json, "schedule", measured->schedule ? measured->schedule : "");
    cli_json_count(json, "ranks", call->ranks);
    cli_json_count(json, "sites", setup->sites);
    cli_json_text(json, "reliability", setup->inside);
    cli_json_text(json, "reliability_across", setup->across);
    cli_json_text(json, "encryption", setup->encryption);
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

/* ---- sweep ----------------------------------------------------------------------------------------- */

/* A group of all ranks, and a collective at each size. */

struct cli_sweep {
    const struct cli_kind *kind;
    const char *schedule; /* NULL: chosen */
    const char *json;     /* NULL: none; "-": standard output */
    enum lh_type type;
    enum lh_reduction reduction;
    uint64_t begin_bytes, end_bytes;
    uint32_t factor, iterations, warmup;
    uint32_t root; /* LH_NO_RANK: not given */
    bool measure;  /* the paths, first */
    struct cli_group *group;
};

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
    fprintf(run->out, ", encryption %s", setup->encryption);
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
                                    .encryption = cli_group_encryption(group),
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

/* The exit status: CLI_EXIT_FAILED also when a result was wrong. */
static int cli_sweep(const struct cli_sweep *sweep)
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

/* ---- collective ------------------------------------------------------------------------------------ */

/* Longhaul collective NAME: the options. */

#define SIZE_MAX_BYTES (64 * CLI_GIB)
#define BEGIN_BYTES    (8 * CLI_MIB)
#define FACTOR         2
#define ROW_BYTES      8 /* without data: one row */
#define NAMES_MAX      256

struct settings {
    struct cli_sweep sweep;
    struct cli_group group;
    const char *type, *reduction; /* NULL: not given */
};

/* Of nccl-tests; -b, -e and -f are the same here. */
static const struct cli_foreign_option foreign[] = {
    {"g", "GPUs per process of nccl-tests: unsupported; omit it, and start one rank for each"},
    {"ngpus", "GPUs per process of nccl-tests: unsupported; omit it, and start one rank for each"},
    {"t", "threads per process of nccl-tests: unsupported; omit it, and start one rank for each"},
    {"nthreads", "threads per process of nccl-tests: unsupported; omit it, and start one rank for each"},
    {"n", "use --iterations N"},
    {"iters", "use --iterations N"},
    {"w", "use --warmup N"},
    {"warmup_iters", "use --warmup N"},
    {"o", "use --op NAME"},
    {"d", "use --type TYPE"},
    {"datatype", "use --type TYPE"},
    {"r", "use --root RANK"},
    {"c", "results are always checked; omit it"},
    {"check", "results are always checked; omit it"},
    {"i", "step of nccl-tests: unsupported; use a factor, -f"},
    {"stepbytes", "step of nccl-tests: unsupported; use a factor, -f"},
    {"stepfactor", "use --factor"},
    {"minbytes", "use --begin"},
    {"maxbytes", "use --end"},
    {"z", "option of nccl-tests without effect; omit it"},
    {"blocking", "option of nccl-tests without effect; omit it"},
    {"p", "option of nccl-tests without effect; omit it"},
    {"parallel_init", "option of nccl-tests without effect; omit it"},
    {"m", "option of nccl-tests without effect; omit it"},
    {"agg_iters", "option of nccl-tests without effect; omit it"},
    {"G", "CUDA graphs of nccl-tests: unsupported; omit it"},
    {"cudagraph", "CUDA graphs of nccl-tests: unsupported; omit it"},
    {NULL, NULL},
};

static int find_type(struct settings *settings)
{
    char names[NAMES_MAX] = "";
    for (int type = 0; type < LH_TYPES; type++) {
        if (!strcmp(settings->type, lh_type_name((enum lh_type)type))) {
            settings->sweep.type = (enum lh_type)type;
            return CLI_PROCEED;
        }
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", type ? ", " : "",
                 lh_type_name((enum lh_type)type));
    }
    return cli_misused("--type %s: unknown type (%s)", settings->type, names);
}

static int find_reduction(struct settings *settings)
{
    char names[NAMES_MAX] = "";
    for (int op = 0; op < LH_REDUCTIONS; op++) {
        if (!strcmp(settings->reduction, lh_reduction_name((enum lh_reduction)op))) {
            settings->sweep.reduction = (enum lh_reduction)op;
            return CLI_PROCEED;
        }
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", op ? ", " : "",
                 lh_reduction_name((enum lh_reduction)op));
    }
    return cli_misused("--op %s: unknown reduction (%s)", settings->reduction, names);
}

static int check_bits(const struct cli_sweep *sweep)
{
    if (sweep->reduction < LH_BAND || sweep->type > LH_BF16)
        return CLI_PROCEED;
    return cli_misused("--op %s: bits of integers only (with --type i32, i64, u8, i8 or i16)",
                       lh_reduction_name(sweep->reduction));
}

/* What may be incomplete. */
static int check_partial(const struct settings *settings)
{
    static const char *const names[] = {"allreduce", "reduce-scatter", "allgather", "broadcast", "barrier"};
    const struct cli_sweep *sweep = &settings->sweep;
    bool known = false, adds = sweep->reduction == LH_SUM || sweep->reduction == LH_AVG;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        known = known || !strcmp(names[i], sweep->kind->name);
    if (!cli_group_is_partial(&settings->group))
        return CLI_PROCEED;
    if (!known)
        return cli_misused("%s: unsupported with bounded (use allreduce, reduce-scatter, allgather or "
                           "broadcast, or another scheme)",
                           sweep->kind->name);
    bool is_float = sweep->type == LH_F32 || sweep->type == LH_F16 || sweep->type == LH_BF16;
    if (sweep->kind->reduces && (!adds || !is_float))
        return cli_misused("--op %s, --type %s: unsupported with bounded (use sum or avg of f32, f16 or "
                           "bf16, or another scheme)",
                           lh_reduction_name(sweep->reduction), lh_type_name(sweep->type));
    return CLI_PROCEED;
}

/* Options that would say nothing. */
static int check_unused(const struct settings *settings)
{
    const struct cli_sweep *sweep = &settings->sweep;
    const char *name = sweep->kind->name;
    const char *unused = sweep->begin_bytes ? "begin"
                         : sweep->end_bytes ? "end"
                         : sweep->factor    ? "factor"
                                            : NULL;
    if (settings->type)
        unused = "type";
    if (sweep->kind->no_data && unused)
        return cli_misused("--%s: a %s has no data", unused, name);
    if (settings->reduction && !sweep->kind->reduces)
        return cli_misused("--op: %s reduces nothing (allreduce, reduce, reduce-scatter)", name);
    if (sweep->root != LH_NO_RANK && !sweep->kind->rooted)
        return cli_misused("--root: %s has no root (reduce, broadcast, gather, scatter, gatherv, scatterv)",
                           name);
    return CLI_PROCEED;
}

static void set_defaults(struct settings *settings)
{
    struct cli_sweep *sweep = &settings->sweep;
    if (sweep->kind->no_data)
        sweep->begin_bytes = ROW_BYTES;
    if (!sweep->begin_bytes)
        sweep->begin_bytes = BEGIN_BYTES;
    if (!sweep->end_bytes)
        sweep->end_bytes = sweep->begin_bytes;
    if (!sweep->factor)
        sweep->factor = FACTOR;
    if (sweep->root == LH_NO_RANK)
        sweep->root = 0;
    if (!settings->type)
        settings->type = "f32";
    if (!settings->reduction)
        settings->reduction = "sum";
}

static int unknown_kind(const char *name)
{
    const char *close = cli_kind_close(name);
    if (close)
        return cli_misused("%s: unknown collective (did you mean %s?)", name, close);
    return cli_misused("%s: unknown collective (%s)", name, cli_kind_names());
}

static int check(struct settings *settings, const char *name)
{
    struct cli_sweep *sweep = &settings->sweep;
    sweep->kind = cli_kind_find(name);
    if (!sweep->kind)
        return unknown_kind(name);
    int status = check_unused(settings);
    if (status != CLI_PROCEED)
        return status;
    set_defaults(settings);
    if (sweep->end_bytes < sweep->begin_bytes)
        return cli_misused("--end: below --begin");
    status = cli_group_check(&settings->group);
    if (status == CLI_PROCEED)
        status = find_type(settings);
    if (status == CLI_PROCEED)
        status = find_reduction(settings);
    if (status == CLI_PROCEED)
        status = check_bits(sweep);
    if (status == CLI_PROCEED)
        status = check_partial(settings);
    if (status == CLI_PROCEED)
        status = cli_group_check_schedule(name, sweep->schedule);
    return status;
}

int cli_collective(int argc, char **argv)
{
    struct settings settings = {.sweep = {.root = LH_NO_RANK, .iterations = 20, .warmup = 5}};
    struct cli_sweep *sweep = &settings.sweep;
    struct cli_operands operands;
    sweep->group = &settings.group;
    const struct cli_option own[] = {
        {"begin", "SIZE", "first size; a bare K, M or G is a power of 1024, as in nccl-tests (8MiB)",
         &sweep->begin_bytes, CLI_BINARY, 'b', .min = 1, .max = SIZE_MAX_BYTES},
        {"end", "SIZE", "maximum size; units as for --begin (the first)", &sweep->end_bytes, CLI_BINARY,
         'e', .min = 1, .max = SIZE_MAX_BYTES},
        {"factor", "N", "factor between sizes (2)", &sweep->factor, CLI_COUNT, 'f', .min = 2, .max = 1024},
        {"schedule", "NAME", "schedule: ring, halving-doubling, ... (chosen by size and ranks)",
         &sweep->schedule, .kind = CLI_TEXT},
        {"type", "TYPE", "type of elements: f32, f64, f16, bf16, i32, i64, u8, i8, i16 (f32)",
         &settings.type, .kind = CLI_TEXT},
        {"op", "NAME", "reduction: sum, prod, min, max, avg, or of bits band, bor, bxor (sum)",
         &settings.reduction, .kind = CLI_TEXT},
        {"root", "RANK", "root of reduce, broadcast, gather(v), scatter(v) (0)", &sweep->root,
         .kind = CLI_COUNT},
        {"iterations", "N", "measured operations of each size (20)", &sweep->iterations, .kind = CLI_COUNT,
         .min = 1, .max = CLI_COLLECTIVE_ITERATIONS_MAX},
        {"warmup", "N", "unmeasured operations before, at least one (5)", &sweep->warmup, .kind = CLI_COUNT,
         .max = CLI_COLLECTIVE_ITERATIONS_MAX},
        {"measure", NULL, "measure the paths first, and order the ranks by them", &sweep->measure,
         .kind = CLI_FLAG},
        {"json", "FILE", "write results to FILE; - is standard output", &sweep->json, .kind = CLI_TEXT},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "collective",
        .operands = "NAME",
        .about = "Measures a collective of all ranks started by a launcher, and checks each element of its "
                 "result.\nNAME: allreduce, reduce, broadcast, allgather, reduce-scatter, gather, scatter, "
                 "alltoall, barrier;\ngatherv, scatterv, alltoallv, with parts of 1 to n counts.",
        .more = "Start it with: longhaul run -n 4 -- longhaul collective allreduce; or with mpirun, srun "
                "or torchrun.\n"
                "Columns are those of nccl-tests, and the missing share with a bounded scheme.\nA wrong "
                "result gives exit status 1.",
        .groups = {own, settings.group.options},
        .foreign = foreign,
        .operands_min = 1,
        .operands_max = 1,
    };
    cli_group_options(&settings.group, true);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = check(&settings, operands.text[0]);
    if (status != CLI_PROCEED)
        return status;
    return cli_sweep(sweep);
}
