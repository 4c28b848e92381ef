/*
 * plan.c - longhaul plan: the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "plan_order.h"

#include "commands.h"
#include "link_file.h"
#include "plan_figures.h"
#include "plan_flow.h"
#include "say.h"

#include <longhaul/error.h>
#include <longhaul/units.h>

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1024)
#define GIB (KIB * KIB * KIB)

/* Light in glass: 200 000 km/s. */
#define SECONDS_PER_KM 5e-6

/* Of packets, where neither an option nor a link file has another. */
#define MTU_BYTES 4096

/* No number of cores was given. */
#define ANY_CORES UINT32_MAX
#define CORES_MAX 65536

/* More than the model's 10^15 packets of any size. */
#define MESSAGE_MAX ((uint64_t)1 << 62)

/* As they are typed; NULL: not given. */
struct settings {
    uint64_t bandwidth_bps;
    lh_time rtt_ns;
    uint64_t chunk_bytes, encode_bytes_per_s;
    uint32_t mtu_bytes, cores;
    const char *figures, *link_file, *distance, *loss, *size, *mix, *by, *loss_of, *burst, *max_overhead,
        *allow_loss, *timing;
    bool worst, flow_control;
    struct cli_link_file file; /* what the link file says, NaN where it says nothing */
    struct cli_plan_order order;
};

/* ---- values ------------------------------------------------------------------------------------------ */

/* A number from 0 with `unit` behind it; NaN: it is none. */
static double read_number(const char *text, const char *unit)
{
    char *end = NULL;
    double read = isdigit((unsigned char)*text) ? strtod(text, &end) : NAN;
    /* strtod also reads hexadecimal numbers. */
    return isnan(read) || strcmp(end, unit) != 0 || strpbrk(text, "xX") ? NAN : read;
}

static int take_number(const char *option, const char *text, const char *unit, double most, double *value)
{
    double read = read_number(text, unit);
    if (!(read >= 0 && read <= most))
        return cli_misused("--%s: \"%s\" is not possible: it is a number from 0 to %g%s", option, text,
                           most, unit);
    *value = read;
    return CLI_PROCEED;
}

static int take_rtt(const struct settings *settings, double *rtt_s)
{
    double km = 0;
    if (settings->distance && settings->rtt_ns)
        return cli_misused("--distance and --rtt say the same twice; give one of them");
    if (!settings->distance && !settings->rtt_ns && !isnan(settings->file.rtt_s)) {
        *rtt_s = settings->file.rtt_s;
        return CLI_PROCEED;
    }
    if (!settings->distance && !settings->rtt_ns)
        return cli_misused("the link is missing: --rtt TIME or --distance KILOMETRES, such as 2500km");
    *rtt_s = (double)settings->rtt_ns / (double)LH_NS_PER_S;
    if (!settings->distance)
        return CLI_PROCEED;
    int status = take_number("distance", settings->distance, "km", 1e9, &km);
    if (status == CLI_PROCEED && km == 0)
        return cli_misused("--distance: \"%s\" is not possible: it is more than 0km", settings->distance);
    *rtt_s = 2 * km * SECONDS_PER_KM;
    return status;
}

static int take_by(const char *text, struct cli_plan_order *order)
{
    static const char *const names[] = {[LH_PLAN_BY_MEAN] = "mean",
                                        [LH_PLAN_BY_P50] = "p50",
                                        [LH_PLAN_BY_P99] = "p99",
                                        [LH_PLAN_BY_P999] = "p99.9"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(text, names[i])) {
            order->question.by = (enum lh_plan_by)i;
            order->by = names[i];
            return CLI_PROCEED;
        }
    return cli_misused("--by: \"%s\" is no measure; there are: mean, p50, p99, p99.9", text);
}

static int take_timing(const char *text, enum lh_model_timing *timing)
{
    bool paper = !strcmp(text, "paper");
    if (!paper && strcmp(text, "longhaul") != 0)
        return cli_misused("--timing: \"%s\" is nobody's; it is longhaul or paper", text);
    *timing = paper ? LH_MODEL_TIMING_PAPER : LH_MODEL_TIMING_LONGHAUL;
    return CLI_PROCEED;
}

static int take_loss_of(const char *text, bool *of_chunk)
{
    *of_chunk = !strcmp(text, "chunk");
    if (!*of_chunk && strcmp(text, "packet") != 0)
        return cli_misused("--loss-of: \"%s\" is lost by nobody; it is packet or chunk", text);
    return CLI_PROCEED;
}

