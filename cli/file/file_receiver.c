/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/file_transfer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_messages.h"
#include "cli/file/file_names.h"
#include "cli/file/file_partial.h"
#include "cli/file/tree_receiver.h"
#include "cli/file/tree_store.h"
#include "cli/options/cli_options.h"
#include "cli/options/option_values.h"
#include "cli/options/peer_address.h"
#include "cli/terminal/terminal.h"

/* ---- receiver -------------------------------------------------------------------------------------- */

/* Takes one file over a connection, up to its final name on disk. */

struct cli_file_receiver {
    struct cli_tree_options to; /* where files go, and which */
    bool resume; /* goes on where an earlier try ended; the sender may ask for that as well */
};

enum cli_reception {
    CLI_RECEPTION_WHOLE,    /* the file is there */
    CLI_RECEPTION_FAILED,   /* an offered file was not received; reported on stderr and to the sender
                           */
    CLI_RECEPTION_STRANGER, /* the peer made no valid offer; reported */
    CLI_RECEPTION_STOPPED,  /* by a signal */
    CLI_RECEPTION_TREE,     /* a tree came; its status is the reception's */
};

/* One file being received. Steps return false when the transfer ends, with the reason set. */
struct reception {
    const struct cli_file_receiver *receiver;
    struct lh_connection *connection;
    struct cli_file_message offer;
    struct cli_file_attributes attributes; /* that were offered */
    struct cli_resume_point resumed;       /* what is offered to start from, then what is started from */
    struct cli_block_ring ring;
    struct cli_partial partial;
    struct cli_digest digest;
    struct cli_progress progress;
    struct cli_file_io offer_io, answer_io, start_io, verdict_io;
    uint64_t next_bytes; /* of the file are here */
    uint64_t kept_bytes; /* of one that did not get here */
    lh_time started_ns;
    bool sender_stopped;        /* by its user, who may want to go on */
    enum cli_reception outcome; /* if it ends now */
    char fate[CLI_FILE_FATE_MAX];
    char reason[CLI_FILE_TEXT_MAX + 1];
};

static bool give_reason(struct reception *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool give_reason(struct reception *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->reason, sizeof r->reason, format, arguments);
    va_end(arguments);
    return false;
}

/* A library call or a wait ended in this code. */
static bool connection_failed(struct reception *r, int code)
{
    if (code == -LH_ECANCELED && cli_stopped()) {
        r->outcome = CLI_RECEPTION_STOPPED;
        return give_reason(r, "interrupted by the user of the receiver");
    }
    return give_reason(r, "%s", cli_file_strerror(r->connection, code, "sender"));
}

static lh_time round_trip(const struct reception *r)
{
    struct lh_path_view path;
    return lh_connection_path(r->connection, &path) ? 0 : path.rtt_ns;
}

static bool take_offer(struct reception *r)
{
    int code = cli_file_expect(r->connection, &r->offer_io);
    if (!code)
        code = cli_file_await(&r->offer_io, cli_prompt_timeout(round_trip(r), 0), CLI_FILE_ANY, &r->offer);
    if (code == -LH_ETIMEDOUT)
        return give_reason(r, "no file offered");
    if (code == -LH_EVERSION)
        return give_reason(r, "file protocol version %d required", CLI_FILE_VERSION);
    if (!code && r->offer.kind != CLI_FILE_OFFER && r->offer.kind != CLI_FILE_TREE)
        code = -LH_EPROTOCOL;
    if (code)
        return connection_failed(r, code);
    if (r->offer.kind == CLI_FILE_TREE) {
        r->outcome = CLI_RECEPTION_TREE;
        return false;
    }
    const char *wrong = cli_file_name_wrong(r->offer.text, strlen(r->offer.text));
    if (wrong)
        return give_reason(r, "the name %s", wrong);
    if (cli_file_attributes_decode(r->offer.digest, &r->attributes))
        return connection_failed(r, -LH_EPROTOCOL);
    r->outcome = CLI_RECEPTION_FAILED;
    if (r->receiver->to.folder < 0)
        return give_reason(r, "the receiver writes to standard output (longhaul send - HOST < FILE)");
    if (r->offer.text[0] == '.' && !r->receiver->to.dotfiles)
        return give_reason(r, "name begins with a dot (recv --dotfiles accepts such names)");
    return true;
}

