/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/sim_results.h"

#include <inttypes.h>
#include <string.h>

#include <longhaul/netsim.h>
#include <longhaul/units.h>

#include "cli/results/result_file.h"
#include "cli/sim/scenario.h"
#include "cli/terminal/terminal.h"

/* ---- csv ------------------------------------------------------------------------------------------- */

#define FLOW_COLUMNS                                                                                       \
    "flow,source,destination,bytes,start_s,received_s,done_s,fct_s,ideal_s,slowdown,packets,"              \
    "repeated_packets,timeouts,failed\n"
#define LINK_COLUMNS                                                                                       \
    "link,from,to,rate_bps,delay_s,sent_packets,sent_bytes,queue_bytes,queue_max_bytes,dropped_packets,"   \
    "lost_packets,marked_packets,pauses,paused_s,held_max_bytes,sent_payload_bytes\n"

/* Picoseconds as seconds with all their digits, but no trailing zeros. */
static void cli_csv_seconds(FILE *out, uint64_t ps)
{
    uint64_t fraction = ps % 1000000000000;
    int digits = 12;
    for (; digits && fraction % 10 == 0; digits--)
        fraction /= 10;
    fprintf(out, "%" PRIu64, ps / 1000000000000);
    if (digits)
        fprintf(out, ".%0*" PRIu64, digits, fraction);
}

static void put_seconds(FILE *out, uint64_t ps)
{
    fputc(',', out);
    cli_csv_seconds(out, ps);
}

/* Empty: not yet. */
static void put_moment(FILE *out, uint64_t ps)
{
    if (ps == UINT64_MAX)
        fputc(',', out);
    else
        put_seconds(out, ps);
}

static void put_flow(FILE *out, uint64_t number, const struct lh_netsim_flow *flow)
{
    bool done = flow->done_ps != UINT64_MAX;
    fprintf(out, "%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64, number, flow->source, flow->destination,
            flow->bytes);
    put_seconds(out, flow->start_ps);
    put_moment(out, flow->received_ps);
    put_moment(out, flow->done_ps);
    put_moment(out, done ? flow->done_ps - flow->start_ps : UINT64_MAX);
    put_moment(out, flow->ideal_ps ? flow->ideal_ps : UINT64_MAX);
    if (done && flow->ideal_ps)
        fprintf(out, ",%.6g", (double)(flow->done_ps - flow->start_ps) / (double)flow->ideal_ps);
    else
        fputc(',', out);
    fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d\n", flow->packets, flow->repeated_packets,
            flow->timeouts, flow->failed);
}

int cli_csv_flows(const struct cli_folder *folder, const struct lh_netsim *simulation)
{
    struct lh_netsim_flow flow;
    uint64_t flows = lh_netsim_flows_count(simulation);
    FILE *out = cli_folder_open(folder, "flows.csv");
    if (!out)
        return CLI_EXIT_FAILED;
    fputs(FLOW_COLUMNS, out);
    for (uint64_t i = 0; i < flows && !lh_netsim_flow(simulation, i, &flow); i++)
        put_flow(out, i, &flow);
    return cli_folder_close(folder, "flows.csv", out);
}

static void put_link(FILE *out, uint32_t number, const struct lh_netsim_link *link)
{
    fprintf(out, "%" PRIu32 ",%s,%s,%" PRIu64, number, link->from, link->to, link->rate_bps);
    put_seconds(out, link->delay_ps);
    fprintf(out,
            ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
            link->sent_packets, link->sent_bytes, link->queue_bytes, link->queue_max_bytes,
            link->dropped_packets, link->lost_packets, link->marked_packets, link->pauses);
    put_seconds(out, link->paused_ps);
    fprintf(out, ",%" PRIu64 ",%" PRIu64 "\n", link->held_max_bytes, link->sent_payload_bytes);
}

int cli_csv_links(const struct cli_folder *folder, const struct lh_netsim *simulation)
{
    struct lh_netsim_link link;
    uint32_t links = lh_netsim_links_count(simulation);
    FILE *out = cli_folder_open(folder, "links.csv");
    if (!out)
        return CLI_EXIT_FAILED;
    fputs(LINK_COLUMNS, out);
    for (uint32_t i = 0; i < links && !lh_netsim_link(simulation, i, &link); i++)
        put_link(out, i, &link);
    return cli_folder_close(folder, "links.csv", out);
}

/* ---- series ---------------------------------------------------------------------------------------- */

/* Rows of one file; a run that takes longer goes on without. */
#define CLI_SAMPLES_MAX 1000000

#define PS_PER_S 1e12