/* What was measured once may be anything within its interval: the plan is for the most. */
static void take_measured(const struct cli_link_file *file, struct cli_plan_order *order)
{
    bool more = file->loss_high > file->loss;
    order->losses = (struct cli_loss_list){1, {more ? file->loss_high : file->loss}};
    order->loss_low = more ? file->loss : NAN;
    order->measured = more;
}

/* One plan for the highest of them. */
static int keep_worst(struct cli_plan_order *order)
{
    struct cli_loss_list *losses = &order->losses;
    double low = losses->ratio[0], high = losses->ratio[0];
    if (order->map)
        return cli_misused("--worst: a map has a column for each loss; leave one of --worst and --map out");
    for (unsigned i = 1; i < losses->count; i++) {
        low = fmin(low, losses->ratio[i]);
        high = fmax(high, losses->ratio[i]);
    }
    *losses = (struct cli_loss_list){1, {high}};
    order->loss_low = low < high ? low : NAN;
    return CLI_PROCEED;
}

static int take_losses(const struct settings *settings, struct cli_plan_order *order)
{
    struct cli_loss_list *losses = &order->losses;
    const char *text = settings->loss ? settings->loss : order->map ? CLI_PLAN_MAP_LOSSES : NULL;
    if (!settings->loss && !isnan(settings->file.loss)) {
        take_measured(&settings->file, order);
        return CLI_PROCEED;
    }
    if (!text)
        return cli_misused("--loss is missing: the share of packets that the link loses, such as 1e-5");
    int status = cli_loss_list_parse("loss", text, losses);
    for (unsigned i = 0; status == CLI_PROCEED && i < losses->count; i++)
        if (losses->ratio[i] >= 1)
            return cli_misused("--loss: \"%s\" is not possible: where everything is lost, nothing arrives",
                               text);
    return status == CLI_PROCEED && settings->worst ? keep_worst(order) : status;
}

/* "64KiB:3,1GiB:1" */
static int take_mix(const char *text, struct lh_plan_question *question)
{
    char piece[64];
    question->sizes_count = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        struct lh_plan_size *size = &question->sizes[question->sizes_count];
        if (question->sizes_count == LH_PLAN_SIZES_MAX)
            return cli_misused("--mix: more than %d sizes", LH_PLAN_SIZES_MAX);
        if (length >= sizeof piece)
            return cli_misused("--mix: \"%s\" is no mix; for instance 64KiB:9,1GiB:1", text);
        memcpy(piece, text, length);
        piece[length] = 0;
        char *colon = strchr(piece, ':');
        if (!colon)
            return cli_misused("--mix: \"%s\" has no weight; for instance 64KiB:9,1GiB:1", piece);
        *colon = 0;
        if (lh_parse_size(piece, &size->message_bytes))
            return cli_misused("--mix: %s", lh_last_error());
        size->weight = read_number(colon + 1, "");
        if (!(size->weight > 0 && size->weight <= 1e9))
            return cli_misused("--mix: \"%s\" is no weight: it is a number above 0 and at most 1e9",
                               colon + 1);
        question->sizes_count++;
        if (!text[length])
            return CLI_PROCEED;
        text += length + 1;
    }
}

static int take_sizes(struct settings *settings)
{
    struct cli_plan_order *order = &settings->order;
    const char *text = settings->size ? settings->size : order->map ? CLI_PLAN_MAP_SIZES : NULL;
    order->mix = settings->mix != NULL;
    if (settings->mix && (settings->size || order->map))
        return cli_misused(
            "--mix: \"%s\" is one plan for all of these; it goes with neither --size nor --map",
            settings->mix);
    if (settings->mix)
        return take_mix(settings->mix, &order->question);
    if (!text)
        return cli_misused("--size is missing: of a message, such as 128MiB (or --mix for several)");
    return cli_size_list_parse("size", text, MESSAGE_MAX, &order->sizes);
}

static int take_limits(const struct settings *settings, struct lh_plan_question *question)
{
    if (settings->max_overhead && lh_parse_ratio(settings->max_overhead, &question->max_overhead))
        return cli_misused("--max-overhead: %s", lh_last_error());
    if (settings->cores != ANY_CORES)
        question->max_cores = settings->cores;
    if (settings->encode_bytes_per_s) {
        double faster = (double)settings->encode_bytes_per_s / question->mds_bytes_per_s;
        question->mds_bytes_per_s *= faster;
        question->xor_bytes_per_s *= faster;
    }
    return CLI_PROCEED;
}

static int take_burst(const char *text, double *packets)
{
    double read = read_number(text, "");
    if (read != 0 && !(read >= 1 && read <= 1e9))
        return cli_misused("--burst: \"%s\" is not possible: it is from 1 to 1e9 packets, or 0 for none",
                           text);
    *packets = read;
    return CLI_PROCEED;
}

