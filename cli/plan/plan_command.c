/*
 * plan_command.c - longhaul plan: the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/commands.h"

#include "cli/options/cli_options.h"
#include "cli/options/option_values.h"
#include "cli/plan/plan_parts.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int plan_one(const struct cli_plan_order *order)
{
    struct cli_plan_point *point = malloc(sizeof *point);
    if (!point)
        return cli_failed("out of memory");
    int status = cli_plan_point(order, 0, 0, point);
    if (status == CLI_PROCEED)
        cli_plan_table(order, point);
    free(point);
    return status;
}

static int carry_out(const struct cli_plan_order *order)
{
    int status = CLI_PROCEED;
    if (order->map)
        status = cli_plan_map(order);
    else if (order->json && !strcmp(order->json, "-"))
        ; /* nothing else goes there */
    else if (order->losses.count * (order->mix ? 1 : order->sizes.count) == 1)
        status = plan_one(order);
    else
        status = cli_plan_sweep(order);
    if (status == CLI_PROCEED && order->json)
        status = cli_plan_json(order);
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}

/* The paper's own links. A single option is one word or two. */
static int draw_figures(const char *folder, int argc)
{
    if (argc > 3)
        return cli_misused("--figures %s: excludes other options (use it alone)", folder);
    int status = cli_paper_figures_draw(folder);
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}

/* ---- the command ------------------------------------------------------------------------------------- */

/* Of a group, with its end. */
#define OPTIONS_MAX 18

/* The schemes of the model's table. */
static const char *schemes_help(char out[static CLI_PLAN_SCHEMES_HELP_MAX])
{
    const size_t size = CLI_PLAN_SCHEMES_HELP_MAX;
    size_t used = (size_t)snprintf(out, size, "scheme to compare: ");
    for (const struct lh_model_entry *const *e = lh_model_schemes(); *e && used < size; e++)
        used += (size_t)snprintf(out + used, size - used, "%s, ", (*e)->name);
    if (used < size)
        snprintf(out + used, size - used,
                 "or auto; example: ec:mds,k=32,m=8; may be given several times (common ones)");
    return out;
}

static void list_link(struct cli_plan_settings *settings, struct cli_option out[static OPTIONS_MAX])
{
    const struct cli_option table[] = {
        {"bandwidth", "RATE", "rate of the link; example: 400Gbit", &settings->bandwidth_bps,
         .kind = CLI_RATE, .min = 1},
        {"rtt", "TIME", "round trip of the link; example: 25ms", &settings->rtt_ns, .kind = CLI_TIME,
         .min = 1},
        {"distance", "KM", "instead of --rtt: 2500km is 25ms, at 5 us per km one way", &settings->distance,
         .kind = CLI_TEXT},
        {"loss", "LIST", "loss ratio: 1e-5, a list 0,1e-4,1%, or decades 1e-6..1e-2", &settings->loss,
         .kind = CLI_TEXT},
        {"loss-of", "WHAT", "unit of the loss ratio: packet or chunk (packet)", &settings->loss_of,
         .kind = CLI_TEXT},
        {"burst", "N", "mean burst length of losses, in packets (independent losses)", &settings->burst,
         .kind = CLI_TEXT},
        {"worst", NULL, "one plan, for the highest of several losses", &settings->worst, .kind = CLI_FLAG},
        {"link-file", "FILE", "JSON of longhaul probe: defaults for the link; plans for its highest loss",
         &settings->link_file, .kind = CLI_TEXT},
        {"mtu", "SIZE", "payload of a packet (4KiB)", &settings->mtu_bytes, CLI_SIZE32, 0, 64, 256,
         CLI_MTU_MAX},
        {.name = NULL},
    };
    static_assert(sizeof table <= OPTIONS_MAX * sizeof *out, "table too long");
    memcpy(out, table, sizeof table);
}

