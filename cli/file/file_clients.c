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
#include "cli/file/tree_delete.h"
#include "cli/file/tree_receiver.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_rules.h"
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

/* Whether entries may be deleted is the decision of a user. */
static int check_deletion(bool deletes, bool confirmed, bool dry_run)
{
    if (confirmed && !deletes)
        return cli_misused("--yes: nothing is asked (use it with --delete)");
    if (deletes && !confirmed && !dry_run && !cli_tree_question_possible())
        return cli_misused("--delete: no terminal to ask (add --yes, or --dry-run to list them)");
    return CLI_PROCEED;
}

/* ---- send ------------------------------------------------------------------------------------------ */

/* Longhaul send PATH... HOST[:PORT][:DIR] */

struct send_options {
    bool follow, xattrs, owners, dry_run, deletes, confirmed, json;
    struct cli_texts includes, excludes;
    struct cli_tree_rules rules; /* of both */
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
        .rules = &options->rules,
        .dry_run = options->dry_run,
        .xattrs = options->xattrs,
        .owners = options->owners,
        .deletes = options->deletes,
        .confirmed = options->confirmed,
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
    if (!strcmp(operands->text[0], "-") && (options->deletes || options->xattrs || options->owners))
        return cli_misused("--%s: standard input has no %s",
                           options->deletes  ? "delete"
                           : options->xattrs ? "xattrs"
                                             : "owner",
                           options->deletes ? "folder" : "such attributes");
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
        {"xattrs", NULL, "send extended attributes, with access control lists", &options.xattrs,
         .kind = CLI_FLAG},
        {"owner", NULL, "send owners, for a receiver that is root", &options.owners, .kind = CLI_FLAG},
        {"exclude", "PATTERN", "leave out what matches, unless an --include before it does",
         &options.excludes, .kind = CLI_TEXTS},
        {"include", "PATTERN", "send what matches, unless an --exclude before it does", &options.includes,
         .kind = CLI_TEXTS},
        {"delete", NULL, "delete entries in the receiver's copies of the folders that are missing here",
         &options.deletes, .kind = CLI_FLAG},
        {"yes", NULL, "with --delete: do not ask", &options.confirmed, .kind = CLI_FLAG},
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
        status = check_deletion(options.deletes, options.confirmed, options.dry_run);
    if (status == CLI_PROCEED)
        status = cli_tree_rules_read(&options.includes, &options.excludes, argc, argv, &options.rules);
    if (status == CLI_PROCEED)
        status = cli_remote_parse(operands.text[operands.count - 1],
                                  "the receiver chooses: longhaul recv --output", &options.to);
    return status == CLI_PROCEED ? send_paths(&operands, &options) : status;
}

/* ---- get ------------------------------------------------------------------------------------------- */

/* Longhaul get HOST[:PORT]:PATH... [DIR] */

struct get_options {
    bool dry_run, confirmed;
    struct cli_tree_options to;
    struct cli_connection connection;
    unsigned count;
    struct cli_remote *from; /* count of them, of one server */
    const char **paths;      /* theirs */
    const char **names;      /* that they have here */
};

/* As scp takes it: a slash, or nothing, before the first colon; or a dot at the start. */
static bool is_local(const char *text)
{
    return strchr("/.", *text) || strcspn(text, "/") < strcspn(text, ":") || !strchr(text, ':');
}

static int parse_source(const char *text, const struct cli_remote *first, struct cli_remote *source)
{
    if (is_local(text))
        return cli_misused("%s: not HOST:PATH (example: site-b:photos)", text);
    int status =
        cli_remote_parse(text, "paths are below the server's folder: longhaul serve --read", source);
    if (status != CLI_PROCEED)
        return status;
    if (!source->has_path)
        return cli_misused("%s: missing PATH (all that is served: %s:.)", text, text);
    if (strcmp(source->address.where, first->address.where) != 0)
        return cli_misused("%s: another server than %s (one of them in each command)", text,
                           first->address.where);
    return CLI_PROCEED;
}