static bool may_resume(const struct reception *r)
{
    return r->receiver->resume || r->offer.flags & CLI_FILE_RESUME;
}

static bool partial_failed(struct reception *r)
{
    if (cli_stopped())
        return connection_failed(r, -LH_ECANCELED);
    return give_reason(r, "%s%s", r->partial.reason,
                       r->partial.fault == CLI_PARTIAL_EXISTS ? " (--force at the receiver replaces it)"
                                                              : "");
}

static bool open_partial(struct reception *r)
{
    bool resume = may_resume(r);
    if (!cli_partial_open(&r->partial, r->receiver->to.folder, r->offer.text, r->offer.size_bytes,
                          r->receiver->to.force, resume))
        return partial_failed(r);
    if (!resume)
        cli_file_note_replaced(r->offer.text, r->partial.found_bytes);
    int code = cli_block_ring_open(&r->ring, r->connection);
    if (!code)
        code = cli_digest_open(&r->digest);
    if (code)
        return connection_failed(r, code);
    if (resume && !cli_partial_check(&r->partial, UINT64_MAX, cli_block_ring_head(&r->ring), &r->digest,
                                     cli_stopped, &r->resumed))
        return partial_failed(r);
    if (r->resumed.other_size_bytes > 0)
        cli_file_note_other_size(r->offer.text, r->resumed.other_size_bytes, r->offer.size_bytes);
    r->next_bytes = r->resumed.blocks * CLI_BLOCK_BYTES;
    return true;
}

/* Posts a receive for each block that is still to come and for the digest after them, as far as the ring
 * goes. */
static bool post_receives(struct reception *r)
{
    uint64_t rest = r->offer.size_bytes - r->next_bytes;
    uint64_t wanted = rest / CLI_BLOCK_BYTES + (rest % CLI_BLOCK_BYTES != 0) + 1;
    while (r->ring.head - r->ring.tail < wanted && !cli_block_ring_full(&r->ring)) {
        int code = cli_block_ring_post(&r->ring);
        /* The sender may have closed after its abort, which is still in the ring. */
        if (code)
            return cli_block_ring_empty(&r->ring) ? connection_failed(r, code) : true;
    }
    return true;
}

/* Accepts, with the offset to start from. */
static bool answer(struct reception *r)
{
    struct cli_file_message yes = {.kind = CLI_FILE_ANSWER, .offset_bytes = r->next_bytes};
    memcpy(yes.digest, r->resumed.digest, sizeof yes.digest);
    int code = cli_file_expect(r->connection, &r->start_io);
    if (!code)
        code = cli_file_send(r->connection, &r->answer_io, &yes);
    /* Posted before START is here, so that the first blocks can follow it at once. */
    return code ? connection_failed(r, code) : post_receives(r);
}

static bool take_start(struct reception *r)
{
    struct cli_file_message start;
    lh_time timeout_ns = cli_prompt_timeout(round_trip(r), r->next_bytes);
    int code = cli_file_await(&r->start_io, timeout_ns, CLI_FILE_START, &start);
    if (code)
        return connection_failed(r, code);
    if (start.offset_bytes != 0 && start.offset_bytes != r->next_bytes)
        return connection_failed(r, -LH_EPROTOCOL);
    if (!start.offset_bytes) {
        /* Nothing to resume, or the file is not the one that the earlier try was about. */
        if (r->next_bytes > 0)
            cli_file_note_other_digest(r->offer.text, r->next_bytes);
        r->resumed.blocks = 0;
        cli_digest_reset(&r->digest);
    }
    r->next_bytes = start.offset_bytes;
    r->started_ns = cli_now();
    return cli_partial_start(&r->partial, r->resumed.blocks) || partial_failed(r);
}

