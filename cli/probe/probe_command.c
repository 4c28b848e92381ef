/*
 * probe.c - longhaul probe --server, longhaul probe HOST[:PORT]: what the path between them is like.
 *
 * Nothing has to be cleaned up on either side but the results, which are written at the end: so a signal
 * ends the process at once, and the peer sees the connection close.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/probe/probe.h"

#include "cli/options/address.h"
#include "cli/options/listening.h"
#include "cli/options/options.h"
#include "cli/options/path_file.h"
#include "cli/options/size_list.h"
#include "cli/probe/json.h"
#include "cli/probe/report.h"
#include "cli/results/result_file.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/output.h"

#include <longhaul/probe.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct settings {
    bool server, once;
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
    return settings.server ? run_server(&settings, &operands) : run_client(&settings, &operands);
}
