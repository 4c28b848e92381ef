/*
 * send.c - longhaul send FILE HOST[:PORT]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/send.h"

#include "cli/file/sender.h"
#include "cli/file/source.h"
#include "cli/options/address.h"
#include "cli/options/connecting.h"
#include "cli/options/connection.h"
#include "cli/options/options.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/stop.h"

static int send_to(struct cli_source *source, const struct cli_address *address,
                   const struct cli_connection *options, bool resume)
{
    struct lh_connection *connection;
    int status = cli_connect(address, &options->attr, options->wait_ns,
                             "longhaul recv --keep serves several", &connection);
    if (status != CLI_PROCEED)
        return status;
    cli_stop_at_once(false);
    status = cli_file_send_source(source, connection, resume);
    const char *warning = lh_connection_warning(connection);
    if (warning)
        cli_note("%s", warning);
    lh_close(connection);
    return status;
}

int cli_send(int argc, char **argv)
{
    bool resume = false;
    struct cli_connection options;
    struct cli_address address;
    struct cli_operands operands;
    struct cli_source source;
    const struct cli_option own[] = {
        {.name = "resume",
         .help = "continue an interrupted transfer, and keep this one resumable",
         .target = &resume,
         .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "send",
        .operands = "FILE HOST[:PORT]",
        .about = "Sends a file to 'longhaul recv' on HOST (port 47910). The file appears there once it is "
                 "complete,\n"
                 "on disk and verified by its digest.",
        .groups = {own, options.options},
        .operands_min = 2,
        .operands_max = 2,
        .operands_taken = "one FILE and one HOST (several files: one at a time, or as an archive)",
    };
    cli_connection_options(&options, CLI_CONNECTS);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = cli_address_parse("HOST[:PORT]", operands.text[1], CLI_PORT_FILES, false, &address);
    if (status != CLI_PROCEED)
        return status;
    if (!cli_source_open(&source, operands.text[0]))
        return cli_failed("%s %s", operands.text[0], source.reason);
    status = send_to(&source, &address, &options, resume);
    cli_source_close(&source);
    return status;
}
