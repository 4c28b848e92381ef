/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <longhaul/probe.h>
#include <longhaul/units.h>

#include "cli/options/cli_options.h"
#include "cli/options/option_values.h"
#include "cli/options/peer_address.h"
#include "cli/results/json.h"
#include "cli/results/result_file.h"
#include "cli/terminal/terminal.h"

/* ---- report ---------------------------------------------------------------------------------------- */

/* What longhaul probe measured: as a table, in words, and as JSON. */

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

/* The table and the verdict. */
static void cli_probe_report(FILE *out, const char *host, const struct lh_probe_attr *attr,
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

/* ---- json ------------------------------------------------------------------------------------------ */

/*
 * What longhaul probe measured, as JSON.
 *
 * What longhaul probe measured, for programs.
 */

static double seconds(lh_time ns)
{
    return (double)ns / (double)LH_NS_PER_S;
}

/* null for what is not known. */
static void put_loss(struct cli_json *json, const struct lh_probe_loss *loss)
{
    bool known = loss->sent > 0;
    cli_json_number(json, "loss", known ? loss->loss : NAN);
    cli_json_number(json, "loss_low", known ? loss->loss_low : NAN);
    cli_json_number(json, "loss_high", known ? loss->loss_high : NAN);
    cli_json_number(json, "burst_packets", known ? loss->burst_packets : NAN);
    cli_json_number(json, "burst_low", known ? loss->burst_low : NAN);
    cli_json_number(json, "burst_high", known ? loss->burst_high : NAN);
}

static void put_size(struct cli_json *json, const struct lh_probe_size *size)
{
    cli_json_open(json, NULL, '{');
    cli_json_count(json, "payload_bytes", size->payload_bytes);
    cli_json_count(json, "sent", size->loss.sent);
    cli_json_count(json, "lost", size->loss.lost);
    put_loss(json, &size->loss);
    cli_json_number(json, "reorder", size->reorder);
    cli_json_open(json, "trials", '[');
    for (uint32_t i = 0; i < size->trial_count; i++) {
        const struct lh_probe_trial *trial = &size->trials[i];
        cli_json_open(json, NULL, '{');
        cli_json_count(json, "sent", trial->sent);
        cli_json_count(json, "lost", trial->lost);
        cli_json_count(json, "endpoint_drops", trial->endpoint_drops);
        cli_json_count(json, "excluded", trial->excluded);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void put_path(struct cli_json *json, const struct lh_probe_result *result)
{
    static const char *const limits[] = {
        [LH_PROBE_LIMIT_PATH] = "path",         [LH_PROBE_LIMIT_SENDER] = "sender",
        [LH_PROBE_LIMIT_RECEIVER] = "receiver", [LH_PROBE_LIMIT_ASKED] = "asked",
        [LH_PROBE_LIMIT_TIME] = "time",
    };
    cli_json_number(json, "bandwidth_bps", result->rate_bps);
    cli_json_text(json, "bandwidth_limit", limits[result->rate_limit]);
    cli_json_number(json, "rtt_s", seconds(result->rtt_ns));
    cli_json_number(json, "rtt_min_s", seconds(result->rtt_min_ns));
    cli_json_number(json, "rtt_mean_s", seconds(result->rtt_mean_ns));
    cli_json_number(json, "rtt_p99_s", seconds(result->rtt_p99_ns));
    cli_json_number(json, "rtt_max_s", seconds(result->rtt_max_ns));
    cli_json_number(json, "rtt_jitter_s", seconds(result->rtt_jitter_ns));
    cli_json_count(json, "rtt_samples", result->rtt_samples);
    cli_json_count(json, "path_mtu_bytes", result->path_mtu_bytes);
    cli_json_count(json, "mtu_bytes", result->mtu_bytes);
}

static void put_order(struct cli_json *json, const struct lh_probe_result *result)
{
    cli_json_number(json, "reorder", result->reorder);
    cli_json_number(json, "reorder_extent_mean_packets", result->reorder_extent_mean);
    cli_json_count(json, "reorder_extent_max_packets", result->reorder_extent_max);
    cli_json_number(json, "reorder_late_max_s", seconds(result->reorder_late_max_ns));
    cli_json_number(json, "duplicate", result->duplicate);
}

/* One object; longhaul-probe(1) lists the members. */
static void cli_probe_report_json(FILE *out, const char *host, const struct lh_probe_attr *attr,
                                  const struct lh_probe_result *result)
{
    struct cli_json json = {.out = out};
    char link[LH_LINK_TEXT_MAX];
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "host", host);
    cli_json_text(&json, "family", result->ipv6 ? "ipv6" : "ipv4");
    cli_json_text(&json, "link", lh_link_format(&attr->link, link, sizeof link));
    put_path(&json, result);
    put_loss(&json, &result->loss);
    cli_json_count(&json, "bursty", result->loss.bursty);
    cli_json_count(&json, "loss_payload_bytes", result->loss_payload_bytes);
    put_order(&json, result);
    cli_json_count(&json, "sent", result->sent);
    cli_json_count(&json, "received", result->received);
    cli_json_count(&json, "trials", result->trials);
    cli_json_count(&json, "trials_excluded", result->trials_excluded);
    cli_json_count(&json, "endpoint_drops_socket", result->endpoint_drops_socket);
    cli_json_count(&json, "endpoint_drops_host", result->endpoint_drops_host);
    cli_json_count(&json, "flows", result->flows);
    cli_json_number(&json, "flow_loss_low", result->flow_loss_low);
    cli_json_number(&json, "flow_loss_high", result->flow_loss_high);
    cli_json_open(&json, "sizes", '[');
    for (uint32_t i = 0; i < result->size_count; i++)
        put_size(&json, &result->sizes[i]);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_end(&json);
}

/* ---- probe ----------------------------------------------------------------------------------------- */

/*
 * Longhaul probe --server, longhaul probe HOST[:PORT]: what the path between them is like.
 *
 * Nothing has to be cleaned up on either side but the results, which are written at the end: so a signal
 * ends the process at once, and the peer sees the connection close.
 */

struct settings {
    bool server, once, insecure;
    const char *listen_on, *sizes, *json; /* NULL: not given */
    struct lh_probe_attr attr;
    lh_time wait_ns;
};

/* ---- the server --------------------------------------------------------------------------- */

static int run_server(const struct settings *settings, const struct cli_operands *operands)
{
    struct cli_address address;
    struct lh_probe_server *server;
    if (operands->count)
        return cli_misused("%s: unexpected argument: --server takes no host (use --listen [ADDR]:PORT)",
                           operands->text[0]);
    if (settings->json || settings->sizes)
        return cli_misused("--%s: option of the client", settings->json ? "json" : "size");
    const char *listen_on = settings->listen_on ? settings->listen_on : ":47912";
    int status = cli_address_parse("--listen", listen_on, CLI_PORT_PROBE, true, &address);
    if (status != CLI_PROCEED)
        return status;
    int code = lh_probe_listen(address.where, &server);
    if (code)
        return cli_listening_failed(&address, code);
    if (settings->attr.loopback_only)
        lh_probe_server_loopback_only(server);
    printf("listening on %s:%u\n", *address.host ? address.host : cli_address_any(),
           lh_probe_server_port(server));
    cli_output_flush();
    do {
        code = lh_probe_serve(server, LH_TIME_NEVER);
        if (code)
            cli_note("%s: %s", lh_probe_server_peer(server), lh_last_error());
    } while (code != -LH_ESYSTEM && (code || !settings->once));
    lh_probe_server_close(server);
    return code ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

/* ---- the client -------------------------------------------------------------------------- */

static int take_sizes(struct settings *settings)
{
    struct cli_size_list list;
    if (!settings->sizes)
        return CLI_PROCEED;
    int status = cli_size_list_parse("size", settings->sizes, LH_PROBE_PAYLOAD_MAX, &list);
    if (status != CLI_PROCEED)
        return status;
    if (list.count > LH_PROBE_SIZES_MAX)
        return cli_misused("--size %s: more than %d sizes", settings->sizes, LH_PROBE_SIZES_MAX);
    for (unsigned i = 0; i < list.count; i++) {
        if (list.bytes[i] < LH_PROBE_PAYLOAD_MIN)
            return cli_misused("--size %" PRIu64 ": out of range (at least %dB)", list.bytes[i],
                               LH_PROBE_PAYLOAD_MIN);
        settings->attr.payload_bytes[settings->attr.size_count++] = (uint32_t)list.bytes[i];
    }
    return CLI_PROCEED;
}

/* Found before the measurement, not after it. */
static int check_json(const char *path)
{
    if (!path || !strcmp(path, "-"))
        return CLI_PROCEED;
    FILE *file = cli_result_open("--json ", path);
    if (!file)
        return CLI_EXIT_FAILED;
    cli_result_drop(file);
    return CLI_PROCEED;
}

static int write_json(const struct settings *settings, const struct cli_address *address,
                      const struct lh_probe_result *result)
{
    if (!settings->json)
        return CLI_PROCEED;
    if (!strcmp(settings->json, "-")) {
        cli_probe_report_json(stdout, address->where, &settings->attr, result);
        return CLI_PROCEED;
    }
    FILE *file = cli_result_open("--json ", settings->json);
    if (!file)
        return CLI_EXIT_FAILED;
    cli_probe_report_json(file, address->where, &settings->attr, result);
    return cli_result_close("--json ", settings->json, file);
}

static int run_client(struct settings *settings, const struct cli_operands *operands)
{
    static struct lh_probe_result result;
    struct cli_address address;
    if (!operands->count)
        return cli_misused(
            "missing HOST[:PORT] (usage: longhaul probe HOST[:PORT], or longhaul probe --server)");
    if (settings->listen_on || settings->once)
        return cli_misused("--%s: option of the server (longhaul probe --server)",
                           settings->once ? "once" : "listen");
    int status = cli_address_parse("HOST[:PORT]", operands->text[0], CLI_PORT_PROBE, false, &address);
    if (status == CLI_PROCEED)
        status = take_sizes(settings);
    if (status == CLI_PROCEED)
        status = check_json(settings->json);
    if (status == CLI_PROCEED)
        status = cli_path_file(settings->attr.path_file, &settings->attr.path_file);
    if (status != CLI_PROCEED)
        return status;
    int code = lh_probe_run(address.where, &settings->attr, settings->wait_ns, &result);
    if (code)
        return cli_library_failed("cannot probe", address.where, code);
    /* With --json - stdout has the object only. */
    bool to_stdout = settings->json && !strcmp(settings->json, "-");
    cli_probe_report(to_stdout ? stderr : stdout, address.where, &settings->attr, &result);
    status = write_json(settings, &address, &result);
    return status == CLI_PROCEED ? CLI_EXIT_OK : status;
}

int cli_probe(int argc, char **argv)
{
    struct settings settings = {.wait_ns = 10 * LH_NS_PER_S};
    struct lh_probe_attr *attr = &settings.attr;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"server", NULL, "run as the answering server", &settings.server, .kind = CLI_FLAG},
        {"listen", "[ADDR]:PORT", "server: listening address; port 0 picks a free one (:47912)",
         &settings.listen_on, .kind = CLI_TEXT},
        {"once", NULL, "server: exit after one client", &settings.once, .kind = CLI_FLAG},
        {"time", "TIME", "approximate duration of the measurement (10s)", &attr->time_ns, .kind = CLI_TIME,
         .min = LH_PROBE_TIME_MIN, .max = LH_PROBE_TIME_MAX},
        {"rate", "RATE", "sending rate limit (none)", &attr->rate_bps, .kind = CLI_RATE},
        {"size", "SIZES",
         "UDP payload sizes; example: 1KiB,4KiB (256, 1KiB, 4KiB, 8KiB up to the path MTU)",
         &settings.sizes, .kind = CLI_TEXT},
        {"trials", "N", "trials of each size (5)", &attr->trials, .kind = CLI_COUNT, .min = 1,
         .max = LH_PROBE_TRIALS_MAX},
        {"packets", "N", "packets of a trial (by --time)", &attr->packets, .kind = CLI_COUNT, .min = 1,
         .max = LH_PROBE_PACKETS_MAX},
        {"flows", "N", "number of source ports, used in turn (1)", &attr->flows, .kind = CLI_COUNT,
         .min = 1, .max = LH_PROBE_FLOWS_MAX},
        {"link", "LINK", "emulated link, in both directions; example: rtt=25ms,loss=1e-3 (none)",
         &attr->link, .kind = CLI_LINK},
        {"wait", "TIME", "connection timeout (10s)", &settings.wait_ns, .kind = CLI_TIME,
         .min = LH_NS_PER_MS},
        {"path-file", "FILE", CLI_PATH_FILE_HELP, &attr->path_file, .kind = CLI_TEXT},
        {"insecure", NULL, "serve and measure other hosts, too: a probe is in clear text",
         &settings.insecure, .kind = CLI_FLAG},
        {"json", "FILE", "write results to FILE; - is standard output", &settings.json, .kind = CLI_TEXT},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "probe",
        .operands = "--server | HOST[:PORT]",
        .about =
            "Measures the path from here to 'longhaul probe --server' on HOST (port 47912): round trip,\n"
            "MTU, rate, loss by packet size, loss bursts, reordering.",
        .groups = {own},
        .operands_max = 1,
    };
    lh_probe_attr_init(attr);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status != CLI_PROCEED)
        return status;
    attr->loopback_only = !settings.insecure;
    if (settings.insecure)
        cli_report_insecure();
    return settings.server ? run_server(&settings, &operands) : run_client(&settings, &operands);
}
