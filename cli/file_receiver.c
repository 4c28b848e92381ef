/* SPDX-License-Identifier: BSD-3-Clause */
#include "file_receiver.h"

#include "block_ring.h"
#include "digest.h"
#include "file_attributes.h"
#include "file_mail.h"
#include "file_patience.h"
#include "file_summary.h"
#include "output.h"
#include "partial.h"
#include "progress.h"
#include "say.h"
#include "stop.h"
#include "terminal.h"
#include "wait.h"

#include <longhaul/units.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One file on its way in. Steps return false when it ends here; reason says why then. */
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
    struct cli_file_mail offer_mail, answer_mail, start_mail, verdict_mail;
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
        return give_reason(r, "the receiver was stopped by its user");
    }
    return give_reason(r, "%s", cli_file_words(code, "sender"));
}

static lh_time round_trip(const struct reception *r)
{
    struct lh_path_view path;
    return lh_connection_path(r->connection, &path) ? 0 : path.rtt_ns;
}

static bool take_offer(struct reception *r)
{
    int code = cli_file_expect(r->connection, &r->offer_mail);
    if (!code)
        code = cli_file_await(&r->offer_mail, cli_prompt_patience(round_trip(r), 0), CLI_FILE_OFFER,
                              &r->offer);
    if (code == -LH_ETIMEDOUT)
        return give_reason(r, "it offered no file");
    if (code == -LH_EVERSION)
        return give_reason(r, "the receiver speaks version %d of the file protocol only", CLI_FILE_VERSION);
    if (code)
        return connection_failed(r, code);
    const char *wrong = cli_file_name_wrong(r->offer.text, strlen(r->offer.text));
    if (wrong)
        return give_reason(r, "the name %s", wrong);
    if (cli_file_attributes_decode(r->offer.digest, &r->attributes))
        return connection_failed(r, -LH_EPROTOCOL);
    r->outcome = CLI_RECEPTION_FAILED;
    if (r->offer.text[0] == '.' && !r->receiver->dotfiles)
        return give_reason(r, "the name begins with a dot (recv --dotfiles accepts such names)");
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
    return give_reason(r, "%s", r->partial.reason);
}

static bool open_partial(struct reception *r)
{
    bool resume = may_resume(r);
    if (!cli_partial_open(&r->partial, r->receiver->folder, r->offer.text, r->offer.size_bytes,
                          r->receiver->force, resume))
        return partial_failed(r);
    if (!resume && r->partial.found_bytes >= CLI_BLOCK_BYTES) {
        char found[LH_FORMAT_MAX];
        lh_format_size(r->partial.found_bytes, found, sizeof found);
        cli_note("%s: %s of an unfinished transfer are replaced (--resume continues one)", r->offer.text,
                 found);
    }
    int code = cli_block_ring_open(&r->ring, r->connection);
    if (!code)
        code = cli_digest_open(&r->digest);
    if (code)
        return connection_failed(r, code);
    if (resume && !cli_partial_check(&r->partial, cli_block_ring_head(&r->ring), &r->digest, cli_stopped,
                                     &r->resumed))
        return partial_failed(r);
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
        /* The sender may have gone after it said why: what is in the ring is still to be read. */
        if (code)
            return cli_block_ring_empty(&r->ring) ? connection_failed(r, code) : true;
    }
    return true;
}

/* Says yes, and where to start. */
static bool answer(struct reception *r)
{
    struct cli_file_message yes = {.kind = CLI_FILE_ANSWER, .offset_bytes = r->next_bytes};
    memcpy(yes.digest, r->resumed.digest, sizeof yes.digest);
    int code = cli_file_expect(r->connection, &r->start_mail);
    if (!code)
        code = cli_file_send(r->connection, &r->answer_mail, &yes);
    /* Posted before START is here, so that the first blocks can follow it at once. */
    return code ? connection_failed(r, code) : post_receives(r);
}

static bool take_start(struct reception *r)
{
    struct cli_file_message start;
    lh_time patience = cli_prompt_patience(round_trip(r), r->next_bytes);
    int code = cli_file_await(&r->start_mail, patience, CLI_FILE_START, &start);
    if (code)
        return connection_failed(r, code);
    if (start.offset_bytes != 0 && start.offset_bytes != r->next_bytes)
        return connection_failed(r, -LH_EPROTOCOL);
    if (!start.offset_bytes) {
        /* Nothing to resume, or the file is not the one that the earlier try was about. */
        r->resumed.blocks = 0;
        cli_digest_reset(&r->digest);
    }
    r->next_bytes = start.offset_bytes;
    r->started_ns = cli_now();
    return cli_partial_start(&r->partial, r->resumed.blocks) || partial_failed(r);
}

/* What stands in the ring is not what should: the sender's reason to end, or nonsense. */
static bool take_abort(struct reception *r, size_t bytes)
{
    struct cli_file_message message;
    if (cli_file_decode(cli_block_ring_tail(&r->ring), bytes, &message) || message.kind != CLI_FILE_ABORT)
        return connection_failed(r, -LH_EPROTOCOL);
    cli_text_clean(message.text, strlen(message.text));
    r->sender_stopped = message.offset_bytes == CLI_FILE_KEEP;
    return give_reason(r, "the sender says: %.*s", CLI_FILE_TEXT_MAX - 20, message.text);
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
        if (cli_now() - since > CLI_PATIENCE_NS)
            return -LH_ETIMEDOUT;
    }
    return code ? code : result->error;
}

