/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/plan_parts.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/error.h>
#include <longhaul/units.h>

#include "cli/options/option_values.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- link file ------------------------------------------------------------------------------------- */

/* A measurement with all its trials is some kilobytes. */
#define FILE_MAX ((size_t)16 << 20)

/* A member, and what its number can be. */
struct member {
    const char *name;
    size_t offset; /* of a double in struct cli_link_file */
    double minimum, below;
    const char *range;
};

static const struct member members[] = {
    {"bandwidth_bps", offsetof(struct cli_link_file, bandwidth_bps), 1, 1e18, "1 to below 1e18"},
    {"rtt_s", offsetof(struct cli_link_file, rtt_s), 1e-9, 1e6, "1e-9 to below 1e6"},
    {"loss", offsetof(struct cli_link_file, loss), 0, 1, "0 to below 1"},
    {"loss_high", offsetof(struct cli_link_file, loss_high), 0, 1, "0 to below 1"},
    {"burst_packets", offsetof(struct cli_link_file, burst_packets), 0, 1e9, "0 to below 1e9"},
    {"mtu_bytes", offsetof(struct cli_link_file, mtu_bytes), 0, CLI_MTU_MAX + 1,
     "256 to 8896, a multiple of 64"},
};

#define MEMBERS (sizeof members / sizeof members[0])

static double *place(struct cli_link_file *link, const struct member *member)
{
    return (double *)(void *)((char *)link + member->offset);
}

static int refuse(char *wrong, const char *name, const char *why)
{
    snprintf(wrong, CLI_LINK_FILE_WRONG_MAX, "%s: %s", name, why);
    return -1;
}

static int take(struct cli_link_file *link, const struct member *member, const struct cli_json_value *value,
                char *wrong)
{
    if (!isnan(*place(link, member)))
        return refuse(wrong, member->name, "given twice");
    if (value->kind == CLI_JSON_NULL)
        return 0;
    if (value->kind != CLI_JSON_NUMBER)
        return refuse(wrong, member->name, "invalid number");
    if (value->number < member->minimum || value->number >= member->below) {
        snprintf(wrong, CLI_LINK_FILE_WRONG_MAX, "%s %g: out of range (%s)", member->name, value->number,
                 member->range);
        return -1;
    }
    *place(link, member) = value->number;
    return 0;
}

/* A multiple of 64, or nothing. */
static bool check_mtu(double *mtu_bytes)
{
    if (isnan(*mtu_bytes) || *mtu_bytes == 0) {
        *mtu_bytes = NAN;
        return true;
    }
    return *mtu_bytes >= 256 && *mtu_bytes <= CLI_MTU_MAX && fmod(*mtu_bytes, 64) == 0;
}

int cli_link_file_parse(const char *text, size_t bytes, struct cli_link_file *link, char *wrong)
{
    struct cli_json_cursor cursor = {text, text + bytes};
    struct cli_json_value all, name, value;
    struct cli_link_file read = {NAN, NAN, NAN, NAN, NAN, NAN};
    bool right = cli_json_read(&cursor, &all) && cursor.at == cursor.end;
    if (!right) {
        snprintf(wrong, CLI_LINK_FILE_WRONG_MAX, "invalid JSON at byte %zu",
                 (size_t)(cursor.at - text) + 1);
        return -1;
    }
    if (all.kind != CLI_JSON_OBJECT)
        return refuse(wrong, "JSON", "not an object (example: {\"rtt_s\": 0.025})");
    cursor = cli_json_enter(&all);
    while (cli_json_next(&cursor, &name, &value))
        for (size_t i = 0; i < MEMBERS; i++)
            if (strlen(members[i].name) == name.bytes && !memcmp(members[i].name, name.text, name.bytes) &&
                take(&read, &members[i], &value, wrong))
                return -1;
    if (!check_mtu(&read.mtu_bytes)) {
        snprintf(wrong, CLI_LINK_FILE_WRONG_MAX,
                 "mtu_bytes %g: out of range (256 to 8896, a multiple of 64)", read.mtu_bytes);
        return -1;
    }
    if (read.loss_high < read.loss) {
        snprintf(wrong, CLI_LINK_FILE_WRONG_MAX, "loss_high %g: below loss %g", read.loss_high, read.loss);
        return -1;
    }
    *link = read;
    return 0;
}

/* CLI_PROCEED, or reports the cause. */
static int cli_link_file_read(const char *path, struct cli_link_file *link)
{
    char wrong[CLI_LINK_FILE_WRONG_MAX];
    size_t bytes = 0;
    char *text = cli_read_text("--link-file ", path, FILE_MAX, &bytes);
    if (!text)
        return CLI_EXIT_FAILED;
    int failed = cli_link_file_parse(text, bytes, link, wrong);
    free(text);
    return failed ? cli_misused("--link-file %s: %s", path, wrong) : CLI_PROCEED;
}

