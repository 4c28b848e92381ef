/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/file_commands.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/connection.h>
#include <longhaul/engine.h>
#include <longhaul/error.h>

#include "cli/file/file_blocks.h"
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

/* ---- one client ------------------------------------------------------------------------------------ */

/* What clients may do here. */
struct service {
    struct cli_tree_options to; /* what they send; folder and pipe -1: nothing */
    int from;                   /* what they may get, an open folder; -1: nothing */
};

/* Of a client that has made no valid beginning, which is no transfer. */
#define STRANGER (-2)

/* The first message of a client: it says what the client is about. */
struct opening {
    uint8_t *bytes;
    size_t count;
    struct cli_tree_record record;
};

static int await_opening(struct lh_connection *connection, struct opening *opening)
{
    struct lh_request *request;
    struct lh_result result = {.error = 0};
    struct lh_path_view path;
    lh_time rtt_ns = lh_connection_path(connection, &path) ? 0 : path.rtt_ns;
    int code = lh_recv(connection, opening->bytes, CLI_TREE_MESSAGE_MAX, NULL, &request);
    if (code)
        return code;
    code = cli_wait(request, cli_prompt_timeout(rtt_ns), &result);
    lh_request_free(request);
    if (!code)
        code = result.error == -LH_ETRUNCATED ? -LH_EPROTOCOL : result.error;
    opening->count = (size_t)result.bytes;
    return code ? code : cli_tree_first(opening->bytes, opening->count, &opening->record);
}

/* A peer that is lost does not receive it: no error. */
static void send_refusal(struct lh_connection *connection, const char *reason)
{
    uint8_t bytes[CLI_TREE_TEXT_MAX + 64];
    struct lh_request *request;
    const struct cli_tree_record verdict = {
        .kind = CLI_TREE_VERDICT, .rest = reason, .rest_bytes = strnlen(reason, CLI_TREE_TEXT_MAX)};
    size_t count = cli_tree_encode(&verdict, bytes, sizeof bytes);
    if (lh_send(connection, bytes, count, NULL, &request))
        return;
    cli_wait(request, CLI_ABORT_TIMEOUT_NS, NULL);
    lh_request_free(request);
}

static int refuse(struct lh_connection *connection, const char *reason)
{
    cli_note("%s: %s", lh_peer_name(connection), reason);
    send_refusal(connection, reason);
    return STRANGER;
}

static int refuse_stranger(struct lh_connection *connection, int code)
{
    char reason[CLI_TREE_TEXT_MAX + 1];
    if (cli_stopped())
        return cli_stopped();
    if (code == -LH_EVERSION)
        snprintf(reason, sizeof reason, "version %d of the file protocol required", CLI_TREE_VERSION);
    else
        snprintf(reason, sizeof reason, "%.200s",
                 code == -LH_ETIMEDOUT ? "no file offered" : cli_file_strerror(connection, code, "sender"));
    bool blocked = lh_connection_error(connection) == -LH_EPATH;
    cli_note("%s: %s%s", lh_peer_name(connection), blocked ? "" : "not a valid sender: ", reason);
    send_refusal(connection, reason);
    return STRANGER;
}

/* The paths of a message of GET, opened. 0; -LH_EPROTOCOL; -LH_ERANGE: too many. */
static int open_wanted(const struct service *service, const struct opening *opening,
                       struct cli_tree_operand *operands, unsigned *count)
{
    struct cli_tree_record record;
    int64_t used = cli_tree_decode(opening->bytes, opening->count, &record);
    for (size_t at = (size_t)used; at < opening->count; at += (size_t)used) { /* each WANT */
        used = cli_tree_decode(opening->bytes + at, opening->count - at, &record);
        if (used < 0 || record.kind != CLI_TREE_WANT)
            return -LH_EPROTOCOL;
        if (*count == CLI_OPERANDS_MAX)
            return -LH_ERANGE;
        cli_tree_operand_beneath(&operands[(*count)++], service->from, record.path, record.path_bytes);
    }
    return *count ? 0 : -LH_EPROTOCOL;
}

