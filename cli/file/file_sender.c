/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/file_transfer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/connection.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_messages.h"
#include "cli/file/file_names.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_sender.h"
#include "cli/file/tree_walk.h"
#include "cli/options/cli_options.h"
#include "cli/options/option_values.h"
#include "cli/options/peer_address.h"
#include "cli/terminal/terminal.h"

/* ---- source ---------------------------------------------------------------------------------------- */

static bool give_reason(struct cli_source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool give_reason(struct cli_source *source, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(source->reason, sizeof source->reason, format, arguments);
    va_end(arguments);
    return false;
}

static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a folder";
    if (S_ISFIFO(mode))
        return "a pipe";
    return S_ISSOCK(mode) ? "a socket" : "a device";
}

static bool check_status(struct cli_source *source, const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return give_reason(source, "is %s (only regular files can be sent%s)", kind_of(status->st_mode),
                           S_ISDIR(status->st_mode) ? "; a folder as an archive: tar"
                                                    : "; write it to a file first");
    const char *wrong = cli_file_name_wrong(source->name, strlen(source->name));
    if (wrong)
        return give_reason(source, "cannot be sent: the name %s", wrong);
    source->size_bytes = (uint64_t)status->st_size;
    source->mode = status->st_mode & 0777;
    source->written = status->st_mtim;
    /* Those of /proc and /sys report a size of 0. */
    char first;
    if (!source->size_bytes && cli_read_at(source->file, &first, 1, 0) > 0)
        return give_reason(source, "has no known size (send a copy)");
    return true;
}

bool cli_source_open(struct cli_source *source, const char *path)
{
    struct stat status;
    const char *slash = strrchr(path, '/');
    *source = (struct cli_source){.path = path, .name = slash ? slash + 1 : path, .file = -1};
    if (!strcmp(path, "-"))
        return give_reason(
            source, "cannot be sent: standard input has no size (write it to a file first; a file of "
                    "that name: ./-)");
    /* Not blocking: a pipe without a writer would keep us here. */
    source->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (source->file < 0)
        return give_reason(source, "cannot be opened: %s", strerror(errno));
    if (fstat(source->file, &status)) {
        give_reason(source, "cannot be read: %s", strerror(errno));
    } else if (check_status(source, &status)) {
        posix_fadvise(source->file, 0, 0, POSIX_FADV_SEQUENTIAL);
        return true;
    }
    cli_source_close(source);
    return false;
}

void cli_source_close(struct cli_source *source)
{
    if (source->file >= 0)
        close(source->file);
    source->file = -1;
}

bool cli_source_read(struct cli_source *source, uint64_t offset, void *data, size_t bytes)
{
    int64_t got = cli_read_at(source->file, data, bytes, offset);
    if (got < 0)
        return give_reason(source, "cannot be read: %s", strerror((int)-got));
    if ((uint64_t)got < bytes)
        return give_reason(source, "shrank during the transfer");
    return true;
}

bool cli_source_unchanged(struct cli_source *source)
{
    struct stat status;
    if (fstat(source->file, &status))
        return give_reason(source, "cannot be read: %s", strerror(errno));
    if ((uint64_t)status.st_size == source->size_bytes && status.st_mtim.tv_sec == source->written.tv_sec &&
        status.st_mtim.tv_nsec == source->written.tv_nsec)
        return true;
    return give_reason(source, "changed during the transfer");
}

/* ---- sender ---------------------------------------------------------------------------------------- */

/* Sends one file over a connection, until the peer confirms that it is in place. */

#define CONTINUE " (longhaul recv --resume and send --resume continue with the data that the receiver kept)"

/* One file being sent. Steps return false when the transfer ends, with the reason set. */
struct delivery {
    struct cli_source *source;
    struct lh_connection *connection;
    struct cli_block_ring ring;
    struct cli_digest digest;
    struct cli_progress progress;
    struct cli_file_io offer_io, answer_io, start_io, digest_io, verdict_io, abort_io;
    uint64_t resumed_bytes;
    uint64_t read_bytes;  /* read and in flight */
    uint64_t taken_bytes; /* acknowledged */
    lh_time started_ns;
    struct lh_bottleneck_report bottleneck; /* when all blocks were acknowledged */
    bool awaited;                           /* START is out: the receiver waits for blocks */
    bool lost; /* and what came is there, as the receiver could not discard it */
    char reason[CLI_FILE_TEXT_MAX + 1];
};