static bool sender_ended(int code)
{
    return code == -LH_ECANCELED || code == -LH_ECLOSED || code == -LH_EPEER;
}

/* What the sender canceled, or left behind when it closed, is not the reason why: that may stand behind it.
 * A sender has at most a ring of blocks, its digest and its reason on their way. */
static bool take_last_word(struct reception *r, int code)
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
        return take_last_word(r, code);
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
    const uint8_t *block = cli_block_ring_tail(&r->ring);
    cli_digest_add(&r->digest, block, bytes);
    if (!cli_partial_write(&r->partial, r->next_bytes, block, bytes))
        return partial_failed(r);
    if (bytes == CLI_BLOCK_BYTES) {
        uint8_t digest[CLI_DIGEST_BYTES];
        cli_digest_get(&r->digest, digest);
        if (!cli_partial_record(&r->partial, r->next_bytes / CLI_BLOCK_BYTES, digest))
            return partial_failed(r);
    }
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
    struct cli_file_message told;
    uint8_t digest[CLI_DIGEST_BYTES];
    size_t bytes;
    if (!next_message(r, &bytes))
        return false;
    if (cli_file_decode(cli_block_ring_tail(&r->ring), bytes, &told) || told.kind != CLI_FILE_DIGEST)
        return take_abort(r, bytes);
    cli_digest_get(&r->digest, digest);
    if (told.size_bytes == r->offer.size_bytes && !memcmp(told.digest, digest, sizeof digest))
        return true;
    /* What is recorded for a resumption is wrong then, too. */
    r->partial.blocks_recorded = 0;
    return give_reason(r, "the digest does not match: what arrived is not what was sent");
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

/* Deletes what is unfinished, or keeps it: for who asked for that, and for who stopped the transfer. */
static void settle_partial(struct reception *r)
{
    /* Nothing is discarded here of what somebody else removed. */
    bool ours = r->partial.file >= 0 && cli_partial_named(&r->partial);
    uint64_t arrived = ours ? r->partial.blocks_recorded * CLI_BLOCK_BYTES : 0;
    bool keep = may_resume(r) || r->sender_stopped || r->outcome == CLI_RECEPTION_STOPPED;
    r->kept_bytes = cli_partial_abandon(&r->partial, keep);
    cli_file_fate(arrived, r->kept_bytes, r->offer.size_bytes, r->fate);
}

/* The last word: yes, or no with the reason. It is the answer to the offer when none was given yet. */
static void send_verdict(struct reception *r, bool whole)
{
    struct cli_file_message verdict = {
        .kind = r->answer_mail.request ? CLI_FILE_VERDICT : CLI_FILE_ANSWER,
        .flags = whole ? 0 : CLI_FILE_NO,
        .offset_bytes = r->kept_bytes,
    };
    snprintf(verdict.text, sizeof verdict.text, "%.*s%s", (int)(CLI_FILE_TEXT_MAX - strlen(r->fate)),
             r->reason, r->fate);
    /* Who is gone, or ended it itself, will not hear it; that is no reason to say anything. */
    if (!cli_file_send(r->connection, &r->verdict_mail, &verdict))
        lh_wait(r->verdict_mail.request, CLI_GOODBYE_NS, NULL);
}

/* What `auto` came to; nothing when a scheme was named. */
static void tell_choice(const struct reception *r)
{
    char words[LH_SCHEME_WORDS_MAX];
    struct lh_scheme_report report;
    if (lh_connection_scheme(r->connection, &report) || !report.automatic)
        return;
    printf("auto: %s\n", lh_scheme_report_words(&report, words, sizeof words));
    cli_output_flush();
}

static void say_outcome(struct reception *r)
{
    const char *from = lh_peer_name(r->connection);
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
        tell_choice(r);
        if (r->attributes.known && r->partial.attributes_lost)
            cli_note("%s: the file system did not keep the source's permissions and time", r->offer.text);
    } else if (r->outcome == CLI_RECEPTION_STRANGER) {
        cli_note("%s: not a sender that this receiver takes files from: %s", from, r->reason);
    } else if (*r->offer.text) {
        cli_failed("%s: %s%s", r->offer.text, r->reason, r->fate);
    } else {
        cli_failed("%s: %s", from, r->reason);
    }
}

static void clean_up(struct reception *r)
{
    cli_block_ring_close(&r->ring);
    if (r->digest.state)
        cli_digest_close(&r->digest);
    cli_file_mail_end(&r->offer_mail);
    cli_file_mail_end(&r->answer_mail);
    cli_file_mail_end(&r->start_mail);
    cli_file_mail_end(&r->verdict_mail);
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
    /* Before the sender hears of it, so that it finds the name free when it tries again. */
    settle_partial(&r);
    send_verdict(&r, whole);
    /* A name that was refused is not one to print. */
    if (r.outcome == CLI_RECEPTION_STRANGER)
        r.offer.text[0] = 0;
    say_outcome(&r);
    clean_up(&r);
    assert(r.partial.file < 0 && !r.ring.memory);
    return r.outcome;
}