/* ---- settings -------------------------------------------------------------------------------------- */

/* Light in glass: 200 000 km/s. */
#define SECONDS_PER_KM 5e-6

/* Of packets, where neither an option nor a link file has another. */
#define MTU_BYTES    4096
#define PAYLOAD_STEP 64u /* of a payload and of --chunk */

/* More than the model's 10^15 packets of any size. */
#define MESSAGE_MAX ((uint64_t)1 << 62)

/* A number from 0 with `unit` behind it; NaN: it is none. */
static double read_number(const char *text, const char *unit)
{
    char *end = NULL;
    double read = isdigit((unsigned char)*text) ? strtod(text, &end) : NAN;
    /* strtod also reads hexadecimal numbers. */
    return isnan(read) || strcmp(end, unit) != 0 || strpbrk(text, "xX") ? NAN : read;
}

static int take_number(const char *option, const char *text, const char *unit, double maximum,
                       double *value)
{
    double read = read_number(text, unit);
    if (!(read >= 0 && read <= maximum))
        return cli_misused("--%s %s: out of range (0 to %g%s)", option, text, maximum, unit);
    *value = read;
    return CLI_PROCEED;
}

static int take_rtt(const struct cli_plan_settings *settings, double *rtt_s)
{
    double km = 0;
    if (settings->distance && settings->rtt_ns)
        return cli_misused("--distance, --rtt: mutually exclusive");
    if (!settings->distance && !settings->rtt_ns && !isnan(settings->file.rtt_s)) {
        *rtt_s = settings->file.rtt_s;
        return CLI_PROCEED;
    }
    if (!settings->distance && !settings->rtt_ns)
        return cli_misused("missing --rtt TIME or --distance KM (example: --distance 2500km)");
    *rtt_s = (double)settings->rtt_ns / (double)LH_NS_PER_S;
    if (!settings->distance)
        return CLI_PROCEED;
    int status = take_number("distance", settings->distance, "km", 1e9, &km);
    if (status == CLI_PROCEED && km == 0)
        return cli_misused("--distance %s: out of range (above 0km)", settings->distance);
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
    return cli_misused("--by %s: unknown measure (mean, p50, p99 or p99.9)", text);
}

static int take_timing(const char *text, enum lh_model_timing *timing)
{
    bool paper = !strcmp(text, "paper");
    if (!paper && strcmp(text, "longhaul") != 0)
        return cli_misused("--timing %s: unknown timing (longhaul or paper)", text);
    *timing = paper ? LH_MODEL_TIMING_PAPER : LH_MODEL_TIMING_LONGHAUL;
    return CLI_PROCEED;
}

static int take_loss_of(const char *text, bool *of_chunk)
{
    *of_chunk = !strcmp(text, "chunk");
    if (!*of_chunk && strcmp(text, "packet") != 0)
        return cli_misused("--loss-of %s: unknown unit (packet or chunk)", text);
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
        return cli_misused("--worst, --map: mutually exclusive");
    for (unsigned i = 1; i < losses->count; i++) {
        low = fmin(low, losses->ratio[i]);
        high = fmax(high, losses->ratio[i]);
    }
    *losses = (struct cli_loss_list){1, {high}};
    order->loss_low = low < high ? low : NAN;
    return CLI_PROCEED;
}

static int take_losses(const struct cli_plan_settings *settings, struct cli_plan_order *order)
{
    struct cli_loss_list *losses = &order->losses;
    const char *text = settings->loss ? settings->loss : order->map ? CLI_PLAN_MAP_LOSSES : NULL;
    if (!settings->loss && !isnan(settings->file.loss)) {
        take_measured(&settings->file, order);
        return CLI_PROCEED;
    }
    if (!text)
        return cli_misused("missing --loss LIST (example: --loss 1e-5)");
    int status = cli_loss_list_parse("loss", text, losses);
    for (unsigned i = 0; status == CLI_PROCEED && i < losses->count; i++)
        if (losses->ratio[i] >= 1)
            return cli_misused("--loss %s: out of range (0 to below 1)", text);
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
            return cli_misused("--mix %s: invalid mix (example: 64KiB:9,1GiB:1)", text);
        memcpy(piece, text, length);
        piece[length] = 0;
        char *colon = strchr(piece, ':');
        if (!colon)
            return cli_misused("--mix %s: missing weight (example: 64KiB:9,1GiB:1)", piece);
        *colon = 0;
        if (lh_parse_size(piece, &size->message_bytes))
            return cli_misused("--mix %s", lh_last_error());
        size->weight = read_number(colon + 1, "");
        if (!(size->weight > 0 && size->weight <= 1e9))
            return cli_misused("--mix: weight %s: out of range (above 0, at most 1e9)", colon + 1);
        question->sizes_count++;
        if (!text[length])
            return CLI_PROCEED;
        text += length + 1;
    }
}

