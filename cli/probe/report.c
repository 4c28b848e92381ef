/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/probe/report.h"

#include "cli/terminal/table.h"
#include "cli/terminal/terminal.h"

#include <longhaul/units.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define SHARE_MAX 32

static const struct cli_column columns[] = {
    {"payload", 7, false},      {"trials", 6, false},
    {"sent", 9, false},         {"lost", 7, false},
    {"loss", 9, false},         {"95 % interval", 21, false},
    {"worst trial", 11, false}, {"burst", 6, false},
    {"reordered", 9, false},    {.title = NULL},
};

static const char *format_time(lh_time ns, char *out)
{
    return lh_format_time((double)ns / (double)LH_NS_PER_S, out, LH_FORMAT_MAX);
}

/* 0.12, and below that 1.2e-2, as loss is written in links. */
static const char *format_share(double share, char *out)
{
    int exponent = share > 0 ? (int)floor(log10(share)) : 0;
    if (exponent < -1)
        snprintf(out, SHARE_MAX, "%.3ge%d", share * pow(10, -exponent), exponent);
    else
        snprintf(out, SHARE_MAX, "%.3g", share);
    return out;
}

static unsigned trials_left_out(const struct lh_probe_size *size)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < size->trial_count; i++)
        count += size->trials[i].excluded;
    return count;
}

static void print_size(const struct cli_table *table, const struct lh_probe_size *size)
{
    struct cli_cell cells[sizeof columns / sizeof columns[0]] = {0};
    char low[SHARE_MAX], high[SHARE_MAX];
    const struct lh_probe_loss *loss = &size->loss;
    snprintf(cells[0].text, CLI_CELL_MAX, "%" PRIu32, size->payload_bytes);
    snprintf(cells[1].text, CLI_CELL_MAX, "%" PRIu32, size->trial_count - trials_left_out(size));
    snprintf(cells[2].text, CLI_CELL_MAX, "%" PRIu64, loss->sent);
    snprintf(cells[3].text, CLI_CELL_MAX, "%" PRIu64, loss->lost);
    if (loss->sent > loss->lost)
        format_share(size->reorder, cells[8].text);
    if (loss->sent) {
        format_share(loss->loss, cells[4].text);
        snprintf(cells[5].text, CLI_CELL_MAX, "%s to %s", format_share(loss->loss_low, low),
                 format_share(loss->loss_high, high));
        format_share(size->trial_high, cells[6].text);
    }
    if (loss->lost)
        snprintf(cells[7].text, CLI_CELL_MAX, "%.2f", loss->burst_packets);
    for (unsigned i = 0; i < sizeof cells / sizeof cells[0]; i++)
        if (!*cells[i].text)
            snprintf(cells[i].text, CLI_CELL_MAX, "-");
    cli_table_row(table, cells);
}

static void print_path(FILE *out, const char *host, const struct lh_probe_attr *attr,
                       const struct lh_probe_result *result)
{
    static const char *const limits[] = {
        [LH_PROBE_LIMIT_PATH] = "limit of the path: loss or queueing above",
        [LH_PROBE_LIMIT_SENDER] = "limit of this host; the path may carry more",
        [LH_PROBE_LIMIT_RECEIVER] = "limit of the remote host; the path may carry more",
        [LH_PROBE_LIMIT_ASKED] = "limit of --rate; the path may carry more",
        [LH_PROBE_LIMIT_TIME] = "limit of --time; the path may carry more",
    };
    char link[LH_LINK_TEXT_MAX], a[LH_FORMAT_MAX], b[LH_FORMAT_MAX], c[LH_FORMAT_MAX], d[LH_FORMAT_MAX];
    fprintf(out, "\n  path        from here to %s, IPv%c", host, result->ipv6 ? '6' : '4');
    if (!lh_link_is_none(&attr->link))
        fprintf(out, "; emulated: %s", lh_link_format(&attr->link, link, sizeof link));
    fprintf(out, "\n  round trip  %s (min %s, p99 %s, max %s, %" PRIu64 " sample%s)\n",
            format_time(result->rtt_ns, a), format_time(result->rtt_min_ns, b),
            format_time(result->rtt_p99_ns, c), format_time(result->rtt_max_ns, d), result->rtt_samples,
            cli_plural((double)result->rtt_samples));
    fprintf(out, "  path MTU    %" PRIu32 " bytes: ", result->path_mtu_bytes);
    if (result->mtu_bytes)
        fprintf(out, "RoCE packets of %" PRIu32 "\n", result->mtu_bytes);
    else
        fputs("no RoCE packet fits\n", out);
    fprintf(out, "  rate        %s; %s\n\n", lh_format_rate(result->rate_bps, a, sizeof a),
            limits[result->rate_limit]);
}