static int send_wanted(const struct service *service, struct lh_connection *connection,
                       const struct opening *opening)
{
    unsigned count = 0;
    struct cli_tree_operand *operands = calloc(CLI_OPERANDS_MAX, sizeof *operands);
    if (!operands)
        return cli_failed("no memory");
    int code = open_wanted(service, opening, operands, &count);
    const struct cli_tree_sending sending = {
        .operands = operands,
        .count = count,
        .folder = "",
        .dry_run = opening->record.flags & CLI_TREE_DRY_RUN,
        .deletes = opening->record.flags & CLI_TREE_DELETES,
        .xattrs = opening->record.flags & CLI_TREE_XATTRS,
        .owners = opening->record.flags & CLI_TREE_OWNERS,
        .asked = true,
        .json = service->to.json,
        .names_peer = service->to.names_peer,
        .crowded = service->to.crowded,
    };
    int status = code == -LH_ERANGE ? refuse(connection, "more than 256 paths")
                 : code             ? refuse_stranger(connection, code)
                                    : cli_tree_send(&sending, connection);
    while (count)
        cli_tree_operand_close(&operands[--count]);
    free(operands);
    return status;
}

static int obey(const struct service *service, struct lh_connection *connection,
                const struct opening *opening)
{
    bool gets = opening->record.kind == CLI_TREE_GET;
    if (gets && service->from < 0)
        return refuse(connection, "nothing is served here (longhaul serve --read DIR)");
    if (gets && opening->record.flags & CLI_TREE_XATTRS && !service->to.xattrs)
        return refuse(connection, "no extended attributes are served here (longhaul serve --xattrs)");
    if (!gets && service->to.folder < 0 && service->to.pipe < 0)
        return refuse(connection, "nothing is taken here (longhaul serve --write DIR)");
    return gets ? send_wanted(service, connection, opening)
                : cli_tree_receive(&service->to, connection, opening->bytes, opening->count);
}

/* A transfer from its first message on. The exit status, or STRANGER. Does not close the connection. */
static int serve_client(const struct service *service, struct lh_connection *connection)
{
    struct opening opening = {.bytes = malloc(CLI_TREE_MESSAGE_MAX)};
    if (!opening.bytes)
        return cli_failed("no memory");
    int code = await_opening(connection, &opening);
    int status = code ? refuse_stranger(connection, code) : obey(service, connection, &opening);
    free(opening.bytes);
    return status;
}

/* ---- jobs ------------------------------------------------------------------------------------------ */

/* Files of several senders at once: each connection is served by a thread of its own. */

#define CLI_JOBS_MAX 64u

#define FULL_PAUSE_NS (5 * 1000000L) /* looks for a place this often */

struct job {
    const struct service *service;
    struct lh_connection *connection; /* NULL: the place is free */
    pthread_t thread;
    _Atomic bool ended; /* the thread does nothing more */
};

static void *run(void *argument)
{
    struct job *job = argument;
    serve_client(job->service, job->connection);
    lh_close(job->connection);
    atomic_store(&job->ended, true);
    return NULL;
}

/* Frees the places of those that have ended. Returns how many have not. */
static unsigned reap(struct job *jobs, unsigned count)
{
    unsigned running = 0;
    for (unsigned i = 0; i < count; i++) {
        if (jobs[i].connection && atomic_load(&jobs[i].ended)) {
            pthread_join(jobs[i].thread, NULL);
            jobs[i].connection = NULL;
        }
        running += jobs[i].connection != NULL;
    }
    return running;
}

static int start(struct job *job, const struct service *service, struct lh_connection *connection)
{
    *job = (struct job){.service = service, .connection = connection};
    int failed = pthread_create(&job->thread, NULL, run, job);
    if (!failed)
        return CLI_PROCEED;
    cli_failed("cannot start a thread for %s: %s", lh_peer_name(connection), strerror(failed));
    lh_close(connection);
    job->connection = NULL;
    return CLI_PROCEED; /* the next one may find a thread */
}