static int take_sizes(struct cli_plan_settings *settings)
{
    struct cli_plan_order *order = &settings->order;
    const char *text = settings->size ? settings->size : order->map ? CLI_PLAN_MAP_SIZES : NULL;
    order->mix = settings->mix != NULL;
    if (settings->mix && (settings->size || order->map))
        return cli_misused("--mix %s: not with --size or --map", settings->mix);
    if (settings->mix)
        return take_mix(settings->mix, &order->question);
    if (!text)
        return cli_misused("missing --size SIZES (example: --size 128MiB; --mix for several)");
    return cli_size_list_parse("size", text, MESSAGE_MAX, &order->sizes);
}

static int take_limits(const struct cli_plan_settings *settings, struct lh_plan_question *question)
{
    if (settings->max_overhead && lh_parse_ratio(settings->max_overhead, &question->max_overhead))
        return cli_misused("--max-overhead %s", lh_last_error());
    if (settings->cores != CLI_PLAN_ANY_CORES)
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
        return cli_misused("--burst %s: out of range (1 to 1e9 packets; 0: none)", text);
    *packets = read;
    return CLI_PROCEED;
}

/* As a connection has it: where it is not whole packets, rounded down to a power of two of them. What no
 * connection takes stays as it is: the model says why not. */
static uint64_t chunk_of(uint64_t wanted_bytes, uint32_t mtu_bytes)
{
    uint64_t chunk_bytes = mtu_bytes;
    if (wanted_bytes % mtu_bytes == 0 || wanted_bytes < mtu_bytes || wanted_bytes % PAYLOAD_STEP != 0)
        return wanted_bytes;
    while (chunk_bytes <= wanted_bytes / 2)
        chunk_bytes *= 2;
    return chunk_bytes;
}

static int take_link(const struct cli_plan_settings *settings, struct lh_model_path *link)
{
    if (!settings->bandwidth_bps && isnan(settings->file.bandwidth_bps))
        return cli_misused("missing --bandwidth RATE (example: --bandwidth 400Gbit)");
    link->bandwidth_bps =
        settings->bandwidth_bps ? (double)settings->bandwidth_bps : settings->file.bandwidth_bps;
    link->burst_packets = isnan(settings->file.burst_packets) ? 0 : settings->file.burst_packets;
    link->mtu_bytes = settings->mtu_bytes               ? settings->mtu_bytes
                      : isnan(settings->file.mtu_bytes) ? MTU_BYTES
                                                        : (uint32_t)settings->file.mtu_bytes;
    link->chunk_bytes = chunk_of(settings->chunk_bytes, link->mtu_bytes);
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
        return cli_misused("--allow-loss %s", lh_last_error());
    if (!(read > 0) || !(read < 1))
        return cli_misused("--allow-loss %s: out of range (above 0, below 1)", text);
    *share = read;
    return CLI_PROCEED;
}

/* Accepts what recv and perf accept; auto is the planner's own choice. */
static int check_scheme(const char *text)
{
    struct lh_model_scheme scheme;
    if (!strcmp(text, CLI_PLAN_AUTO))
        return CLI_PROCEED;
    if (!strncmp(text, CLI_PLAN_AUTO ",", strlen(CLI_PLAN_AUTO ",")))
        return cli_misused(
            "--reliability %s: auto is the planner's choice (its parameters: --by, --max-overhead)", text);
    return lh_model_scheme_parse(text, &scheme) ? cli_misused("--reliability: %s", lh_last_error())
                                                : CLI_PROCEED;
}

static int check(const struct cli_plan_order *order)
{
    if (!isnan(order->allow_loss) && order->map)
        return cli_misused("--allow-loss, --map: mutually exclusive");
    for (unsigned i = 0; i < order->schemes.count; i++) {
        int status = check_scheme(order->schemes.text[i]);
        if (status != CLI_PROCEED)
            return status;
    }
    if (order->output && !order->map)
        return cli_misused("--output %s: picture of a map (add --map)", order->output);
    if (order->json && order->map)
        return cli_misused("--json %s: not with --map", order->json);
    return CLI_PROCEED;
}

int cli_plan_settings_take(struct cli_plan_settings *settings)
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