static bool because(struct delivery *d, const char *reason)
{
    snprintf(d->reason, sizeof d->reason, "%s", reason);
    return false;
}

/* A refusal by the receiver. */
static bool refused(struct delivery *d, struct cli_file_message *message)
{
    cli_text_clean(message->text, strlen(message->text));
    d->awaited = false;
    snprintf(d->reason, sizeof d->reason, "refused by the receiver: %.*s", CLI_FILE_TEXT_MAX - 26,
             message->text);
    return false;
}

/* A library call or a wait ended in this code. */
static bool connection_failed(struct delivery *d, int code)
{
    struct cli_file_message verdict;
    if (code == -LH_ECANCELED && cli_stopped())
        return because(d, "interrupted by the user of the sender");
    /* The receiver may have sent a reason before it closed. */
    if (d->awaited && !cli_file_await(&d->verdict_io, 0, CLI_FILE_VERDICT, &verdict) &&
        verdict.flags & CLI_FILE_NO)
        return refused(d, &verdict);
    d->lost = d->awaited && (code == -LH_EPEER || code == -LH_EPATH);
    return because(d, cli_file_strerror(d->connection, code, "receiver"));
}

static bool source_failed(struct delivery *d)
{
    snprintf(d->reason, sizeof d->reason, "the file %s", d->source->reason);
    return false;
}

static bool offer(struct delivery *d, bool resume)
{
    struct cli_file_message message = {
        .kind = CLI_FILE_OFFER,
        .flags = resume ? CLI_FILE_RESUME : 0,
        .size_bytes = d->source->size_bytes,
    };
    const struct cli_file_attributes attributes =
        cli_file_attributes_of(d->source->mode, d->source->written);
    snprintf(message.text, sizeof message.text, "%s", d->source->name);
    cli_file_attributes_encode(&attributes, message.digest);
    int code = cli_file_expect(d->connection, &d->answer_io);
    if (!code)
        code = cli_file_expect(d->connection, &d->verdict_io);
    if (!code)
        code = cli_file_send(d->connection, &d->offer_io, &message);
    return code ? connection_failed(d, code) : true;
}

static bool take_answer(struct delivery *d, struct cli_file_message *answer)
{
    lh_time timeout_ns = cli_disk_timeout(d->source->size_bytes);
    int code = cli_file_await(&d->answer_io, timeout_ns, CLI_FILE_ANSWER, answer);
    if (code)
        return connection_failed(d, code);
    if (answer->flags & CLI_FILE_NO)
        return refused(d, answer);
    if (answer->offset_bytes > d->source->size_bytes || answer->offset_bytes % CLI_BLOCK_BYTES)
        return connection_failed(d, -LH_EPROTOCOL);
    return true;
}

/* Compares the receiver's unfinished file with the start of this one. */
static bool compare_start(struct delivery *d, const struct cli_file_message *answer, bool *same)
{
    uint8_t digest[CLI_DIGEST_BYTES], *block = cli_block_ring_head(&d->ring);
    for (uint64_t offset = 0; offset < answer->offset_bytes; offset += CLI_BLOCK_BYTES) {
        if (cli_stopped())
            return connection_failed(d, -LH_ECANCELED);
        if (!cli_source_read(d->source, offset, block, CLI_BLOCK_BYTES))
            return source_failed(d);
        cli_digest_add(&d->digest, block, CLI_BLOCK_BYTES);
    }
    cli_digest_get(&d->digest, digest);
    *same = !memcmp(digest, answer->digest, sizeof digest);
    return true;
}