/* Looks for the next sender, and for a place. Without a transfer a signal ends the process at once. */
static int serve_next(struct lh_listener *listener, const struct service *service, struct job *jobs,
                      unsigned count, unsigned running)
{
    struct lh_connection *connection;
    if (running == count) {
        nanosleep(&(struct timespec){.tv_nsec = FULL_PAUSE_NS}, NULL);
        return CLI_PROCEED;
    }
    int status = running ? cli_listening_look(listener, &connection)
                         : cli_listening_accept(listener, LH_TIME_NEVER, &connection);
    if (status != CLI_PROCEED || !connection)
        return status;
    while (jobs->connection)
        jobs++;
    return start(jobs, service, connection);
}

/* Receives files until a signal, up to `jobs` at once; further senders wait in the listener. Returns the exit
 * status, when the last file has ended. */
static int cli_jobs_serve(struct lh_listener *listener, const struct service *service, unsigned count)
{
    struct job jobs[CLI_JOBS_MAX] = {0};
    _Atomic bool crowded = false;
    struct service shared = *service;
    int status = CLI_PROCEED;
    shared.to.crowded = &crowded;
    while (status == CLI_PROCEED && !cli_stopped()) { /* each client, and each look for a place */
        unsigned running = reap(jobs, count);
        atomic_store(&crowded, running == count);
        status = serve_next(listener, &shared, jobs, count, running);
    }
    while (reap(jobs, count) > 0)
        nanosleep(&(struct timespec){.tv_nsec = FULL_PAUSE_NS}, NULL);
    return cli_stopped() ? cli_stopped() : status;
}

/* ---- recv ------------------------------------------------------------------------------------------ */

/* Longhaul recv --output DIR [--listen ADDR:PORT] */

#define JOBS_DEFAULT 8u

int cli_file_check(struct cli_connection *options, const char *client)
{
    const char *reliability = options->attr.reliability;
    if (!cli_has_deadline(reliability))
        return client ? cli_connection_secure_listener(options, client) : cli_connection_secure(options);
    return cli_misused(
        "--reliability %s: a file needs every byte (use a scheme without a deadline, such as "
        "ec:mds)",
        reliability);
}

int cli_owner_check(bool owners)
{
    return owners && geteuid() ? cli_misused("--owner: only root gives files to other users") : CLI_PROCEED;
}

/* Receives one file. Invalid senders do not count: a stranger that finds the port must not be able to take
 * the receiver away from its sender. */