/* Two names of nodes and a number. */
#define CLI_SERIES_NAME_MAX 288

/* "a>b", and "a>b.2" for the second of parallel cables; and what the column has of that link. */
static void put_name(struct cli_series *series, const struct lh_netsim *simulation, unsigned column,
                     const char *what)
{
    struct lh_netsim_link link, other;
    unsigned same = 1;
    char name[CLI_SERIES_NAME_MAX];
    if (lh_netsim_link(simulation, series->links.numbers[column], &link))
        return;
    for (unsigned i = 0; i < column; i++)
        if (!lh_netsim_link(simulation, series->links.numbers[i], &other))
            same += !strcmp(link.from, other.from) && !strcmp(link.to, other.to);
    snprintf(name, sizeof name, "%s>%s", link.from, link.to);
    size_t length = strlen(name);
    if (same > 1)
        length += (size_t)snprintf(name + length, sizeof name - length, ".%u", same);
    fprintf(series->file, ",%s%s", name, what);
    series->shape.longest = length > series->shape.longest ? (unsigned)length : series->shape.longest;
    for (const char *at = name; *at; at++) /* FNV-1a */
        series->shape.names = (series->shape.names ^ (unsigned char)*at) * 0x100000001b3u;
}

int cli_series_open(struct cli_series *series, const struct cli_folder *folder, bool rates,
                    const struct lh_netsim *simulation, const char *patterns)
{
    *series =
        (struct cli_series){.folder = folder, .name = rates ? "rates.csv" : "queues.csv", .rates = rates};
    if (!*patterns || !*folder->path)
        return CLI_PROCEED;
    cli_link_list_find(&series->links, simulation, patterns);
    if (series->links.more)
        cli_note("output.%s: more than %d links; %s has the first", rates ? "rates" : "queues",
                 CLI_LINK_LIST_MAX, series->name);
    series->file = cli_folder_open(folder, series->name);
    if (!series->file)
        return CLI_EXIT_FAILED;
    series->shape.columns = series->links.count;
    fputs("time_s", series->file);
    for (unsigned i = 0; i < series->links.count; i++)
        put_name(series, simulation, i, "");
    for (unsigned i = 0; rates && i < series->links.count; i++)
        put_name(series, simulation, i, " payload");
    fputc('\n', series->file);
    return CLI_PROCEED;
}

static void put_value(struct cli_series *series, double value)
{
    fprintf(series->file, series->rates ? ",%.6g" : ",%.0f", value);
    if (value > series->shape.max)
        series->shape.max = value;
}

/* Of each link the bytes that wait, or those that were sent since the row before over the time since then. */
static void put_values(struct cli_series *series, const struct lh_netsim *simulation, double span_s,
                       bool payload)
{
    struct lh_netsim_link link;
    uint64_t *before = payload ? series->sent_payload_bytes : series->sent_bytes;
    for (unsigned i = 0; i < series->links.count; i++) {
        if (lh_netsim_link(simulation, series->links.numbers[i], &link))
            continue;
        uint64_t sent_bytes = payload ? link.sent_payload_bytes : link.sent_bytes;
        put_value(series,
                  series->rates ? 8 * (double)(sent_bytes - before[i]) / span_s : (double)link.queue_bytes);
        before[i] = sent_bytes;
    }
}

void cli_series_sample(struct cli_series *series, const struct lh_netsim *simulation, uint64_t now_ps)
{
    char time[LH_FORMAT_MAX];
    double span_s = (double)(now_ps - series->last_ps) / PS_PER_S;
    if (!cli_series_goes_on(series) || now_ps == series->last_ps) /* of no time there is no rate */
        return;
    cli_csv_seconds(series->file, now_ps);
    put_values(series, simulation, span_s, false);
    if (series->rates)
        put_values(series, simulation, span_s, true);
    fputc('\n', series->file);
    series->last_ps = now_ps;
    if (++series->shape.rows == CLI_SAMPLES_MAX)
        cli_note("%s: ends after %d samples, at %s (raise output.period for more)", series->name,
                 CLI_SAMPLES_MAX, lh_format_time((double)now_ps / PS_PER_S, time, sizeof time));
}

bool cli_series_goes_on(const struct cli_series *series)
{
    return series->file && series->shape.rows < CLI_SAMPLES_MAX;
}

int cli_series_close(struct cli_series *series, int status)
{
    FILE *file = series->file;
    series->file = NULL;
    if (file && status == CLI_PROCEED)
        return cli_folder_close(series->folder, series->name, file);
    if (file)
        cli_result_drop(file);
    return status;
}