/* Not the expected block: the sender's abort, or a violation. */
static bool take_abort(struct reception *r, size_t bytes)
{
    struct cli_file_message message;
    if (cli_file_decode(cli_block_ring_tail(&r->ring), bytes, &message) || message.kind != CLI_FILE_ABORT)
        return connection_failed(r, -LH_EPROTOCOL);
    cli_text_clean(message.text, strlen(message.text));
    r->sender_stopped = message.offset_bytes == CLI_FILE_KEEP;
    return give_reason(r, "aborted by the sender: %.*s", CLI_FILE_TEXT_MAX - 24, message.text);
}

/* Waits for the message at the tail of the ring: 0, or the error of the wait or of the message. */
static int await_message(struct reception *r, struct lh_result *result)
{
    lh_time since = cli_now();
    int code;
    while ((code = cli_block_ring_wait(&r->ring, CLI_SLICE_NS, result)) == -LH_ETIMEDOUT) {
        cli_progress_show(&r->progress, r->next_bytes);
        if (cli_stopped())
            return -LH_ECANCELED;
        if (cli_now() - since > CLI_DISK_TIMEOUT_NS)
            return -LH_ETIMEDOUT;
    }
    return code ? code : result->error;
}

static bool sender_ended(int code)
{
    return code == -LH_ECANCELED || code == -LH_ECLOSED || code == -LH_EPEER;
}

/* Looks for the sender's abort behind messages that it canceled. A sender has at most a ring of blocks, its
 * digest and its abort in flight. */
static bool take_final_message(struct reception *r, int code)
{
    struct lh_result result;
    struct cli_file_message message;
    for (uint64_t i = 0; i < r->ring.blocks + 2; i++) {
        cli_block_ring_release(&r->ring);
        if (!post_receives(r))
            return false;
        int next = await_message(r, &result);
        if (!next && !cli_file_decode(cli_block_ring_tail(&r->ring), (size_t)result.bytes, &message) &&
            message.kind == CLI_FILE_ABORT)
            return take_abort(r, (size_t)result.bytes);
        if (next && (!sender_ended(next) || cli_stopped()))
            return connection_failed(r, next);
    }
    return connection_failed(r, code);
}

/* Waits for the next message in the ring, and leaves it there. */
static bool next_message(struct reception *r, size_t *bytes)
{
    struct lh_result result;
    if (!post_receives(r))
        return false;
    int code = await_message(r, &result);
    if (sender_ended(code) && !cli_stopped())
        return take_final_message(r, code);
    if (code)
        return connection_failed(r, code == -LH_ETRUNCATED ? -LH_EPROTOCOL : code);
    *bytes = (size_t)result.bytes;
    return true;
}

static bool take_block(struct reception *r)
{
    uint64_t rest = r->offer.size_bytes - r->next_bytes;
    size_t expected = rest < CLI_BLOCK_BYTES ? (size_t)rest : CLI_BLOCK_BYTES, bytes;
    if (!next_message(r, &bytes))
        return false;
    if (bytes != expected)
        return take_abort(r, bytes);
    if (!cli_partial_append(&r->partial, &r->digest, r->next_bytes, cli_block_ring_tail(&r->ring), bytes))
        return partial_failed(r);
    r->next_bytes += bytes;
    cli_block_ring_release(&r->ring);
    return true;
}

static bool take_blocks(struct reception *r)
{
    cli_progress_start(&r->progress, r->offer.text, r->offer.size_bytes, r->next_bytes);
    while (r->next_bytes < r->offer.size_bytes) {
        if (cli_stopped())
            return connection_failed(r, -LH_ECANCELED);
        if (!take_block(r))
            return false;
        cli_progress_show(&r->progress, r->next_bytes);
    }
    return true;
}

