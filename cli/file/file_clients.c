/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/file_commands.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <longhaul/connection.h>

#include "cli/file/file_names.h"
#include "cli/file/tree_receiver.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_sender.h"
#include "cli/file/tree_store.h"
#include "cli/file/tree_walk.h"
#include "cli/options/cli_options.h"
#include "cli/options/option_values.h"
#include "cli/options/peer_address.h"
#include "cli/terminal/terminal.h"

/* ---- connection ------------------------------------------------------------------------------------ */

static int connect_to(const struct cli_address *address, const struct cli_connection *options,
                      struct lh_connection **connection)
{
    int status = cli_connect(address, &options->attr, options->wait_ns,
                             "longhaul recv --keep serves several", connection);
    if (status == CLI_PROCEED)
        cli_stop_at_once(false);
    return status;
}

static int disconnect(struct lh_connection *connection, int status)
{
    const char *warning = lh_connection_warning(connection);
    if (warning)
        cli_note("%s", warning);
    lh_close(connection);
    return status;
}

/* ---- send ------------------------------------------------------------------------------------------ */

/* Longhaul send PATH... HOST[:PORT][:DIR] */

struct send_options {
    bool follow, dry_run, json;
    struct cli_connection connection;
    struct cli_remote to;
};

/* Two that would have the same name at the receiver. */
static int check_names(const struct cli_tree_operand *operands, unsigned count)
{
    for (unsigned i = 1; i < count; i++)
        for (unsigned j = 0; j < i; j++)
            if (*operands[i].name && !strcmp(operands[i].name, operands[j].name))
                return cli_misused("%s%s: %s%s has the same name (send one of them to a DIR of its own)",
                                   operands[i].prefix, operands[i].name, operands[j].prefix,
                                   operands[j].name);
    return CLI_PROCEED;
}

static int send_operands(const struct cli_tree_operand *operands, unsigned count,
                         const struct send_options *options)
{
    struct lh_connection *connection;
    const struct cli_tree_sending sending = {
        .operands = operands,
        .count = count,
        .folder = options->to.path,
        .follow = options->follow,
        .dry_run = options->dry_run,
        .json = options->json,
    };
    int status = check_names(operands, count);
    if (status == CLI_PROCEED)
        status = connect_to(&options->to.address, &options->connection, &connection);
    return status == CLI_PROCEED ? disconnect(connection, cli_tree_send(&sending, connection)) : status;
}

static int send_trees(const char *const *paths, unsigned count, const struct send_options *options)
{
    struct cli_tree_operand *operands = calloc(count, sizeof *operands);
    int status = operands ? CLI_PROCEED : cli_failed("no memory");
    unsigned opened = 0;
    while (status == CLI_PROCEED && opened < count) {
        if (cli_tree_operand_open(&operands[opened], paths[opened]))
            opened++;
        else
            status = cli_failed("%s %s", paths[opened], operands[opened].reason);
    }
    if (status == CLI_PROCEED)
        status = send_operands(operands, count, options);
    while (opened)
        cli_tree_operand_close(&operands[--opened]);
    free(operands);
    return status;
}

/* A PATH alone that is a link to a file stands for the file. */
static bool is_link_to_file(const char *path)
{
    struct stat status;
    return !lstat(path, &status) && S_ISLNK(status.st_mode) && !stat(path, &status) &&
           S_ISREG(status.st_mode);
}

static int send_paths(const struct cli_operands *operands, struct send_options *options)
{
    unsigned paths = operands->count - 1;
    for (unsigned i = 0; i < paths; i++)
        if (!strcmp(operands->text[i], "-") && paths > 1)
            return cli_misused("-: standard input is sent alone (a file of that name: ./-)");
    if (!strcmp(operands->text[0], "-"))
        return options->dry_run ? cli_misused("--dry-run: standard input is not known before it is read")
                                : send_operands(NULL, 0, options);
    options->follow = options->follow || (paths == 1 && is_link_to_file(operands->text[0]));
    return send_trees(operands->text, paths, options);
}

int cli_send(int argc, char **argv)
{
    struct send_options options = {.follow = false};
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"follow", NULL, "send what symbolic links lead to, not the links", &options.follow,
         .kind = CLI_FLAG},
        {"dry-run", NULL, "print the files that would be sent; nothing is written", &options.dry_run,
         .kind = CLI_FLAG},
        {"json", NULL, "print a JSON object for each event, one a line", &options.json, .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "send",
        .operands = "PATH... HOST[:PORT][:DIR]",
        .about = "Sends files and folders to 'longhaul recv' or 'longhaul serve' on HOST (port 47910),\n"
                 "into DIR below its folder. Each file appears there once it is complete and verified by\n"
                 "its digest. The same command continues an interrupted transfer. PATH -: standard input,\n"
                 "as the file DIR, or to 'longhaul recv -o -'.",
        .groups = {own, options.connection.options},
        .operands_min = 2,
        .operands_max = CLI_OPERANDS_MAX,
        .operands_taken = "at least one PATH and one HOST",
    };
    cli_connection_options(&options.connection, CLI_CONNECTS);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = cli_connection_secure(&options.connection);
    if (status == CLI_PROCEED)
        status = cli_remote_parse(operands.text[operands.count - 1],
                                  "the receiver chooses: longhaul recv --output", &options.to);
    return status == CLI_PROCEED ? send_paths(&operands, &options) : status;
}
