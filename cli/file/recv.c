/*
 * recv.c - longhaul recv --output DIR [--listen ADDR:PORT]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/recv.h"

#include "cli/file/receiver.h"
#include "cli/options/address.h"
#include "cli/options/connection.h"
#include "cli/options/listening.h"
#include "cli/options/options.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int exit_of(enum cli_reception reception)
{
    if (reception == CLI_RECEPTION_STOPPED)
        return cli_stopped();
    return reception == CLI_RECEPTION_WHOLE ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

/* Receives one file (with keep: until a signal). Invalid senders do not count: a stranger that finds the
 * port must not be able to take the receiver away from its sender. */
static int serve(struct lh_listener *listener, const struct cli_file_receiver *receiver, bool keep)
{
    for (;;) {
        struct lh_connection *connection;
        int status = cli_listening_accept(listener, LH_TIME_NEVER, &connection);
        if (status != CLI_PROCEED)
            return status;
        enum cli_reception reception = cli_file_receive(receiver, connection);
        lh_close(connection);
        if (cli_stopped())
            return cli_stopped();
        if (!keep && reception != CLI_RECEPTION_STRANGER)
            return exit_of(reception);
    }
}

/* Without --output: reports the folder before the first file. */
static void report_folder(void)
{
    char path[PATH_MAX];
    cli_note("writing files to %s (--output selects another folder)",
             getcwd(path, sizeof path) ? path : ".");
}

static mode_t current_umask(void)
{
    mode_t mask = umask(077);
    umask(mask);
    return mask;
}

static int listen_and_serve(const char *output, const struct cli_address *address,
                            const struct lh_attr *attr, struct cli_file_receiver *receiver, bool keep)
{
    struct lh_listener *listener;
    const char *folder = output ? output : ".";
    /* Before the library has threads. */
    receiver->umask = current_umask();
    receiver->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (receiver->folder < 0)
        return cli_failed("--output %s: %s", folder, strerror(errno));
    int status = CLI_EXIT_FAILED;
    if (faccessat(receiver->folder, ".", W_OK | X_OK, AT_EACCESS))
        cli_failed("--output %s: not writable: %s", folder, strerror(errno));
    else
        status = cli_listening_start(address, attr, &listener);
    if (status == CLI_PROCEED) {
        if (!output)
            report_folder();
        status = serve(listener, receiver, keep);
        lh_listener_close(listener);
    }
    close(receiver->folder);
    return status;
}

int cli_recv(int argc, char **argv)
{
    const char *output = NULL, *listen_on = ":47910";
    bool keep = false;
    struct cli_file_receiver receiver = {.folder = -1};
    struct cli_connection options;
    struct cli_address address;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"output", "DIR", "folder for received files (.)", &output, .kind = CLI_TEXT, .letter = 'o'},
        {"listen", "[ADDR]:PORT", "listening address; port 0 picks a free one (:47910)", &listen_on,
         .kind = CLI_TEXT},
        {"keep", NULL, "receive files until interrupted, instead of one", &keep, .kind = CLI_FLAG},
        {"force", NULL, "replace existing files", &receiver.force, .kind = CLI_FLAG},
        {"dotfiles", NULL, "accept names that begin with a dot, such as .profile", &receiver.dotfiles,
         .kind = CLI_FLAG},
        {"resume", NULL, "continue interrupted transfers, and keep this one resumable", &receiver.resume,
         .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "recv",
        .operands = "[--output DIR] [--listen [ADDR]:PORT]",
        .about = "Receives a file from 'longhaul send'. It is named .NAME.longhaul-partial until it is "
                 "complete,\n"
                 "on disk and verified by its digest.",
        .groups = {own, options.options},
        .operands_max = 0,
    };
    cli_connection_options(&options, CLI_RECEIVES);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = cli_address_parse("--listen", listen_on, CLI_PORT_FILES, true, &address);
    if (status != CLI_PROCEED)
        return status;
    return listen_and_serve(output, &address, &options.attr, &receiver, keep);
}
