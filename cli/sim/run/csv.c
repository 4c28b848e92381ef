/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/sim/run/csv.h"

#include "cli/terminal/diagnostic.h"

#include <inttypes.h>

#define FLOW_COLUMNS                                                                                       \
    "flow,source,destination,bytes,start_s,received_s,done_s,fct_s,ideal_s,slowdown,packets,"              \
    "repeated_packets,timeouts,failed\n"
#define LINK_COLUMNS                                                                                       \
    "link,from,to,rate_bps,delay_s,sent_packets,sent_bytes,queue_bytes,queue_max_bytes,dropped_packets,"   \
    "lost_packets,marked_packets,pauses,paused_s,held_max_bytes,sent_payload_bytes\n"

void cli_csv_seconds(FILE *out, uint64_t ps)
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