/* ---- summary ---------------------------------------------------------------------------------------- */

static void print_loss(FILE *out, const struct lh_probe_result *result)
{
    char share[SHARE_MAX], low[SHARE_MAX], high[SHARE_MAX];
    const struct lh_probe_loss *loss = &result->loss;
    if (!loss->sent) {
        fputs("  Loss unknown: the receiving host dropped packets in every trial (use a lower --rate, or "
              "reduce\n"
              "  the load of the remote host and raise its net.core.rmem_max).\n",
              out);
        return;
    }
    if (!loss->lost) {
        fprintf(out, "  No loss: below %s of all packets, with 95 %% confidence.\n",
                format_share(loss->loss_high, high));
        return;
    }
    fprintf(out, "  Loss: %s of %s (%s to %s), ", format_share(loss->loss, share),
            result->loss_payload_bytes ? "data packets" : "all packets", format_share(loss->loss_low, low),
            format_share(loss->loss_high, high));
    if (loss->bursty)
        fprintf(out, "mean burst length %.2g packets.\n", loss->burst_packets);
    else
        fputs("independent (no bursts).\n", out);
    if (result->loss_payload_bytes)
        fprintf(out, "  Loss depends on the packet size: measured for %" PRIu32 " bytes.\n",
                result->loss_payload_bytes);
}

static void print_order(FILE *out, const struct lh_probe_result *result)
{
    char share[SHARE_MAX], late[LH_FORMAT_MAX];
    if (result->reorder > 0)
        fprintf(out,
                "  Reordered: %s of received packets, by %.3g packets in the mean, at most %" PRIu64
                " packets and %s.\n",
                format_share(result->reorder, share), result->reorder_extent_mean,
                result->reorder_extent_max, format_time(result->reorder_late_max_ns, late));
    else if (result->received > 0)
        fputs("  No reordering.\n", out);
    if (result->duplicate > 0)
        fprintf(out, "  Duplicated: %s of received packets.\n", format_share(result->duplicate, share));
}

static void print_endpoint(FILE *out, const struct lh_probe_result *result)
{
    if (!result->trials_excluded)
        return;
    fprintf(out,
            "  %" PRIu64 " of %" PRIu64
            " trial%s excluded: packets dropped by the receiving host, not the path (%" PRIu64
            " at the\n  socket, %" PRIu64 " before).\n",
            result->trials_excluded, result->trials, cli_plural((double)result->trials),
            result->endpoint_drops_socket, result->endpoint_drops_host);
}

/* One of several paths that is worse than the rest shows in its flows. */
static void print_flows(FILE *out, const struct lh_probe_result *result)
{
    char low[SHARE_MAX], high[SHARE_MAX];
    if (result->flows > 1 && result->loss.lost)
        fprintf(out, "  Loss of %" PRIu32 " flows: best %s, worst %s.\n", result->flows,
                format_share(result->flow_loss_low, low), format_share(result->flow_loss_high, high));
}

void cli_probe_report(FILE *out, const char *host, const struct lh_probe_attr *attr,
                      const struct lh_probe_result *result)
{
    struct cli_table table = {columns, out, "  ", cli_terminal_colours(fileno(out))};
    print_path(out, host, attr, result);
    cli_table_titles(&table);
    cli_table_rule(&table);
    for (uint32_t i = 0; i < result->size_count; i++)
        print_size(&table, &result->sizes[i]);
    cli_table_rule(&table);
    fputc('\n', out);
    print_loss(out, result);
    print_flows(out, result);
    print_order(out, result);
    print_endpoint(out, result);
}
