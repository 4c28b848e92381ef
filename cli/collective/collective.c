/*
 * collective.c - longhaul collective NAME: the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/collective/collective.h"

#include "cli/collective/measure.h"
#include "cli/collective/sweep.h"
#include "cli/options/connection.h"
#include "cli/options/limits.h"
#include "cli/options/options.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/stop.h"

#include <stdio.h>
#include <string.h>

#define SIZE_MAX_BYTES (64 * CLI_GIB)
#define NAMES_MAX      256

struct settings {
    struct cli_sweep sweep;
    struct cli_connection connection;
    struct lh_attr across;
    const char *type, *reduction, *reliability_across;
    struct cli_option shared[8];
};

/* Of the options of connections those that a group has. */
static void pick_options(struct settings *settings)
{
    static const char *const picked[] = {"reliability", "rate",         "congestion",
                                         "mtu",         "peer-timeout", "device"};
    unsigned count = 0;
    for (unsigned i = 0; i < sizeof picked / sizeof *picked; i++)
        for (const struct cli_option *option = settings->connection.options; option->name; option++)
            if (!strcmp(option->name, picked[i]))
                settings->shared[count++] = *option;
    settings->shared[count] = (struct cli_option){.name = NULL};
}

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

static int check_schedule(const struct cli_sweep *sweep)
{
    char names[NAMES_MAX] = "";
    const char *name;
    for (uint32_t i = 0; (name = lh_collective_schedule(sweep->kind->name, i)) != NULL; i++) {
        if (!sweep->schedule || !strcmp(name, sweep->schedule))
            return CLI_PROCEED;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", name);
    }
    if (!sweep->schedule)
        return CLI_PROCEED;
    return cli_misused("--schedule %s: unknown schedule of %s (%s)", sweep->schedule, sweep->kind->name,
                       names);
}

/* Collectives need all of a message. */
static int check_reliability(const char *option, const char *scheme)
{
    static const char partial[] = "bounded";
    size_t length = sizeof partial - 1;
    if (!scheme || strncmp(scheme, partial, length) != 0 ||
        (scheme[length] && !strchr(":,", scheme[length])))
        return CLI_PROCEED;
    return cli_misused("%s %s: delivers parts of messages, collectives need all (example: auto)", option,
                       scheme);
}

static int check(struct settings *settings, const char *name)
{
    struct cli_sweep *sweep = &settings->sweep;
    sweep->kind = cli_kind_find(name);
    if (!sweep->kind)
        return cli_misused("%s: unknown collective (%s)", name, cli_kind_names());
    if (sweep->end_bytes == 0)
        sweep->end_bytes = sweep->begin_bytes;
    if (sweep->end_bytes < sweep->begin_bytes)
        return cli_misused("--end: below --begin");
    if (!strcmp(name, "barrier")) /* has no data: one row */
        sweep->begin_bytes = sweep->end_bytes = 8;
    int status = check_reliability("--reliability", settings->connection.attr.reliability);
    if (status == CLI_PROCEED)
        status = check_reliability("--reliability-across", settings->reliability_across);
    if (status == CLI_PROCEED)
        status = find_type(settings);
    if (status == CLI_PROCEED)
        status = find_reduction(settings);
    if (status == CLI_PROCEED)
        status = check_schedule(sweep);
    return status;
}

static int run(struct settings *settings)
{
    struct cli_sweep *sweep = &settings->sweep;
    sweep->group.attr = &settings->connection.attr;
    sweep->group.device = settings->connection.attr.device;
    sweep->group.peer_timeout_ns = settings->connection.attr.peer_timeout_ns;
    if (settings->reliability_across) {
        settings->across = settings->connection.attr;
        settings->across.reliability = settings->reliability_across;
        sweep->group.attr_across = &settings->across;
    }
    return cli_sweep(sweep);
}

int cli_collective(int argc, char **argv)
{
    struct settings settings = {
        .sweep = {.begin_bytes = 8 * CLI_MIB, .factor = 2, .iterations = 20, .warmup = 5},
        .type = "f32",
        .reduction = "sum",
    };
    struct cli_sweep *sweep = &settings.sweep;
    struct cli_operands operands;
    lh_group_attr_init(&sweep->group);
    const struct cli_option own[] = {
        {"begin", "SIZE", "first size (8MiB)", &sweep->begin_bytes, CLI_SIZE, 'b', .min = 8,
         .max = SIZE_MAX_BYTES},
        {"end", "SIZE", "last size at most (the first)", &sweep->end_bytes, CLI_SIZE, 'e', .min = 8,
         .max = SIZE_MAX_BYTES},
        {"factor", "N", "from one size to the next (2)", &sweep->factor, CLI_COUNT, 'f', .min = 2,
         .max = 1024},
        {"schedule", "NAME", "who sends what to whom: ring, halving-doubling, … (chosen by size and ranks)",
         &sweep->schedule, .kind = CLI_TEXT},
        {"type", "TYPE", "of elements: f32, f64, f16, bf16, i32, i64, u8 (f32)", &settings.type,
         .kind = CLI_TEXT},
        {"op", "NAME", "reduction: sum, prod, min, max, avg (sum)", &settings.reduction, .kind = CLI_TEXT},
        {"root", "RANK", "of reduce, broadcast, gather, scatter (0)", &sweep->root, .kind = CLI_COUNT},
        {"iterations", "N", "measured operations of each size (20)", &sweep->iterations, .kind = CLI_COUNT,
         .min = 1, .max = CLI_COLLECTIVE_ITERATIONS_MAX},
        {"warmup", "N", "unmeasured operations before; one is always (5)", &sweep->warmup,
         .kind = CLI_COUNT, .max = CLI_COLLECTIVE_ITERATIONS_MAX},
        {"json", "FILE", "write results to FILE; - is standard output", &sweep->json, .kind = CLI_TEXT},
        {"reliability-across", "SCHEME", "scheme between sites (as --reliability)",
         &settings.reliability_across, .kind = CLI_SCHEME},
        {"wait", "TIME", "until all ranks have joined (30s)", &sweep->group.timeout_ns, .kind = CLI_TIME,
         .min = LH_NS_PER_MS},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "collective",
        .operands = "NAME",
        .about = "Measures a collective of all ranks that a launcher has started, and checks each element "
                 "of its "
                 "result.\nNAME: allreduce, reduce, broadcast, allgather, reduce-scatter, gather, scatter, "
                 "alltoall, barrier.",
        .more = "Start it with longhaul run -n 4 -- longhaul collective allreduce; or with mpirun, srun, "
                "torchrun.\n"
                "Columns are those of nccl-tests. Exit status 1 also when a result is wrong.",
        .groups = {own, settings.shared},
        .operands_min = 1,
        .operands_max = 1,
    };
    cli_connection_options(&settings.connection, CLI_RECEIVES | CLI_CONNECTS);
    pick_options(&settings);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = check(&settings, operands.text[0]);
    if (status != CLI_PROCEED)
        return status;
    return run(&settings);
}