static int serve_one(struct lh_listener *listener, const struct service *service)
{
    for (;;) {
        struct lh_connection *connection;
        int status = cli_listening_accept(listener, LH_TIME_NEVER, &connection);
        if (status != CLI_PROCEED)
            return status;
        status = serve_client(service, connection);
        lh_close(connection);
        if (cli_stopped())
            return cli_stopped();
        if (status != STRANGER)
            return status;
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
                            const struct service *service, uint32_t jobs, bool says_folder)
{
    struct lh_listener *listener;
    int status = cli_listening_start(address, attr, &listener);
    if (status != CLI_PROCEED)
        return status;
    if (says_folder)
        report_folder();
    status = jobs ? cli_jobs_serve(listener, service, jobs) : serve_one(listener, service);
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

/* For data alone: what is printed goes to standard error. */
static int take_standard_output(void)
{
    int pipe = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return pipe;
}

static int receive_files(const char *output, const struct cli_address *address, struct lh_attr *attr,
                         struct service *service, uint32_t jobs)
{
    const char *folder = output ? output : ".";
    char reason[CLI_OUTPUT_FOLDER_REASON_MAX];
    /* Before the library has threads. */
    service->to.umask = cli_umask();
    if (!strcmp(folder, "-"))
        service->to.pipe = take_standard_output();
    else if (!cli_output_folder_open("--output", folder, &service->to.folder, reason))
        return cli_failed("%s", reason);
    int status = jobs ? share_engine(address, attr) : CLI_PROCEED;
    if (status == CLI_PROCEED)
        status = listen_and_serve(address, attr, service, jobs, !output);
    lh_engine_destroy(attr->engine);
    close(service->to.folder >= 0 ? service->to.folder : service->to.pipe);
    return status;
}

int cli_recv(int argc, char **argv)
{
    const char *output = NULL, *listen_on = ":47910";
    bool keep = false;
    uint32_t jobs = 0;
    struct service service = {.to = {.folder = -1, .pipe = -1, .hashes = true}, .from = -1};
    struct cli_connection options;
    struct cli_address address;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"output", "DIR", "folder for received files (.); -: standard output", &output, .kind = CLI_TEXT,
         .letter = 'o'},
        {"listen", "[ADDR]:PORT", "listening address; port 0 picks a free one (:47910)", &listen_on,
         .kind = CLI_TEXT},
        {"keep", NULL, "receive until interrupted, instead of one transfer", &keep, .kind = CLI_FLAG},
        {"jobs", "N", "with --keep: transfers at once (8)", &jobs, .kind = CLI_COUNT, .min = 1,
         .max = CLI_JOBS_MAX},
        {"force", NULL, "replace existing files", &service.to.force, .kind = CLI_FLAG},
        {"allow-delete", NULL, "let senders delete entries that they do not have: send --delete",
         &service.to.deletes, .kind = CLI_FLAG},
        {"dotfiles", NULL, "accept names that begin with a dot, such as .profile", &service.to.dotfiles,
         .kind = CLI_FLAG},
        {"xattrs", NULL, "take extended attributes: send --xattrs", &service.to.xattrs, .kind = CLI_FLAG},
        {"owner", NULL, "take owners, as root: send --owner", &service.to.owners, .kind = CLI_FLAG},
        {"json", NULL, "print a JSON object for each event, one a line", &service.to.json,
         .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "recv",
        .operands = "[--output DIR] [--listen [ADDR]:PORT]",
        .about = "Receives files and folders from 'longhaul send'. Each file gets its name when it is "
                 "complete\n"
                 "and verified by its digest.",
        .groups = {own, options.options},
        .operands_max = 0,
    };
    cli_connection_options(&options, CLI_RECEIVES);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = cli_owner_check(service.to.owners);
    if (status == CLI_PROCEED)
        status = cli_address_parse("--listen", listen_on, CLI_PORT_FILES, true, &address);
    if (status == CLI_PROCEED && jobs && !keep)
        status = cli_misused("--jobs %u: one file is received (add --keep)", jobs);
    if (status == CLI_PROCEED && keep && output && !strcmp(output, "-"))
        status = cli_misused("--output -: standard output takes one transfer (omit --keep)");
    if (status == CLI_PROCEED) /* last: it may print a new code */
        status = cli_file_check(&options, keep ? NULL : "send PATH... HOST");
    if (status == CLI_PROCEED && keep && options.security.code)
        status = cli_misused("--keep: a code is for one connection (use --key-file, or omit --keep)");
    if (status != CLI_PROCEED)
        return status;
    if (keep && !jobs)
        jobs = JOBS_DEFAULT;
    service.to.names_peer = keep && service.to.json;
    return receive_files(output, &address, &options.attr, &service, jobs);
}

/* ---- serve ----------------------------------------------------------------------------------------- */

/* Longhaul serve --read DIR --write DIR */

/* Folders that clients have open: each may name 256, and lead into 512 more. */
#define FILES_WANTED 65536u

/* Where the system lets it. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= FILES_WANTED)
        return;
    limit.rlim_cur = limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Whoever may not read a folder learns no hashes of what is in it: they could be compared with guesses. */
static bool is_readable(const struct service *service)
{
    struct stat from, to;
    return service->from >= 0 && service->to.folder >= 0 && !fstat(service->from, &from) &&
           !fstat(service->to.folder, &to) && from.st_dev == to.st_dev && from.st_ino == to.st_ino;
}

static int open_folders(struct service *service, const char *from, const char *to)
{
    char reason[CLI_OUTPUT_FOLDER_REASON_MAX];
    if (from) {
        service->from = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (service->from < 0)
            return cli_failed("--read %s: %s", from, strerror(errno));
    }
    if (to && !cli_output_folder_open("--write", to, &service->to.folder, reason))
        return cli_failed("%s", reason);
    service->to.hashes = is_readable(service);
    return CLI_PROCEED;
}

static int serve(const char *from, const char *to, const struct cli_address *address, struct lh_attr *attr,
                 struct service *service, uint32_t jobs)
{
    service->to.umask = cli_umask(); /* before the library has threads */
    service->to.names_peer = true;
    raise_file_limit();
    int status = open_folders(service, from, to);
    if (status == CLI_PROCEED)
        status = share_engine(address, attr);
    if (status == CLI_PROCEED)
        status = listen_and_serve(address, attr, service, jobs, false);
    lh_engine_destroy(attr->engine);
    if (service->from >= 0)
        close(service->from);
    if (service->to.folder >= 0)
        close(service->to.folder);
    return status;
}

int cli_serve(int argc, char **argv)
{
    const char *from = NULL, *to = NULL, *listen_on = ":47910";
    uint32_t jobs = JOBS_DEFAULT;
    struct service service = {.to = {.folder = -1, .pipe = -1}, .from = -1};
    struct cli_connection options;
    struct cli_address address;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"read", "DIR", "folder that 'longhaul get' reads (none)", &from, .kind = CLI_TEXT},
        {"write", "DIR", "folder that 'longhaul send' writes to (none)", &to, .kind = CLI_TEXT},
        {"listen", "[ADDR]:PORT", "listening address; port 0 picks a free one (:47910)", &listen_on,
         .kind = CLI_TEXT},
        {"jobs", "N", "transfers at once; further clients wait (8)", &jobs, .kind = CLI_COUNT, .min = 1,
         .max = CLI_JOBS_MAX},
        {"force", NULL, "replace existing files", &service.to.force, .kind = CLI_FLAG},
        {"allow-delete", NULL, "let senders delete entries that they do not have: send --delete",
         &service.to.deletes, .kind = CLI_FLAG},
        {"dotfiles", NULL, "take names that begin with a dot, such as .profile", &service.to.dotfiles,
         .kind = CLI_FLAG},
        {"xattrs", NULL, "take and serve extended attributes: send --xattrs, get --xattrs",
         &service.to.xattrs, .kind = CLI_FLAG},
        {"owner", NULL, "take owners, as root: send --owner", &service.to.owners, .kind = CLI_FLAG},
        {"json", NULL, "print a JSON object for each event, one a line", &service.to.json,
         .kind = CLI_FLAG},
        {.name = NULL},
    };
    const struct cli_usage usage = {
        .command = "serve",
        .operands = "[--read DIR] [--write DIR] [--listen [ADDR]:PORT]",
        .about = "Serves files until a signal: 'longhaul get' reads those below one folder, 'longhaul "
                 "send'\nwrites below the other. Nothing outside the folders is read or written.",
        .groups = {own, options.options},
        .operands_max = 0,
    };
    cli_connection_options(&options, CLI_RECEIVES);
    int status = cli_options_parse(&usage, argc, argv, &operands);
    if (status == CLI_PROCEED)
        status = cli_owner_check(service.to.owners);
    if (status == CLI_PROCEED)
        status = cli_address_parse("--listen", listen_on, CLI_PORT_FILES, true, &address);
    if (status == CLI_PROCEED && !from && !to)
        status = cli_misused("nothing to serve (add --read DIR, --write DIR or both)");
    if (status == CLI_PROCEED)
        status = cli_file_check(&options, NULL);
    if (status == CLI_PROCEED && options.security.code)
        status = cli_misused("serve: a code is for one connection (use --key-file)");
    return status == CLI_PROCEED ? serve(from, to, &address, &options.attr, &service, jobs) : status;
}