static bool start(struct delivery *d, const struct cli_file_message *answer)
{
    bool same = false;
    struct cli_file_message message = {.kind = CLI_FILE_START};
    int code = cli_block_ring_open(&d->ring, d->connection);
    if (!code)
        code = cli_digest_open(&d->digest);
    if (code)
        return connection_failed(d, code);
    if (answer->offset_bytes && !compare_start(d, answer, &same))
        return false;
    if (same)
        message.offset_bytes = answer->offset_bytes;
    else
        cli_digest_reset(&d->digest);
    d->resumed_bytes = d->read_bytes = d->taken_bytes = message.offset_bytes;
    d->started_ns = cli_now();
    code = cli_file_send(d->connection, &d->start_io, &message);
    d->awaited = !code;
    return code ? connection_failed(d, code) : true;
}

static bool send_block(struct delivery *d)
{
    uint64_t rest = d->source->size_bytes - d->read_bytes;
    size_t bytes = rest < CLI_BLOCK_BYTES ? (size_t)rest : CLI_BLOCK_BYTES;
    uint8_t *block = cli_block_ring_head(&d->ring);
    if (!cli_source_read(d->source, d->read_bytes, block, bytes))
        return source_failed(d);
    cli_digest_add(&d->digest, block, bytes);
    int code = cli_block_ring_send(&d->ring, bytes);
    if (code)
        return connection_failed(d, code);
    d->read_bytes += bytes;
    return true;
}

static bool receiver_refused(struct delivery *d)
{
    struct cli_file_message verdict;
    /* A positive verdict before the end is a violation, detected when the verdict is due. */
    return !cli_file_await(&d->verdict_io, 0, CLI_FILE_VERDICT, &verdict) && verdict.flags & CLI_FILE_NO &&
           !refused(d, &verdict);
}

/* Waits until the oldest block is acknowledged. */
static bool retire_block(struct delivery *d)
{
    struct lh_result result;
    lh_time since = cli_now();
    int code;
    while ((code = cli_block_ring_wait(&d->ring, CLI_SLICE_NS, &result)) == -LH_ETIMEDOUT) {
        cli_progress_show(&d->progress, d->taken_bytes);
        if (cli_stopped())
            return connection_failed(d, -LH_ECANCELED);
        if (receiver_refused(d))
            return false;
        if (cli_now() - since > CLI_DISK_TIMEOUT_NS)
            return connection_failed(d, -LH_ETIMEDOUT);
    }
    if (!code)
        code = result.error;
    if (code)
        return connection_failed(d, code);
    d->taken_bytes += result.bytes;
    cli_block_ring_release(&d->ring);
    return true;
}

/* One step: sends a block while the ring has capacity, else waits for the oldest. */
static bool move(struct delivery *d)
{
    if (cli_stopped())
        return connection_failed(d, -LH_ECANCELED);
    cli_progress_show(&d->progress, d->taken_bytes);
    if (d->read_bytes < d->source->size_bytes && !cli_block_ring_full(&d->ring))
        return send_block(d);
    return retire_block(d);
}

static bool send_digest(struct delivery *d)
{
    struct cli_file_message message = {.kind = CLI_FILE_DIGEST, .size_bytes = d->source->size_bytes};
    if (!cli_source_unchanged(d->source))
        return source_failed(d);
    cli_digest_get(&d->digest, message.digest);
    int code = cli_file_send(d->connection, &d->digest_io, &message);
    return code ? connection_failed(d, code) : true;
}

static bool send_blocks(struct delivery *d)
{
    cli_progress_start(&d->progress, d->source->name, d->source->size_bytes, d->read_bytes);
    while (d->read_bytes < d->source->size_bytes)
        if (!move(d))
            return false;
    /* The digest follows at once; blocks are still in flight. */
    if (!send_digest(d))
        return false;
    while (!cli_block_ring_empty(&d->ring))
        if (!move(d))
            return false;
    /* Before the wait for the receiver's disk. */
    if (lh_connection_bottleneck(d->connection, &d->bottleneck) != 0)
        d->bottleneck.bottleneck = LH_BOTTLENECK_NONE;
    return true;
}

