/*
 * perf.c - longhaul perf --server, longhaul perf HOST[:PORT]: the options.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/perf/perf.h"

#include "cli/options/connection.h"
#include "cli/options/options.h"
#include "cli/perf/client.h"
#include "cli/perf/server.h"
#include "cli/results/result_file.h"
#include "cli/terminal/diagnostic.h"

#include <longhaul/units.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct settings {
    bool server, once;
    const char *listen_on, *sizes; /* NULL: not given */
    struct cli_perf_order order;
    struct cli_connection connection;
};

/* A sweep of an hour must not end in a file that cannot be written. */
static int check_json(const char *path)
{
    if (!path || !strcmp(path, "-"))
        return CLI_PROCEED;
    FILE *file = fopen(path, "a");
    if (!file)
        return cli_result_unwritable("--json ", path, errno);
    fclose(file);
    return CLI_PROCEED;
}

static int check_memory(const struct cli_perf_order *order)
{
    char size[LH_FORMAT_MAX], most[LH_FORMAT_MAX];
    for (unsigned i = 0; i < order->sizes.count; i++) {
        if (order->sizes.bytes[i] * order->in_flight <= CLI_PERF_MEMORY_MAX)
            continue;
        lh_format_size(order->sizes.bytes[i], size, sizeof size);
        lh_format_size(CLI_PERF_MEMORY_MAX, most, sizeof most);
        return cli_misused("--in-flight %" PRIu32 ": messages of %s exceed the %s that a server allocates",
                           order->in_flight, size, most);
    }
    return CLI_PROCEED;
}

static int run_server(const struct settings *settings, const struct cli_operands *operands)
{
    struct cli_address address;
    if (operands->count)
        return cli_misused("%s: unexpected argument: --server takes no host (use --listen [ADDR]:PORT)",
                           operands->text[0]);
    if (settings->order.json || settings->sizes)
        return cli_misused("--%s: option of the client", settings->order.json ? "json" : "size");
    const char *listen_on = settings->listen_on ? settings->listen_on : ":47911";
    int status = cli_address_parse("--listen", listen_on, CLI_PORT_PERF, true, &address);
    if (status != CLI_PROCEED)
        return status;
    return cli_perf_server(&address, &settings->connection.attr, settings->once);
}

static int run_client(struct settings *settings, const struct cli_operands *operands)
{
    struct cli_perf_order *order = &settings->order;
    if (!operands->count)
        return cli_misused(
            "missing HOST[:PORT] (usage: longhaul perf HOST[:PORT], or longhaul perf --server)");
    if (settings->listen_on || settings->once)
        return cli_misused("--%s: option of the server (longhaul perf --server)",
                           settings->once ? "once" : "listen");
    const char *sizes = settings->sizes ? settings->sizes : "8MiB";
    int status = cli_address_parse("HOST[:PORT]", operands->text[0], CLI_PORT_PERF, false, &order->address);
    if (status == CLI_PROCEED)
        status = cli_size_list_parse("size", sizes, CLI_PERF_MEMORY_MAX, &order->sizes);
    if (status == CLI_PROCEED)
        status = check_memory(order);
    if (status == CLI_PROCEED)
        status = check_json(order->json);
    if (status != CLI_PROCEED)
        return status;
    order->attr = settings->connection.attr;
    order->wait_ns = settings->connection.wait_ns;
    return cli_perf_client(order);
}

int cli_perf(int argc, char **argv)
{
    struct settings settings = {
        .order = {.iterations = 100, .warmup = 2, .in_flight = 1},
    };
    struct cli_perf_order *order = &settings.order;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"server", NULL, "run as the receiving server", &settings.server, .kind = CLI_FLAG},
        {"listen", "[ADDR]:PORT", "server: listening address; port 0 picks a free one (:47911)",
         &settings.listen_on, .kind = CLI_TEXT},
        {"once", NULL, "server: exit after one client", &settings.once, .kind = CLI_FLAG},
        {"size", "SIZES", "message size: 64KiB, a list 64KiB,1MiB, or doubling 64KiB..64MiB (8MiB)",
         &settings.sizes, .kind = CLI_TEXT},
        {"iterations", "N", "measured messages of each size (100)", &order->iterations, .kind = CLI_COUNT,
         .min = 1, .max = CLI_PERF_MESSAGES_MAX / 2},
        {"warmup", "N", "unmeasured messages before (2)", &order->warmup, .kind = CLI_COUNT,
         .max = CLI_PERF_MESSAGES_MAX / 2},
        {"in-flight", "N", "outstanding messages; 1 measures each by itself (1)", &order->in_flight,
         .kind = CLI_COUNT, .min = 1, .max = CLI_PERF_IN_FLIGHT_MAX},
        {"json", "FILE", "write results and all counters to FILE; - is standard output", &order->json,
         .kind = CLI_TEXT},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "perf",
        .operands = "--server | HOST[:PORT]",
        .about = "Measures bandwidth and completion time of messages to 'longhaul perf --server' on HOST "
                 "(port 47911).\n"
                 "The client's options apply to both sides.",
        .groups = {own, settings.connection.options},
        .operands_max = 1,
    };
    cli_connection_options(&settings.connection, CLI_RECEIVES | CLI_CONNECTS | CLI_PARTIAL);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status != CLI_PROCEED)
        return status;
    return settings.server ? run_server(&settings, &operands) : run_client(&settings, &operands);
}
