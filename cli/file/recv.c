/*
 * recv.c - longhaul recv --output DIR [--listen ADDR:PORT]
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/recv.h"

#include "cli/file/output_folder.h"
#include "cli/file/jobs.h"
#include "cli/file/receiver.h"
#include "cli/options/address.h"
#include "cli/options/deadline.h"
#include "cli/options/connection.h"
#include "cli/options/listening.h"
#include "cli/options/options.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/stop.h"

#include <longhaul/engine.h>

#include <arpa/inet.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define JOBS_DEFAULT 8u

static int exit_of(enum cli_reception reception)
{
    if (reception == CLI_RECEPTION_STOPPED)
        return cli_stopped();
    return reception == CLI_RECEPTION_WHOLE ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

/* Receives one file. Invalid senders do not count: a stranger that finds the port must not be able to take
 * the receiver away from its sender. */
static int serve_one(struct lh_listener *listener, const struct cli_file_receiver *receiver)
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
        if (reception != CLI_RECEPTION_STRANGER)
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

/* jobs 0: one file. */
static int listen_and_serve(const struct cli_address *address, const struct lh_attr *attr,
                            const struct cli_file_receiver *receiver, uint32_t jobs, bool says_folder)
{
    struct lh_listener *listener;
    int status = cli_listening_start(address, attr, &listener);
    if (status != CLI_PROCEED)
        return status;
    if (says_folder)
        report_folder();
    status = jobs ? cli_jobs_serve(listener, receiver, jobs) : serve_one(listener, receiver);
    lh_listener_close(listener);
    return status;
}

static bool is_numeric(const char *address)
{
    struct in6_addr bytes;
    char host[CLI_ADDRESS_MAX];
    snprintf(host, sizeof host, "%s", address + (*address == '['));
    host[strcspn(host, "]")] = '\0';
    return inet_pton(AF_INET, host, &bytes) == 1 || inet_pton(AF_INET6, host, &bytes) == 1;
}

/* Where the device is known before there is a sender, all share an engine. An address that names no device of
 * this machine, such as the wildcard, is none: then each sender has one of its own. */
static int share_engine(const struct cli_address *address, struct lh_attr *attr)
{
    struct lh_engine_attr shared;
    char device[CLI_ADDRESS_MAX + 4];
    lh_engine_attr_init(&shared);
    shared.device = attr->device;
    if (!attr->device && is_numeric(address->host)) {
        snprintf(device, sizeof device, "udp:%s", address->host);
        shared.device = device;
    }
    if (!shared.device)
        return CLI_PROCEED;
    shared.channels = attr->channels;
    shared.workers = attr->workers;
    shared.coders = attr->coders;
    int code = lh_engine_create(&shared, &attr->engine);
    return code && attr->device ? cli_library_failed("--device", shared.device, code) : CLI_PROCEED;
}

static int receive_files(const char *output, const struct cli_address *address, struct lh_attr *attr,
                         struct cli_file_receiver *receiver, uint32_t jobs)
{
    const char *folder = output ? output : ".";
    char reason[CLI_OUTPUT_FOLDER_REASON_MAX];
    /* Before the library has threads. */
    receiver->umask = cli_umask();
    if (!cli_output_folder_open(folder, &receiver->folder, reason))
        return cli_failed("%s", reason);
    int status = jobs ? share_engine(address, attr) : CLI_PROCEED;
    if (status == CLI_PROCEED)
        status = listen_and_serve(address, attr, receiver, jobs, !output);
    lh_engine_destroy(attr->engine);
    close(receiver->folder);
    return status;
}

int cli_recv(int argc, char **argv)
{
    const char *output = NULL, *listen_on = ":47910";
    bool keep = false;
    uint32_t jobs = 0;
    struct cli_file_receiver receiver = {.folder = -1};
    struct cli_connection options;
    struct cli_address address;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"output", "DIR", "folder for received files (.)", &output, .kind = CLI_TEXT, .letter = 'o'},
        {"listen", "[ADDR]:PORT", "listening address; port 0 picks a free one (:47910)", &listen_on,
         .kind = CLI_TEXT},
        {"keep", NULL, "receive files until interrupted, instead of one", &keep, .kind = CLI_FLAG},
        {"jobs", "N", "with --keep: files received at once (8)", &jobs, .kind = CLI_COUNT, .min = 1,
         .max = CLI_JOBS_MAX},
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
    if (status == CLI_PROCEED && jobs && !keep)
        status = cli_misused("--jobs %u: one file is received (add --keep)", jobs);
    if (status == CLI_PROCEED && cli_has_deadline(options.attr.reliability))
        status = cli_misused(
            "--reliability %s: a file needs every byte (use a scheme without a deadline, such as "
            "ec:mds)",
            options.attr.reliability);
    if (status != CLI_PROCEED)
        return status;
    if (keep && !jobs)
        jobs = JOBS_DEFAULT;
    return receive_files(output, &address, &options.attr, &receiver, jobs);
}