static bool take_verdict(struct delivery *d)
{
    struct cli_file_message verdict;
    lh_time timeout_ns = cli_disk_timeout(d->source->size_bytes);
    int code = cli_file_await(&d->verdict_io, timeout_ns, CLI_FILE_VERDICT, &verdict);
    if (code)
        return connection_failed(d, code);
    return verdict.flags & CLI_FILE_NO ? refused(d, &verdict) : true;
}

/* Sends the receiver the reason. Blocks in flight are canceled first: up to a window takes its time on a slow
 * link, and could still complete the file. */
static void send_abort(struct delivery *d)
{
    struct cli_file_message message = {.kind = CLI_FILE_ABORT,
                                       .offset_bytes = cli_stopped() ? CLI_FILE_KEEP : 0};
    uint64_t rest = d->source->size_bytes - d->read_bytes;
    snprintf(message.text, sizeof message.text, "%.*s", CLI_FILE_TEXT_MAX - 1, d->reason);
    /* Its length must differ from that of the next block. */
    if (CLI_FILE_HEADER + strlen(message.text) == rest)
        strcat(message.text, " ");
    cli_block_ring_cancel(&d->ring);
    if (d->digest_io.request)
        lh_cancel(d->digest_io.request);
    if (!cli_file_send(d->connection, &d->abort_io, &message))
        lh_wait(d->abort_io.request, CLI_ABORT_TIMEOUT_NS, NULL);
}

/* What the receiver kept, for a sender that was interrupted. Older receivers do not report it. */
static void report_kept(struct delivery *d)
{
    char fate[CLI_FILE_FATE_MAX];
    struct cli_file_message verdict;
    lh_wait(d->verdict_io.request, CLI_ABORT_TIMEOUT_NS, NULL);
    if (cli_file_await(&d->verdict_io, 0, CLI_FILE_VERDICT, &verdict) || !verdict.offset_bytes ||
        verdict.offset_bytes > d->source->size_bytes)
        return;
    cli_file_fate(0, verdict.offset_bytes, d->source->size_bytes, fate);
    cli_note("%s: the receiver %s", d->source->path, fate + strlen("; "));
}

static void print_summary(struct delivery *d)
{
    struct lh_stats stats;
    struct cli_file_summary summary = {
        .done = "sent",
        .name = d->source->name,
        .size_bytes = d->source->size_bytes,
        .resumed_bytes = d->resumed_bytes,
        .elapsed_ns = cli_now() - d->started_ns,
    };
    if (!lh_connection_stats(d->connection, &stats))
        summary.stats = &stats;
    summary.bottleneck = &d->bottleneck;
    cli_digest_get(&d->digest, summary.digest);
    cli_file_summary_print(&summary);
}

static void clean_up(struct delivery *d)
{
    cli_block_ring_close(&d->ring);
    if (d->digest.state)
        cli_digest_close(&d->digest);
    cli_file_io_end(&d->offer_io);
    cli_file_io_end(&d->answer_io);
    cli_file_io_end(&d->start_io);
    cli_file_io_end(&d->digest_io);
    cli_file_io_end(&d->verdict_io);
    cli_file_io_end(&d->abort_io);
}

/* Does not close the connection. Prints a line on stdout when the file got there, else one on stderr.
 * Returns the exit status. */
static int cli_file_send_source(struct cli_source *source, struct lh_connection *connection, bool resume)
{
    struct delivery d = {.source = source, .connection = connection};
    struct cli_file_message answer;
    bool there = offer(&d, resume) && take_answer(&d, &answer) && start(&d, &answer) && send_blocks(&d) &&
                 take_verdict(&d);
    cli_progress_clear(&d.progress);
    if (there)
        print_summary(&d);
    else
        cli_failed("%s: %s%s", source->path, d.reason, d.lost ? CONTINUE : "");
    if (!there && d.awaited) {
        send_abort(&d);
        if (cli_stopped())
            report_kept(&d);
    }
    clean_up(&d);
    if (there)
        return CLI_EXIT_OK;
    return cli_stopped() ? cli_stopped() : CLI_EXIT_FAILED;
}