static bool check_digest(struct reception *r)
{
    struct cli_file_message announced;
    uint8_t digest[CLI_DIGEST_BYTES];
    size_t bytes;
    if (!next_message(r, &bytes))
        return false;
    if (cli_file_decode(cli_block_ring_tail(&r->ring), bytes, &announced) ||
        announced.kind != CLI_FILE_DIGEST)
        return take_abort(r, bytes);
    cli_digest_get(&r->digest, digest);
    if (announced.size_bytes == r->offer.size_bytes && !memcmp(announced.digest, digest, sizeof digest))
        return true;
    /* What is recorded for a resumption is wrong then, too. */
    r->partial.blocks_recorded = 0;
    return give_reason(r, "digest mismatch: received data differ from the sender's");
}

static bool commit(struct reception *r)
{
    const struct cli_file_attributes *attributes = &r->attributes;
    mode_t mode = (attributes->known ? attributes->mode : 0666) & ~r->receiver->to.umask;
    if (!cli_partial_commit(&r->partial, mode, attributes->known ? &attributes->written : NULL))
        return partial_failed(r);
    return true;
}

static bool receive(struct reception *r)
{
    return take_offer(r) && open_partial(r) && answer(r) && take_start(r) && take_blocks(r) &&
           check_digest(r) && commit(r);
}

/* Deletes the unfinished file, or keeps it: on request, and after an interruption. */
static void settle_partial(struct reception *r)
{
    /* Another process may have removed it. */
    bool ours = r->partial.file >= 0 && cli_partial_named(&r->partial);
    uint64_t arrived = ours ? r->partial.blocks_recorded * CLI_BLOCK_BYTES : 0;
    bool keep = may_resume(r) || r->sender_stopped || r->outcome == CLI_RECEPTION_STOPPED;
    r->kept_bytes = cli_partial_abandon(&r->partial, keep);
    cli_file_fate(arrived, r->kept_bytes, r->offer.size_bytes, r->fate);
}

/* The verdict, with the reason of a refusal; it is the answer to the offer when there was none yet. */
static void send_verdict(struct reception *r, bool whole)
{
    struct cli_file_message verdict = {
        .kind = r->answer_io.request ? CLI_FILE_VERDICT : CLI_FILE_ANSWER,
        .flags = whole ? 0 : CLI_FILE_NO,
        .offset_bytes = r->kept_bytes,
    };
    snprintf(verdict.text, sizeof verdict.text, "%.*s%s", (int)(CLI_FILE_TEXT_MAX - strlen(r->fate)),
             r->reason, r->fate);
    /* A peer that is lost or closed does not receive it: no error. */
    if (!cli_file_send(r->connection, &r->verdict_io, &verdict))
        lh_wait(r->verdict_io.request, CLI_ABORT_TIMEOUT_NS, NULL);
}

/* The scheme that `auto` chose, if it had to. */
static void report_choice(const struct reception *r)
{
    char text[LH_SCHEME_WORDS_MAX];
    struct lh_scheme_report report;
    if (lh_connection_scheme(r->connection, &report) || report.plans == 0)
        return;
    printf("auto: %s\n", lh_scheme_report_words(&report, text, sizeof text));
    cli_output_flush();
}

/* The sender alone knows what else it may be. */
static void report_drops(const struct lh_stats *stats)
{
    if (!stats->rx_socket_drops)
        return;
    printf("limited by: this host's CPU (its sockets dropped %" PRIu64
           " packets: raise net.core.rmem_max, or use --workers)\n",
           stats->rx_socket_drops);
    cli_output_flush();
}