static int take_link(const struct settings *settings, struct lh_model_path *link)
{
    if (!settings->bandwidth_bps && isnan(settings->file.bandwidth_bps))
        return cli_misused("the link is missing: --bandwidth RATE, such as 400Gbit");
    link->bandwidth_bps =
        settings->bandwidth_bps ? (double)settings->bandwidth_bps : settings->file.bandwidth_bps;
    link->burst_packets = isnan(settings->file.burst_packets) ? 0 : settings->file.burst_packets;
    link->mtu_bytes = settings->mtu_bytes               ? settings->mtu_bytes
                      : isnan(settings->file.mtu_bytes) ? MTU_BYTES
                                                        : (uint32_t)settings->file.mtu_bytes;
    link->chunk_bytes = settings->chunk_bytes;
    int status = take_rtt(settings, &link->rtt_s);
    if (status == CLI_PROCEED)
        status = take_loss_of(settings->loss_of, &link->loss_of_chunk);
    return status == CLI_PROCEED && settings->burst ? take_burst(settings->burst, &link->burst_packets)
                                                    : status;
}

static int take_allowed(const char *text, double *share)
{
    double read;
    if (lh_parse_ratio(text, &read))
        return cli_misused("--allow-loss: %s", lh_last_error());
    if (!(read > 0) || !(read < 1))
        return cli_misused(
            "--allow-loss: \"%s\" is not possible: it is a share above 0 and below 1, as 1e-3", text);
    *share = read;
    return CLI_PROCEED;
}

/* Whatever recv and perf take is taken here, too. What auto chooses is the planner's own choice. */
static int check_scheme(const char *text)
{
    struct lh_model_scheme scheme;
    if (!strcmp(text, CLI_PLAN_AUTO))
        return CLI_PROCEED;
    if (!strncmp(text, CLI_PLAN_AUTO ",", strlen(CLI_PLAN_AUTO ",")))
        return cli_misused(
            "--reliability: \"%s\": auto is the plan itself here (its parameters are --by and "
            "--max-overhead)",
            text);
    return lh_model_scheme_parse(text, &scheme) ? cli_misused("--reliability: %s", lh_last_error())
                                                : CLI_PROCEED;
}

static int check(const struct cli_plan_order *order)
{
    if (!isnan(order->allow_loss) && order->map)
        return cli_misused("--allow-loss: a map has no place for deadlines; leave --map out");
    for (unsigned i = 0; i < order->schemes.count; i++) {
        int status = check_scheme(order->schemes.text[i]);
        if (status != CLI_PROCEED)
            return status;
    }
    if (order->output && !order->map)
        return cli_misused("--output: \"%s\" would be a picture of a map; add --map", order->output);
    if (order->json && order->map)
        return cli_misused("--json: \"%s\" cannot hold a map; leave out --json, or --map", order->json);
    return CLI_PROCEED;
}

static int take_all(struct settings *settings)
{
    struct cli_plan_order *order = &settings->order;
    int status =
        settings->link_file ? cli_link_file_read(settings->link_file, &settings->file) : CLI_PROCEED;
    if (status == CLI_PROCEED)
        status = take_link(settings, &order->question.link);
    if (status == CLI_PROCEED)
        status = take_losses(settings, order);
    if (status == CLI_PROCEED)
        status = take_sizes(settings);
    if (status == CLI_PROCEED)
        status = take_by(settings->by, order);
    if (status == CLI_PROCEED)
        status = take_timing(settings->timing, &order->question.timing);
    if (status == CLI_PROCEED)
        status = take_limits(settings, &order->question);
    if (status == CLI_PROCEED && settings->allow_loss)
        status = take_allowed(settings->allow_loss, &order->allow_loss);
    return status == CLI_PROCEED ? check(order) : status;
}

/* ---- what is done ------------------------------------------------------------------------------------ */

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
        return cli_misused("--figures: \"%s\" is for the links of the paper; it goes with no other option",
                           folder);
    int status = cli_plan_figures(folder);
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}

/* ---- the command ------------------------------------------------------------------------------------- */

/* Of a group, with its end. */
#define OPTIONS_MAX 16