static void list_own(struct cli_plan_settings *settings, struct cli_option out[static OPTIONS_MAX])
{
    const struct cli_option table[] = {
        {"size", "SIZES", "message size: 128MiB, a list 64KiB,1MiB, or doubling 64KiB..64MiB",
         &settings->size, .kind = CLI_TEXT},
        {"mix", "MIX", "instead of --size: one plan for weighted sizes; example: 64KiB:9,1GiB:1",
         &settings->mix, .kind = CLI_TEXT},
        {"chunk", "SIZE", "chunk size: data per bit of the receive bitmap (planner's choice)",
         &settings->chunk_bytes, CLI_SIZE, 0, 0, 256, CLI_GIB},
        {"by", "MEASURE", "measure to minimize: mean, p50, p99 or p99.9 (mean)", &settings->by,
         .kind = CLI_TEXT},
        {"timing", "WHOSE", "protocol timing: longhaul or paper (longhaul)", &settings->timing,
         .kind = CLI_TEXT},
        {"max-overhead", "SHARE", "maximum overhead; example: 25% (no limit)", &settings->max_overhead,
         .kind = CLI_TEXT},
        {"allow-loss", "SHARE",
         "share of a message that may be missing: also recommends bounded completion",
         &settings->allow_loss, .kind = CLI_TEXT},
        {"cores", "N", "maximum cores for encoding (no limit)", &settings->cores, .kind = CLI_COUNT,
         .max = 65536},
        {"encode-rate", "SIZE",
         "bytes per second that one core encodes, ec:mds with 8 parity chunks (14.6GB)",
         &settings->encode_bytes_per_s, .kind = CLI_SIZE, .min = 1},
        {"reliability", "SCHEME", schemes_help(settings->schemes_help), &settings->order.schemes,
         .kind = CLI_TEXTS},
        {"map", NULL, "table of sizes and losses: speed-up of erasure codes, and the best scheme",
         &settings->order.map, .kind = CLI_FLAG},
        {"output", "FILE", "with --map: picture, FILE.svg or FILE.png", &settings->order.output,
         .kind = CLI_TEXT},
        {"figures", "DIR", "figures of the SDR-RDMA paper, computed by the model, as data and pictures",
         &settings->figures, .kind = CLI_TEXT},
        {"json", "FILE", "write results to FILE; - is standard output", &settings->order.json,
         .kind = CLI_TEXT},
        {"flow-control", NULL, "buffer that a link needs; see 'plan --flow-control --help'",
         &settings->flow_control, .kind = CLI_FLAG},
        {"collective", "NAME", "schedule of a collective; see 'plan --collective NAME --help'",
         &settings->collective, .kind = CLI_TEXT},
        {"nic", NULL, "cost of a transport in a NIC; see 'plan --nic --help'", &settings->nic,
         .kind = CLI_FLAG},
        {.name = NULL},
    };
    static_assert(sizeof table <= OPTIONS_MAX * sizeof *out, "table too long");
    memcpy(out, table, sizeof table);
}

/* Whether an option that stands for another command is there. */
static bool is_asked(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], option, strlen(option)) && strchr("=", argv[i][strlen(option)]))
            return true;
    return false;
}

int cli_plan(int argc, char **argv)
{
    struct cli_plan_settings settings = {
        .cores = CLI_PLAN_ANY_CORES,
        .by = "mean",
        .timing = "longhaul",
        .loss_of = "packet",
        .file = {NAN, NAN, NAN, NAN, NAN, NAN},
        .order.loss_low = NAN,
        .order.allow_loss = NAN,
    };
    struct cli_operands operands;
    struct cli_option link[OPTIONS_MAX], own[OPTIONS_MAX];
    const struct cli_usage usage = {
        .command = "plan",
        .operands = "--bandwidth RATE --rtt TIME --loss LIST --size SIZES",
        .about = "Recommends a reliability scheme for a link, with its cost and the reason, by the model "
                 "(nothing is\n"
                 "sent). With several losses or sizes, each combination gets one row.",
        .groups = {link, own},
    };
    if (is_asked(argc, argv, "--flow-control"))
        return cli_plan_flow(argc, argv);
    if (is_asked(argc, argv, "--collective"))
        return cli_plan_collective(argc, argv);
    if (is_asked(argc, argv, "--nic"))
        return cli_plan_nic(argc, argv);
    lh_plan_init(&settings.order.question);
    list_link(&settings, link);
    list_own(&settings, own);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED && settings.figures)
        return draw_figures(settings.figures, argc);
    if (status == CLI_PROCEED)
        status = cli_plan_settings_take(&settings);
    if (status == CLI_PROCEED && settings.order.json && settings.link_file)
        status = cli_result_spare("--json ", settings.order.json, settings.link_file);
    return status == CLI_PROCEED ? carry_out(&settings.order) : status;
}
