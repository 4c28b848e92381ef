/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/receiver.h"

#include "cli/file/attributes.h"
#include "cli/file/block_ring.h"
#include "cli/file/digest.h"
#include "cli/file/message.h"
#include "cli/file/message_io.h"
#include "cli/file/name.h"
#include "cli/file/partial.h"
#include "cli/file/resume.h"
#include "cli/file/summary.h"
#include "cli/file/timeouts.h"
#include "cli/terminal/diagnostic.h"
#include "cli/terminal/output.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/stop.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/wait.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
        code =
            cli_file_await(&r->offer_io, cli_prompt_timeout(round_trip(r), 0), CLI_FILE_OFFER, &r->offer);
    if (code == -LH_ETIMEDOUT)
        return give_reason(r, "no file offered");
    if (code == -LH_EVERSION)
        return give_reason(r, "file protocol version %d required", CLI_FILE_VERSION);
    if (code)
        return connection_failed(r, code);
    const char *wrong = cli_file_name_wrong(r->offer.text, strlen(r->offer.text));
    if (wrong)
        return give_reason(r, "the name %s", wrong);
    if (cli_file_attributes_decode(r->offer.digest, &r->attributes))
        return connection_failed(r, -LH_EPROTOCOL);
    r->outcome = CLI_RECEPTION_FAILED;
    if (r->offer.text[0] == '.' && !r->receiver->dotfiles)
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
    if (!cli_partial_open(&r->partial, r->receiver->folder, r->offer.text, r->offer.size_bytes,
                          r->receiver->force, resume))
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
    mode_t mode = (attributes->known ? attributes->mode : 0666) & ~r->receiver->umask;
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

enum cli_reception cli_file_receive(const struct cli_file_receiver *receiver,
                                    struct lh_connection *connection)
{
    struct reception r = {
        .receiver = receiver,
        .connection = connection,
        .partial = {.file = -1, .sidecar = -1},
        .outcome = CLI_RECEPTION_STRANGER,
    };
    bool whole = receive(&r);
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