static void report_outcome(struct reception *r)
{
    const char *from = lh_peer_name(r->connection);
    cli_output_lock(); /* other files may be on their way */
    cli_output_erase_bars();
    if (r->outcome == CLI_RECEPTION_WHOLE) {
        struct lh_stats stats = {0};
        lh_connection_stats(r->connection, &stats);
        struct cli_file_summary summary = {
            .done = "received",
            .name = r->offer.text,
            .size_bytes = r->offer.size_bytes,
            .resumed_bytes = r->resumed.blocks * CLI_BLOCK_BYTES,
            .elapsed_ns = cli_now() - r->started_ns,
            .recovered = stats.chunks_recovered,
        };
        cli_digest_get(&r->digest, summary.digest);
        cli_file_summary_print(&summary);
        report_choice(r);
        report_drops(&stats);
        if (r->attributes.known && r->partial.attributes_lost)
            cli_file_note_attributes_lost(r->offer.text);
    } else if (r->outcome == CLI_RECEPTION_STRANGER) {
        bool blocked = lh_connection_error(r->connection) == -LH_EPATH;
        cli_note("%s: %s%s", from, blocked ? "" : "not a valid sender: ", r->reason);
    } else if (*r->offer.text) {
        cli_failed("%s: %s%s", r->offer.text, r->reason, r->fate);
    } else {
        cli_failed("%s: %s", from, r->reason);
    }
    cli_output_unlock();
}

static void clean_up(struct reception *r)
{
    cli_block_ring_close(&r->ring);
    if (r->digest.state)
        cli_digest_close(&r->digest);
    cli_file_io_end(&r->offer_io);
    cli_file_io_end(&r->answer_io);
    cli_file_io_end(&r->start_io);
    cli_file_io_end(&r->verdict_io);
}

/* Does not close the connection. Prints a line on stdout for a file that got here. */
static enum cli_reception cli_file_receive(const struct cli_file_receiver *receiver,
                                           struct lh_connection *connection, int *tree_status)
{
    struct reception r = {
        .receiver = receiver,
        .connection = connection,
        .partial = {.file = -1, .sidecar = -1},
        .outcome = CLI_RECEPTION_STRANGER,
    };
    bool whole = receive(&r);
    if (r.outcome == CLI_RECEPTION_TREE) {
        clean_up(&r);
        *tree_status = cli_tree_receive(&receiver->to, connection);
        return CLI_RECEPTION_TREE;
    }
    if (whole)
        r.outcome = CLI_RECEPTION_WHOLE;
    cli_progress_clear(&r.progress);
    /* Before the verdict, so that a new attempt finds the name free. */
    settle_partial(&r);
    send_verdict(&r, whole);
    /* A refused name is not printed. */
    if (r.outcome == CLI_RECEPTION_STRANGER)
        r.offer.text[0] = 0;
    report_outcome(&r);
    clean_up(&r);
    assert(r.partial.file < 0 && !r.ring.memory);
    return r.outcome;
}

/* ---- jobs ------------------------------------------------------------------------------------------ */

/* Files of several senders at once: each connection is served by a thread of its own. */

#define CLI_JOBS_MAX 64u

#define FULL_PAUSE_NS (5 * 1000000L) /* looks for a place this often */

struct job {
    const struct cli_file_receiver *receiver;
    struct lh_connection *connection; /* NULL: the place is free */
    pthread_t thread;
    _Atomic bool ended; /* the thread does nothing more */
};

static void *run(void *argument)
{
    struct job *job = argument;
    int status; /* a tree has printed it */
    cli_file_receive(job->receiver, job->connection, &status);
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

static int start(struct job *job, const struct cli_file_receiver *receiver,
                 struct lh_connection *connection)
{
    *job = (struct job){.receiver = receiver, .connection = connection};
    int failed = pthread_create(&job->thread, NULL, run, job);
    if (!failed)
        return CLI_PROCEED;
    cli_failed("cannot start a thread for %s: %s", lh_peer_name(connection), strerror(failed));
    lh_close(connection);
    job->connection = NULL;
    return CLI_PROCEED; /* the next one may find a thread */
}

/* Looks for the next sender, and for a place. Without a transfer a signal ends the process at once. */
static int serve_next(struct lh_listener *listener, const struct cli_file_receiver *receiver,
                      struct job *jobs, unsigned count, unsigned running)
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
    return start(jobs, receiver, connection);
}

/* Receives files until a signal, up to `jobs` at once; further senders wait in the listener. Returns the exit
 * status, when the last file has ended. */