/* The name of each here; where all that is served is asked for, any may come. */
static int take_names(struct get_options *options)
{
    options->to.names = options->names;
    options->to.names_count = options->count;
    for (unsigned i = 0; i < options->count; i++) {
        const char *path = options->from[i].path, *slash = strrchr(path, '/');
        options->paths[i] = path;
        options->names[i] = slash ? slash + 1 : path;
        if (!*path)
            options->to.names = NULL;
        for (unsigned j = 0; j < i; j++)
            if (!strcmp(options->names[i], options->names[j]))
                return cli_misused("%s: %s has the same name (get one of them into a DIR of its own)", path,
                                   options->paths[j]);
    }
    return CLI_PROCEED;
}

static int get_into(const char *folder, struct get_options *options)
{
    char reason[CLI_OUTPUT_FOLDER_REASON_MAX];
    struct lh_connection *connection;
    options->to.umask = cli_umask(); /* before the library has threads */
    if (!cli_output_folder_open("DIR", folder, &options->to.folder, reason))
        return cli_failed("%s", reason);
    const struct cli_tree_wish wish = {.paths = options->paths,
                                       .count = options->count,
                                       .dry_run = options->dry_run,
                                       .confirmed = options->confirmed};
    int status = connect_to(&options->from[0].address, &options->connection, &connection);
    if (status == CLI_PROCEED)
        status = disconnect(connection, cli_tree_get(&options->to, connection, &wish));
    close(options->to.folder);
    return status;
}

static int get_operands(const struct cli_operands *operands, struct get_options *options)
{
    const char *last = operands->text[operands->count - 1];
    bool has_folder = operands->count > 1 && is_local(last);
    int status = CLI_PROCEED;
    options->count = operands->count - has_folder;
    options->from = calloc(options->count, sizeof *options->from);
    options->paths = calloc(options->count, sizeof *options->paths);
    options->names = calloc(options->count, sizeof *options->names);
    if (!options->from || !options->paths || !options->names)
        status = cli_failed("no memory");
    for (unsigned i = 0; i < options->count && status == CLI_PROCEED; i++)
        status = parse_source(operands->text[i], &options->from[0], &options->from[i]);
    if (status == CLI_PROCEED)
        status = take_names(options);
    if (status == CLI_PROCEED)
        status = get_into(has_folder ? last : ".", options);
    free(options->from);
    free(options->paths);
    free(options->names);
    return status;
}

int cli_get(int argc, char **argv)
{
    struct get_options options = {.to = {.folder = -1, .pipe = -1, .hashes = true}};
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"force", NULL, "replace existing files", &options.to.force, .kind = CLI_FLAG},
        {"dotfiles", NULL, "with PATH '.': take names that begin with a dot, such as .profile",
         &options.to.dotfiles, .kind = CLI_FLAG},
        {"xattrs", NULL, "set extended attributes, with access control lists", &options.to.xattrs,
         .kind = CLI_FLAG},
        {"owner", NULL, "set owners, as root", &options.to.owners, .kind = CLI_FLAG},
        {"delete", NULL, "delete entries in the copies of the folders that the server does not have",
         &options.to.deletes, .kind = CLI_FLAG},
        {"yes", NULL, "with --delete: do not ask", &options.confirmed, .kind = CLI_FLAG},
        {"dry-run", NULL, "print the files that would come; nothing is written", &options.dry_run,
         .kind = CLI_FLAG},
        {"json", NULL, "print a JSON object for each event, one a line", &options.to.json,
         .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "get",
        .operands = "HOST[:PORT]:PATH... [DIR]",
        .about =
            "Gets files and folders below the folder of 'longhaul serve --read' on HOST (port 47910)\n"
            "into DIR (.). Each file appears once it is complete and verified by its digest. The same\n"
            "command continues an interrupted transfer. PATH .: all that is served.",
        .groups = {own, options.connection.options},
        .operands_min = 1,
        .operands_max = CLI_OPERANDS_MAX,
        .operands_taken = "at least one HOST:PATH",
    };
    cli_connection_options(&options.connection, CLI_RECEIVES | CLI_CONNECTS);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = check_deletion(options.to.deletes, options.confirmed, options.dry_run);
    if (status == CLI_PROCEED)
        status = cli_owner_check(options.to.owners);
    if (status == CLI_PROCEED)
        status = cli_file_check(&options.connection, NULL);
    return status == CLI_PROCEED ? get_operands(&operands, &options) : status;
}