/* ---- send ------------------------------------------------------------------------------------------ */

/* Longhaul send PATH... HOST[:PORT][:DIR] */

struct send_options {
    bool resume, follow, dry_run, json;
    struct cli_connection connection;
    struct cli_address address;
    char folder[CLI_TREE_PATH_MAX + 1]; /* DIR, or "" */
};

static int connect_to(const struct send_options *options, struct lh_connection **connection)
{
    int status = cli_connect(&options->address, &options->connection.attr, options->connection.wait_ns,
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

/* One regular file, which goes on where an earlier transfer ended on request only. */
static int send_file(const char *path, const struct send_options *options)
{
    struct cli_source source;
    struct lh_connection *connection;
    if (!cli_source_open(&source, path))
        return cli_failed("%s %s", path, source.reason);
    int status = connect_to(options, &connection);
    if (status == CLI_PROCEED)
        status = disconnect(connection, cli_file_send_source(&source, connection, options->resume));
    cli_source_close(&source);
    return status;
}

/* ---- trees ----------------------------------------------------------------------------------------- */

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
        .folder = options->folder,
        .follow = options->follow,
        .dry_run = options->dry_run,
        .json = options->json,
    };
    int status = check_names(operands, count);
    if (status == CLI_PROCEED)
        status = connect_to(options, &connection);
    return status == CLI_PROCEED ? disconnect(connection, cli_tree_send(&sending, connection)) : status;
}

static int send_trees(const char *const *paths, unsigned count, const struct send_options *options)
{
    char reason[CLI_TREE_OPERAND_REASON_MAX];
    struct cli_tree_operand *operands = calloc(count, sizeof *operands);
    int status = operands ? CLI_PROCEED : cli_failed("no memory");
    unsigned opened = 0;
    while (status == CLI_PROCEED && opened < count) {
        if (cli_tree_operand_open(&operands[opened], paths[opened], reason))
            opened++;
        else
            status = cli_failed("%s %s", paths[opened], reason);
    }
    if (status == CLI_PROCEED)
        status = send_operands(operands, count, options);
    while (opened)
        cli_tree_operand_close(&operands[--opened]);
    free(operands);
    return status;
}

/* Whether the only PATH is what cli_source_open() takes, or refuses with a better reason. */
static bool is_one_file(const char *path, const struct send_options *options)
{
    struct stat status;
    bool special = *options->folder || options->follow || options->dry_run || options->json;
    if (stat(path, &status))
        return lstat(path, &status) != 0;
    return !S_ISDIR(status.st_mode) && (!special || !S_ISREG(status.st_mode));
}

static int send_paths(const struct cli_operands *operands, const struct send_options *options)
{
    unsigned paths = operands->count - 1;
    for (unsigned i = 0; i < paths; i++)
        if (!strcmp(operands->text[i], "-") && paths > 1)
            return cli_misused("-: standard input is sent alone (a file of that name: ./-)");
    if (!strcmp(operands->text[0], "-"))
        return options->dry_run ? cli_misused("--dry-run: standard input is not known before it is read")
                                : send_operands(NULL, 0, options);
    return paths == 1 && is_one_file(operands->text[0], options)
               ? send_file(operands->text[0], options)
               : send_trees(operands->text, paths, options);
}

int cli_send(int argc, char **argv)
{
    struct send_options options = {.resume = false};
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"resume", NULL, "one file: continue an interrupted transfer, and keep this one resumable",
         &options.resume, .kind = CLI_FLAG},
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
        .about = "Sends files and folders to 'longhaul recv' on HOST (port 47910), into DIR below its "
                 "folder.\n"
                 "Each file appears there once it is complete and verified by its digest. PATH -: "
                 "standard\n"
                 "input, as the file DIR, or to 'longhaul recv -o -'.",
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
        status = cli_destination_parse(operands.text[operands.count - 1], &options.address, options.folder);
    return status == CLI_PROCEED ? send_paths(&operands, &options) : status;
}