static int cli_jobs_serve(struct lh_listener *listener, const struct cli_file_receiver *receiver,
                          unsigned count)
{
    struct job jobs[CLI_JOBS_MAX] = {0};
    int status = CLI_PROCEED;
    while (status == CLI_PROCEED && !cli_stopped())
        status = serve_next(listener, receiver, jobs, count, reap(jobs, count));
    while (reap(jobs, count) > 0)
        nanosleep(&(struct timespec){.tv_nsec = FULL_PAUSE_NS}, NULL);
    return cli_stopped() ? cli_stopped() : status;
}

/* ---- recv ------------------------------------------------------------------------------------------ */

/* Longhaul recv --output DIR [--listen ADDR:PORT] */

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
        enum cli_reception reception = cli_file_receive(receiver, connection, &status);
        lh_close(connection);
        if (cli_stopped())
            return cli_stopped();
        if (reception == CLI_RECEPTION_TREE)
            return status;
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

/* For data alone: what is printed goes to standard error. */
static int take_standard_output(void)
{
    int pipe = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return pipe;
}

static int receive_files(const char *output, const struct cli_address *address, struct lh_attr *attr,
                         struct cli_file_receiver *receiver, uint32_t jobs)
{
    const char *folder = output ? output : ".";
    char reason[CLI_OUTPUT_FOLDER_REASON_MAX];
    /* Before the library has threads. */
    receiver->to.umask = cli_umask();
    if (!strcmp(folder, "-"))
        receiver->to.pipe = take_standard_output();
    else if (!cli_output_folder_open(folder, &receiver->to.folder, reason))
        return cli_failed("%s", reason);
    int status = jobs ? share_engine(address, attr) : CLI_PROCEED;
    if (status == CLI_PROCEED)
        status = listen_and_serve(address, attr, receiver, jobs, !output);
    lh_engine_destroy(attr->engine);
    close(receiver->to.folder >= 0 ? receiver->to.folder : receiver->to.pipe);
    return status;
}

int cli_recv(int argc, char **argv)
{
    const char *output = NULL, *listen_on = ":47910";
    bool keep = false;
    uint32_t jobs = 0;
    struct cli_file_receiver receiver = {.to = {.folder = -1, .pipe = -1}};
    struct cli_connection options;
    struct cli_address address;
    struct cli_operands operands;
    const struct cli_option own[] = {
        {"output", "DIR", "folder for received files (.); -: standard output", &output, .kind = CLI_TEXT,
         .letter = 'o'},
        {"listen", "[ADDR]:PORT", "listening address; port 0 picks a free one (:47910)", &listen_on,
         .kind = CLI_TEXT},
        {"keep", NULL, "receive files and trees until interrupted, instead of one", &keep,
         .kind = CLI_FLAG},
        {"jobs", "N", "with --keep: files received at once (8)", &jobs, .kind = CLI_COUNT, .min = 1,
         .max = CLI_JOBS_MAX},
        {"force", NULL, "replace existing files", &receiver.to.force, .kind = CLI_FLAG},
        {"dotfiles", NULL, "accept names that begin with a dot, such as .profile", &receiver.to.dotfiles,
         .kind = CLI_FLAG},
        {"resume", NULL, "one file: continue an interrupted transfer, and keep this one resumable",
         &receiver.resume, .kind = CLI_FLAG},
        {"json", NULL, "print a JSON object for each event of a tree, one a line", &receiver.to.json,
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
        status = cli_connection_secure_listener(&options, "send PATH... HOST");
    if (status == CLI_PROCEED)
        status = cli_address_parse("--listen", listen_on, CLI_PORT_FILES, true, &address);
    if (status == CLI_PROCEED && jobs && !keep)
        status = cli_misused("--jobs %u: one file is received (add --keep)", jobs);
    if (status == CLI_PROCEED && keep && options.security.code)
        status = cli_misused("--keep: a code is for one connection (use --key-file, or omit --keep)");
    if (status == CLI_PROCEED && keep && output && !strcmp(output, "-"))
        status = cli_misused("--output -: standard output takes one transfer (omit --keep)");
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