static void list_link(struct settings *settings, struct cli_option out[static OPTIONS_MAX])
{
    const struct cli_option table[] = {
        {"bandwidth", "RATE", "of the link, for instance 400Gbit", &settings->bandwidth_bps,
         .kind = CLI_RATE, .min = 1},
        {"rtt", "TIME", "its round trip, for instance 25ms", &settings->rtt_ns, .kind = CLI_TIME, .min = 1},
        {"distance", "KM", "instead of --rtt: 2500km is 25ms, at 5 us a km one way", &settings->distance,
         .kind = CLI_TEXT},
        {"loss", "LIST", "share that is lost: 1e-5, a list 0,1e-4,1%, or decades 1e-6..1e-2",
         &settings->loss, .kind = CLI_TEXT},
        {"loss-of", "WHAT", "what that is the loss of: packet or chunk (packet)", &settings->loss_of,
         .kind = CLI_TEXT},
        {"burst", "N", "mean length of a row of lost packets (losses are independent)", &settings->burst,
         .kind = CLI_TEXT},
        {"worst", NULL, "one plan, for the highest of several losses", &settings->worst, .kind = CLI_FLAG},
        {"link-file", "FILE", "JSON of longhaul probe, for what is not given; planned for its highest loss",
         &settings->link_file, .kind = CLI_TEXT},
        {"mtu", "SIZE", "payload of a packet (4KiB)", &settings->mtu_bytes, CLI_SIZE32, 0, true, 256,
         4 * KIB},
        {.name = NULL},
    };
    static_assert(sizeof table <= OPTIONS_MAX * sizeof *out, "room");
    memcpy(out, table, sizeof table);
}

static void list_own(struct settings *settings, struct cli_option out[static OPTIONS_MAX])
{
    const struct cli_option table[] = {
        {"size", "SIZES", "of a message: 128MiB, a list 64KiB,1MiB, or doubling 64KiB..64MiB",
         &settings->size, .kind = CLI_TEXT},
        {"mix", "MIX", "instead of --size: one plan for sizes with weights, 64KiB:9,1GiB:1", &settings->mix,
         .kind = CLI_TEXT},
        {"chunk", "SIZE", "what one bit of the receive bitmap stands for (the planner chooses it)",
         &settings->chunk_bytes, CLI_SIZE, 0, false, 256, GIB},
        {"by", "MEASURE", "what is to be small: mean, p50, p99 or p99.9 (mean)", &settings->by,
         .kind = CLI_TEXT},
        {"timing", "WHOSE", "machines that are counted: longhaul or paper (longhaul)", &settings->timing,
         .kind = CLI_TEXT},
        {"max-overhead", "SHARE", "most that may be sent beside the messages: 25% (no limit)",
         &settings->max_overhead, .kind = CLI_TEXT},
        {"allow-loss", "SHARE", "of a message that may be missing: shows what a deadline would bring",
         &settings->allow_loss, .kind = CLI_TEXT},
        {"cores", "N", "most that may encode (no limit)", &settings->cores, .kind = CLI_COUNT,
         .max = CORES_MAX},
        {"encode-rate", "SIZE", "data that one core encodes a second by ec:mds, 8 parity chunks (14.6GB)",
         &settings->encode_bytes_per_s, .kind = CLI_SIZE, .min = 1},
        {"reliability", "SCHEME",
         "compare this one, such as ec:mds,k=32,m=8; may be given several times (the usual ones)",
         &settings->order.schemes, .kind = CLI_TEXTS},
        {"map", NULL, "sizes over losses: how much faster erasure codes are, and what to use",
         &settings->order.map, .kind = CLI_FLAG},
        {"output", "FILE", "with --map: a picture, FILE.svg or FILE.png", &settings->order.output,
         .kind = CLI_TEXT},
        {"figures", "DIR", "alone: figures of the SDR-RDMA paper, by the model, as data and pictures",
         &settings->figures, .kind = CLI_TEXT},
        {"json", "FILE", "write the results there; - is standard output", &settings->order.json,
         .kind = CLI_TEXT},
        {"flow-control", NULL, "what buffer a link needs instead; 'plan --flow-control --help' has more",
         &settings->flow_control, .kind = CLI_FLAG},
        {.name = NULL},
    };
    static_assert(sizeof table <= OPTIONS_MAX * sizeof *out, "room");
    memcpy(out, table, sizeof table);
}

int cli_plan(int argc, char **argv)
{
    struct settings settings = {
        .cores = ANY_CORES,
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
        .about =
            "Says which scheme brings messages over a link soonest, what it costs, and why, by the model\n"
            "(nothing is sent). Several losses or sizes give a row each.",
        .groups = {link, own},
    };
    if (cli_plan_flow_asked(argc, argv))
        return cli_plan_flow(argc, argv);
    lh_plan_init(&settings.order.question);
    list_link(&settings, link);
    list_own(&settings, own);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED && settings.figures)
        return draw_figures(settings.figures, argc);
    if (status == CLI_PROCEED)
        status = take_all(&settings);
    return status == CLI_PROCEED ? carry_out(&settings.order) : status;
}
