/*
 * collective.c - longhaul collective NAME: the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/collective/collective.h"

#include "cli/collective/measure.h"
#include "cli/collective/sweep.h"
#include "cli/group/options.h"
#include "cli/options/limits.h"
#include "cli/options/options.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/stop.h"

#include <stdio.h>
#include <string.h>

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
    {"g", "GPUs of a process in nccl-tests, a rank here has none; omit it, start one rank for each"},
    {"ngpus", "GPUs of a process in nccl-tests, a rank here has none; omit it, start one rank for each"},
    {"t", "threads of a process in nccl-tests; omit it, and start one rank for each"},
    {"nthreads", "threads of a process in nccl-tests; omit it, and start one rank for each"},
    {"n", "use --iterations N"},
    {"iters", "use --iterations N"},
    {"w", "use --warmup N"},
    {"warmup_iters", "use --warmup N"},
    {"o", "use --op NAME"},
    {"d", "use --type TYPE"},
    {"datatype", "use --type TYPE"},
    {"r", "use --root RANK"},
    {"c", "each result is checked; omit it"},
    {"check", "each result is checked; omit it"},
    {"i", "sizes grow by a factor; use -f"},
    {"stepbytes", "sizes grow by a factor; use -f"},
    {"stepfactor", "use --factor"},
    {"minbytes", "use --begin"},
    {"maxbytes", "use --end"},
    {"z", "of nccl-tests, and of no effect here; omit it"},
    {"blocking", "of nccl-tests, and of no effect here; omit it"},
    {"p", "of nccl-tests, and of no effect here; omit it"},
    {"parallel_init", "of nccl-tests, and of no effect here; omit it"},
    {"m", "of nccl-tests, and of no effect here; omit it"},
    {"agg_iters", "of nccl-tests, and of no effect here; omit it"},
    {"G", "CUDA graphs, of nccl-tests; omit it"},
    {"cudagraph", "CUDA graphs, of nccl-tests; omit it"},
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
        return cli_misused("%s: not with bounded, which delivers parts of messages (allreduce, "
                           "reduce-scatter, allgather, broadcast; or another scheme)",
                           sweep->kind->name);
    bool is_float = sweep->type == LH_F32 || sweep->type == LH_F16 || sweep->type == LH_BF16;
    if (sweep->kind->reduces && (!adds || !is_float))
        return cli_misused(
            "--op %s, --type %s: with bounded only sum and avg of f32, f16, bf16 (or another scheme)",
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
        {"end", "SIZE", "last size at most; units as of --begin (the first)", &sweep->end_bytes, CLI_BINARY,
         'e', .min = 1, .max = SIZE_MAX_BYTES},
        {"factor", "N", "from one size to the next (2)", &sweep->factor, CLI_COUNT, 'f', .min = 2,
         .max = 1024},
        {"schedule", "NAME",
         "who sends what to whom: ring, halving-doubling, ... (chosen by size and ranks)", &sweep->schedule,
         .kind = CLI_TEXT},
        {"type", "TYPE", "of elements: f32, f64, f16, bf16, i32, i64, u8 (f32)", &settings.type,
         .kind = CLI_TEXT},
        {"op", "NAME", "reduction: sum, prod, min, max, avg (sum)", &settings.reduction, .kind = CLI_TEXT},
        {"root", "RANK", "of reduce, broadcast, gather(v), scatter(v) (0)", &sweep->root,
         .kind = CLI_COUNT},
        {"iterations", "N", "measured operations of each size (20)", &sweep->iterations, .kind = CLI_COUNT,
         .min = 1, .max = CLI_COLLECTIVE_ITERATIONS_MAX},
        {"warmup", "N", "unmeasured operations before; one is always (5)", &sweep->warmup,
         .kind = CLI_COUNT, .max = CLI_COLLECTIVE_ITERATIONS_MAX},
        {"measure", NULL, "measure the paths first, and order the ranks by them", &sweep->measure,
         .kind = CLI_FLAG},
        {"json", "FILE", "write results to FILE; - is standard output", &sweep->json, .kind = CLI_TEXT},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "collective",
        .operands = "NAME",
        .about = "Measures a collective of all ranks that a launcher has started, and checks each element "
                 "of its "
                 "result.\nNAME: allreduce, reduce, broadcast, allgather, reduce-scatter, gather, scatter, "
                 "alltoall, barrier; gatherv, scatterv, alltoallv, with parts of 1 to n counts.",
        .more = "Start it with longhaul run -n 4 -- longhaul collective allreduce; or with mpirun, srun, "
                "torchrun.\n"
                "Columns are those of nccl-tests, and what a bounded scheme left missing. Exit status 1 "
                "also when a result is wrong.",
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
