/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_receiver.h"

#include <assert.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>
#include <longhaul/units.h>

#include "cli/file/file_blocks.h"
#include "cli/file/tree_delete.h"
#include "cli/file/tree_message.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_report.h"
#include "cli/file/tree_store.h"
#include "cli/terminal/terminal.h"

/* Decisions of one record. */
#define DECISIONS_MAX 4096u
/* Of a path in what ends the transfer, which is as long as the text of a verdict. */
#define SHOWN_MAX 128u

/* What the stream has come to. */
enum phase {
    AT_ROOT,    /* nothing came yet */
    BETWEEN,    /* no file is open */
    IN_FILE,    /* DATA belongs to the file of the store */
    IN_DROPPED, /* DATA belongs to a file that failed */
    AT_END,     /* END came: nothing may follow */
};

struct receiver {
    const struct cli_tree_options *options;
    struct lh_connection *connection;
    struct cli_block_ring ring;
    struct cli_tree_packer answers;
    struct cli_tree_store store;
    struct cli_tree_report report;
    enum phase phase;
    bool pipe;
    bool asked;          /* for what comes: the sender does not choose the folder */
    bool xattrs, owners; /* may come */
    bool deletes;        /* what the sender does not have */
    struct cli_tree_held held;
    bool confirmed; /* deletion without a question */
    uint64_t sender_failed, sender_reported;
    uint8_t decisions[DECISIONS_MAX];
    size_t decided;
    char path[CLI_TREE_PATH_MAX + 1]; /* of the file that is open */
    size_t path_bytes;
    uint64_t moved_bytes; /* of it */
    uint64_t came_bytes;  /* of messages */
    lh_time waited_ns;    /* for them */
    struct cli_pace pace;
    _Atomic bool stop; /* never set: one thread */
    int status;        /* when it ends now */
    char reason[CLI_TREE_TEXT_MAX + 1];
};

/* Ends the transfer. */
static bool end_by(struct receiver *r, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool end_by(struct receiver *r, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->reason, sizeof r->reason, format, arguments);
    va_end(arguments);
    r->status = status;
    return false;
}

/* A library call or a wait ended in this code. */
static bool connection_failed(struct receiver *r, int code)
{
    if (code == -LH_ECANCELED && cli_stopped())
        return end_by(r, cli_stopped(), "interrupted by the user of the receiver");
    bool wrong = code == -LH_EPROTOCOL || code == -LH_EVERSION || code == -LH_ENOMEM;
    return end_by(r, wrong ? CLI_EXIT_FAILED : CLI_EXIT_LOST, "%s",
                  cli_file_strerror(r->connection, code, "sender"));
}

/* ---- answers --------------------------------------------------------------------------------------- */

static bool add_answer(struct receiver *r, const struct cli_tree_record *answer)
{
    return cli_tree_packer_add(&r->answers, answer) || connection_failed(r, r->answers.code);
}

static bool flush_decisions(struct receiver *r)
{
    const struct cli_tree_record record = {
        .kind = CLI_TREE_DECISIONS, .rest = (const char *)r->decisions, .rest_bytes = r->decided};
    if (!r->decided)
        return true;
    r->decided = 0;
    return add_answer(r, &record);
}

static bool add_decision(struct receiver *r, const struct cli_tree_record *answer)
{
    if (answer->kind != CLI_TREE_DECISIONS)
        return flush_decisions(r) && add_answer(r, answer);
    r->decisions[r->decided++] = (uint8_t)answer->number;
    return r->decided < DECISIONS_MAX || flush_decisions(r);
}

static bool flush_answers(struct receiver *r)
{
    return flush_decisions(r) &&
           (cli_tree_packer_flush(&r->answers) || connection_failed(r, r->answers.code));
}

/* An entry failed at this side: both print it. What ends more than the entry ends the transfer. */
static bool entry_failed(struct receiver *r, const char *path, size_t path_bytes)
{
    const struct cli_tree_record record = {.kind = CLI_TREE_FAULT,
                                           .path = path,
                                           .path_bytes = path_bytes,
                                           .rest = r->store.reason,
                                           .rest_bytes = strlen(r->store.reason)};
    char shown[SHOWN_MAX];
    if (cli_stopped())
        return connection_failed(r, -LH_ECANCELED);
    if (r->store.fatal || !path_bytes)
        return end_by(r, CLI_EXIT_FAILED, "%s%s%s",
                      cli_tree_path_shown(path, path_bytes, shown, sizeof shown), path_bytes ? ": " : "",
                      r->store.reason);
    cli_tree_report_fault(&r->report, "", path, path_bytes, r->store.reason);
    /* A sender that was asked leaves at its end. */
    return (r->asked && r->phase == AT_END) || add_answer(r, &record);
}

/* ---- records --------------------------------------------------------------------------------------- */

/* Of ROOT, when the sender was asked. */
static uint8_t asked_flags(const struct receiver *r)
{
    return (r->report.dry_run ? CLI_TREE_DRY_RUN : 0) | (r->options->deletes ? CLI_TREE_DELETES : 0) |
           (r->options->xattrs ? CLI_TREE_XATTRS : 0) | (r->options->owners ? CLI_TREE_OWNERS : 0);
}

static bool on_root(struct receiver *r, const struct cli_tree_record *record)
{
    if (r->phase != AT_ROOT)
        return connection_failed(r, -LH_EPROTOCOL);
    if (record->number != CLI_TREE_VERSION)
        return connection_failed(r, -LH_EVERSION);
    if (r->asked && (record->path_bytes || record->flags != asked_flags(r)))
        return connection_failed(r, -LH_EPROTOCOL);
    r->pipe = record->flags & CLI_TREE_PIPE;
    if (r->pipe && record->flags & ~CLI_TREE_PIPE)
        return connection_failed(r, -LH_EPROTOCOL);
    r->report.dry_run = record->flags & CLI_TREE_DRY_RUN;
    r->deletes = record->flags & CLI_TREE_DELETES;
    if (r->deletes && !r->options->deletes)
        return end_by(r, CLI_EXIT_FAILED, "nothing is deleted here (--allow-delete at the receiver)");
    r->xattrs = record->flags & CLI_TREE_XATTRS;
    r->owners = record->flags & CLI_TREE_OWNERS;
    if (r->xattrs && !r->options->xattrs)
        return end_by(r, CLI_EXIT_FAILED,
                      "no extended attributes are taken here (--xattrs at the receiver)");
    if (r->owners && !r->options->owners)
        return end_by(r, CLI_EXIT_FAILED, "no owners are taken here (--owner at the receiver, by root)");
    if (!cli_tree_store_open(&r->store, r->options, record))
        return end_by(r, CLI_EXIT_FAILED, "%s", r->store.reason);
    r->phase = BETWEEN;
    if (!r->pipe)
        return true;
    memcpy(r->path, record->path, record->path_bytes);
    r->path_bytes = record->path_bytes;
    cli_tree_report_next(&r->report, r->path_bytes ? r->path : "-", r->path_bytes ? r->path_bytes : 1);
    r->phase = IN_FILE;
    return cli_tree_store_begin(&r->store, record) || end_by(r, CLI_EXIT_FAILED, "%s", r->store.reason);
}

static bool on_listed(struct receiver *r, const struct cli_tree_record *record)
{
    struct cli_tree_record answer;
    cli_tree_store_decide(&r->store, record, &answer);
    if (answer.kind == CLI_TREE_REFUSED) {
        answer.rest = r->store.reason;
        answer.rest_bytes = strlen(r->store.reason);
        cli_tree_report_fault(&r->report, "", record->path, record->path_bytes, r->store.reason);
    } else if (answer.kind == CLI_TREE_DECISIONS && answer.number == CLI_TREE_SKIP) {
        cli_tree_report_skip(&r->report, record->path, record->path_bytes);
    } else {
        cli_tree_report_expect(&r->report, record->size_bytes);
        if (r->store.dry_run && r->asked)
            cli_tree_report_file(&r->report, record->path, record->path_bytes, record->size_bytes, NULL);
        else
            r->report.files += r->store.dry_run;
        r->report.bytes += r->store.dry_run ? record->size_bytes : 0;
    }
    bool read = answer.kind == CLI_TREE_RESUME || answer.kind == CLI_TREE_CHANGES;
    /* Reading what is there takes time, in which the sender waits: what is decided goes out. */
    return add_decision(r, &answer) && (!read || flush_answers(r));
}

static bool on_folder_or_link(struct receiver *r, const struct cli_tree_record *record)
{
    bool done;
    if (record->kind == CLI_TREE_FOLDER) {
        done = cli_tree_store_folder(&r->store, record);
        r->report.folders += done;
    } else if (record->kind == CLI_TREE_FOLDER_END) {
        done = cli_tree_store_folder_end(&r->store, record);
    } else {
        done = record->kind == CLI_TREE_LINK ? cli_tree_store_link(&r->store, record)
                                             : cli_tree_store_hard_link(&r->store, record);
        r->report.links += done;
    }
    return done || entry_failed(r, record->path, record->path_bytes);
}

/* Of the open file, until its end; or of a folder or link. */
static bool on_attribute(struct receiver *r, const struct cli_tree_record *record)
{
    bool expected = record->kind == CLI_TREE_XATTR ? r->xattrs : r->owners;
    bool in_file = r->phase == IN_FILE || r->phase == IN_DROPPED;
    if (!expected || r->pipe || (!record->path_bytes && !in_file))
        return connection_failed(r, -LH_EPROTOCOL);
    if (record->path_bytes)
        return cli_tree_store_dress(&r->store, record) || entry_failed(r, record->path, record->path_bytes);
    if (r->phase == IN_FILE)
        cli_tree_dress_take(&r->store.dress, record);
    return true;
}

static bool on_file(struct receiver *r, const struct cli_tree_record *record)
{
    if (r->phase != BETWEEN || r->pipe || r->store.dry_run)
        return connection_failed(r, -LH_EPROTOCOL);
    memcpy(r->path, record->path, record->path_bytes);
    r->path_bytes = record->path_bytes;
    r->moved_bytes = record->number;
    cli_tree_report_next(&r->report, record->path, record->path_bytes);
    cli_tree_report_spared(&r->report, record->number);
    r->phase = IN_FILE;
    if (cli_tree_store_begin(&r->store, record))
        return true;
    r->phase = IN_DROPPED;
    return entry_failed(r, r->path, r->path_bytes);
}

/* Of the file that is replaced. */
static bool on_copy(struct receiver *r, const struct cli_tree_record *record)
{
    if (r->phase == IN_DROPPED)
        return true;
    if (r->phase != IN_FILE || r->pipe)
        return connection_failed(r, -LH_EPROTOCOL);
    if (cli_tree_store_copy(&r->store, record->number)) {
        r->moved_bytes += record->number;
        cli_tree_report_copied(&r->report, record->number);
        return true;
    }
    r->phase = IN_DROPPED;
    return entry_failed(r, r->path, r->path_bytes);
}

static bool on_content(struct receiver *r, const struct cli_tree_record *record)
{
    bool hole = record->kind == CLI_TREE_HOLE;
    if (r->phase == IN_DROPPED)
        return true;
    if (r->phase != IN_FILE)
        return connection_failed(r, -LH_EPROTOCOL);
    if (hole ? cli_tree_store_hole(&r->store, record->number)
             : cli_tree_store_data(&r->store, record->rest, record->rest_bytes)) {
        uint64_t bytes = hole ? record->number : record->rest_bytes;
        r->moved_bytes += bytes;
        if (hole)
            cli_tree_report_spared(&r->report, bytes);
        else
            cli_tree_report_moved(&r->report, bytes);
        return true;
    }
    r->phase = IN_DROPPED;
    return entry_failed(r, r->path, r->path_bytes);
}

static bool on_file_end(struct receiver *r, const struct cli_tree_record *record)
{
    bool dropped = r->phase == IN_DROPPED;
    if (r->phase != IN_FILE && !dropped)
        return connection_failed(r, -LH_EPROTOCOL);
    r->phase = BETWEEN;
    if (dropped)
        return true;
    bool sparse = r->store.file.sparse;
    if (!cli_tree_store_end(&r->store, record->digest))
        return entry_failed(r, r->path, r->path_bytes);
    cli_tree_report_file(&r->report, r->path, r->path_bytes, r->moved_bytes,
                         sparse ? NULL : record->digest);
    if (!*r->store.dress.reason)
        return true;
    snprintf(r->store.reason, sizeof r->store.reason, "%s", r->store.dress.reason);
    return entry_failed(r, r->path, r->path_bytes);
}

/* The sender could not read it to its end, and has counted it. */
static bool on_cancel(struct receiver *r)
{
    if (r->phase != IN_FILE && r->phase != IN_DROPPED)
        return connection_failed(r, -LH_EPROTOCOL);
    cli_tree_store_drop(&r->store, false);
    r->phase = BETWEEN;
    return true;
}

/* An entry that the sender cannot send, and has counted. */
static bool on_fault(struct receiver *r, const struct cli_tree_record *record)
{
    char text[CLI_TREE_TEXT_MAX + 16];
    snprintf(text, sizeof text, "at the sender: %.*s", (int)record->rest_bytes, record->rest);
    cli_text_clean(text, strlen(text));
    r->sender_reported++;
    cli_tree_report_refusal(&r->report, record->path, record->path_bytes, text);
    return true;
}

/* What ended it at the sender, before it began: no verdict is owed. */
static bool on_verdict(struct receiver *r, const struct cli_tree_record *record)
{
    char text[CLI_TREE_TEXT_MAX + 1];
    if (!r->asked || r->phase != AT_ROOT || !record->rest_bytes)
        return connection_failed(r, -LH_EPROTOCOL);
    memcpy(text, record->rest, record->rest_bytes);
    text[record->rest_bytes] = 0;
    cli_text_clean(text, record->rest_bytes);
    r->phase = AT_END;
    return end_by(r, CLI_EXIT_FAILED, "refused by the sender: %.200s", text);
}

static bool on_list(struct receiver *r, const struct cli_tree_record *record)
{
    const struct cli_tree_record end = {.kind = CLI_TREE_HELD_END};
    if (!r->deletes || r->phase != BETWEEN || r->held.decided)
        return connection_failed(r, -LH_EPROTOCOL);
    uint64_t first = r->held.count;
    const char *path = record->path_bytes ? record->path : ".";
    if (!cli_tree_held_list(&r->held, &r->store, record->path, record->path_bytes) &&
        !entry_failed(r, path, record->path_bytes ? record->path_bytes : 1))
        return false;
    for (uint64_t i = first; i < r->held.count; i++) { /* each entry */
        const struct cli_tree_holding *holding = cli_tree_held_entry(&r->held, i);
        const struct cli_tree_record held = {.kind = CLI_TREE_HELD,
                                             .flags = holding->folder ? CLI_TREE_IS_FOLDER : 0,
                                             .path = holding->path,
                                             .path_bytes = holding->path_bytes};
        if (!add_answer(r, &held))
            return false;
    }
    return add_answer(r, &end);
}

/* After a failure, of an entry or of the list, a sender asks for no deletion. */
static bool on_fates(struct receiver *r, const struct cli_tree_record *record)
{
    bool right = r->phase == BETWEEN && !r->report.failed &&
                 cli_tree_held_decide(&r->held, record->rest, record->rest_bytes);
    return right || connection_failed(r, -LH_EPROTOCOL);
}

/* What is decided, each folder after its content. */
static bool remove_extras(struct receiver *r)
{
    for (uint64_t i = 0; i < r->held.count; i++) {
        const struct cli_tree_holding *holding = cli_tree_held_entry(&r->held, i);
        if (!holding->removed)
            continue;
        if (cli_stopped())
            return connection_failed(r, -LH_ECANCELED);
        if (r->store.dry_run || cli_tree_store_remove(&r->store, holding))
            cli_tree_report_deletion(&r->report, holding->path, holding->path_bytes);
        else if (!entry_failed(r, holding->path, holding->path_bytes))
            return false;
    }
    return true;
}

static bool on_end(struct receiver *r, const struct cli_tree_record *record)
{
    if (r->phase != BETWEEN || record->number < r->sender_reported)
        return connection_failed(r, -LH_EPROTOCOL);
    r->sender_failed = record->number - r->sender_reported;
    if (r->held.decided && (r->report.failed || r->sender_failed))
        return connection_failed(r, -LH_EPROTOCOL);
    r->phase = AT_END;
    /* Who has asked for it is asked, when everything else is in place. */
    return r->asked || r->store.dry_run || remove_extras(r);
}

static bool on_record(struct receiver *r, const struct cli_tree_record *record)
{
    if (record->kind == CLI_TREE_VERDICT)
        return on_verdict(r, record);
    if ((r->phase == AT_ROOT && record->kind != CLI_TREE_ROOT) || r->phase == AT_END)
        return connection_failed(r, -LH_EPROTOCOL);
    switch ((int)record->kind) {
    case CLI_TREE_ROOT:
        return on_root(r, record);
    case CLI_TREE_FAULT:
        return on_fault(r, record);
    case CLI_TREE_LISTED:
        return r->pipe ? connection_failed(r, -LH_EPROTOCOL) : on_listed(r, record);
    case CLI_TREE_FOLDER:
    case CLI_TREE_LINK:
        return r->pipe ? connection_failed(r, -LH_EPROTOCOL) : on_folder_or_link(r, record);
    case CLI_TREE_FOLDER_END:
    case CLI_TREE_HARD_LINK:
        /* They would take the place of the open file's folder. */
        return r->phase == BETWEEN && !r->pipe ? on_folder_or_link(r, record)
                                               : connection_failed(r, -LH_EPROTOCOL);
    case CLI_TREE_FILE:
        return on_file(r, record);
    case CLI_TREE_DATA:
    case CLI_TREE_HOLE:
        return on_content(r, record);
    case CLI_TREE_COPY:
        return on_copy(r, record);
    case CLI_TREE_FILE_END:
        return on_file_end(r, record);
    case CLI_TREE_CANCEL:
        return on_cancel(r);
    case CLI_TREE_IDLE:
        return true;
    case CLI_TREE_XATTR:
    case CLI_TREE_OWNER:
        return on_attribute(r, record);
    case CLI_TREE_LIST:
        return on_list(r, record);
    case CLI_TREE_FATES:
        return on_fates(r, record);
    case CLI_TREE_END:
        return on_end(r, record);
    default:
        return connection_failed(r, -LH_EPROTOCOL);
    }
}

/* ---- messages -------------------------------------------------------------------------------------- */

static bool take_message(struct receiver *r, const uint8_t *data, size_t bytes)
{
    struct cli_tree_record record;
    for (size_t at = 0; at < bytes;) { /* each record of the message */
        int64_t used = cli_tree_decode(data + at, bytes - at, &record);
        if (used < 0)
            return connection_failed(r, -LH_EPROTOCOL);
        if (!on_record(r, &record))
            return false;
        at += (size_t)used;
    }
    cli_tree_report_progress(&r->report);
    return flush_answers(r);
}

static bool loses_place(struct receiver *r, lh_time since)
{
    bool slow = cli_pace_is_slow(&r->pace, r->waited_ns + cli_now() - since, r->came_bytes);
    return slow && r->options->crowded && atomic_load(r->options->crowded);
}

/* Waits for the next message, and leaves it in the ring. A sender that reads a slow disk, or a pipe, gives a
 * sign of life. */
static int await_message(struct receiver *r, struct lh_result *result)
{
    lh_time since = cli_now();
    int code = 0;
    while (!code && !cli_block_ring_full(&r->ring))
        code = cli_block_ring_post(&r->ring);
    if (code && cli_block_ring_empty(&r->ring))
        return code;
    while ((code = cli_block_ring_wait(&r->ring, CLI_SLICE_NS, result)) == -LH_ETIMEDOUT) {
        cli_tree_report_progress(&r->report);
        if (cli_stopped())
            return -LH_ECANCELED;
        if (cli_now() - since > CLI_DISK_TIMEOUT_NS || loses_place(r, since))
            return -LH_ETIMEDOUT;
    }
    if (code)
        return code;
    if (loses_place(r, since))
        return -LH_ETIMEDOUT;
    r->waited_ns += cli_now() - since;
    r->came_bytes += result->bytes;
    return result->error == -LH_ETRUNCATED ? -LH_EPROTOCOL : result->error;
}

static bool open_rings(struct receiver *r, bool pipe)
{
    uint32_t blocks = pipe ? cli_pipe_blocks(r->connection) : 0;
    int code = cli_block_ring_open(&r->ring, r->connection, blocks);
    if (!code && !cli_tree_packer_open(&r->answers, r->connection, CLI_TREE_RING_SHORT, &r->stop))
        code = r->answers.code;
    r->answers.stall_ns = CLI_DISK_TIMEOUT_NS;
    return !code || connection_failed(r, code);
}

/* A message with all that is asked for. */
static bool ask(struct receiver *r, const struct cli_tree_wish *wish)
{
    const struct cli_tree_record get = {
        .kind = CLI_TREE_GET, .flags = asked_flags(r), .number = CLI_TREE_VERSION};
    bool added = cli_tree_packer_add(&r->answers, &get);
    for (unsigned i = 0; i < wish->count && added; i++) {
        const struct cli_tree_record want = {
            .kind = CLI_TREE_WANT, .path = wish->paths[i], .path_bytes = strlen(wish->paths[i])};
        added = cli_tree_packer_add(&r->answers, &want);
    }
    return (added && cli_tree_packer_flush(&r->answers)) || connection_failed(r, r->answers.code);
}

static bool receive(struct receiver *r)
{
    while (r->phase != AT_END) { /* each message of the stream */
        struct lh_result result;
        int code = await_message(r, &result);
        if (code)
            return connection_failed(r, code);
        if (!take_message(r, cli_block_ring_tail(&r->ring), (size_t)result.bytes))
            return false;
        cli_block_ring_release(&r->ring);
    }
    if (!cli_tree_store_sync(&r->store))
        return end_by(r, CLI_EXIT_FAILED, "%s", r->store.reason);
    r->status = r->report.failed || r->sender_failed ? CLI_EXIT_FAILED : CLI_EXIT_OK;
    return true;
}

/* A peer that is lost does not receive it: no error. */
static void send_verdict(struct receiver *r)
{
    bool stopped = *r->reason && (cli_stopped() || r->status == CLI_EXIT_LOST);
    const struct cli_tree_record verdict = {.kind = CLI_TREE_VERDICT,
                                            .flags = stopped ? CLI_TREE_STOPPED : 0,
                                            .number = r->report.failed - r->report.refused,
                                            .rest = r->reason,
                                            .rest_bytes = strlen(r->reason)};
    r->answers.stall_ns = CLI_ABORT_TIMEOUT_NS;
    if (r->answers.ring.memory && flush_decisions(r) && cli_tree_packer_add(&r->answers, &verdict))
        cli_tree_packer_drain(&r->answers);
}

static struct receiver *begin(const struct cli_tree_options *options, struct lh_connection *connection)
{
    struct receiver *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->options = options;
    r->connection = connection;
    r->report = (struct cli_tree_report){
        .done = "received", .receives = true, .json = options->json, .names_peer = options->names_peer};
    r->store.root = r->store.mounted = r->store.only = r->store.file.file = r->store.file.old =
        r->store.list_at.folder = r->store.data_at.folder = -1;
    r->store.options = options;
    cli_tree_report_begin(&r->report, lh_peer_name(connection));
    return r;
}

/* What is kept of the file that was open. */
static void add_kept(struct receiver *r)
{
    char kept[LH_FORMAT_MAX], size[LH_FORMAT_MAX], words[SHOWN_MAX];
    lh_format_size(r->store.kept_bytes, kept, sizeof kept);
    lh_format_size(r->store.kept_of, size, sizeof size);
    snprintf(words, sizeof words, "; kept %s of %s (the same command continues)", kept, size);
    size_t capacity = sizeof r->reason - strlen(words);
    size_t used = strnlen(r->reason, capacity - 1);
    snprintf(r->reason + used, sizeof r->reason - used, "%s", words);
}

/* By who has asked for the transfer. */
static bool confirm_removal(struct receiver *r)
{
    char shown[CLI_TREE_EXTRAS_SHOWN][CLI_TREE_SHOWN_MAX];
    enum cli_tree_answer answer = CLI_TREE_NO_ANSWER;
    uint64_t count = cli_tree_held_removed(&r->held, shown);
    if (!count || r->confirmed || r->report.dry_run)
        return count;
    cli_tree_question_ask(count, "here", shown);
    while (answer == CLI_TREE_NO_ANSWER && !cli_stopped())
        answer = cli_tree_question_look();
    if (answer == CLI_TREE_NO)
        cli_note("nothing is deleted");
    return answer == CLI_TREE_YES;
}

/* The server does not wait for the answer. */
static void remove_here(struct receiver *r)
{
    if (!confirm_removal(r)) {
        if (cli_stopped())
            connection_failed(r, -LH_ECANCELED);
        return;
    }
    if (remove_extras(r) && !cli_tree_store_sync(&r->store))
        end_by(r, CLI_EXIT_FAILED, "%s", r->store.reason);
    else if (cli_tree_report_failures(&r->report))
        r->status = CLI_EXIT_FAILED;
}

static int end(struct receiver *r)
{
    bool lost_attributes = r->store.attributes_lost, asks = r->asked && r->deletes;
    bool whole = asks && r->phase == AT_END && r->status == CLI_EXIT_OK;
    if (whole) {
        send_verdict(r);
        remove_here(r);
    } else if (asks && !*r->reason) {
        cli_note("nothing is deleted: some entries failed");
    }
    /* Unfinished files are settled before the peer may try again. */
    cli_tree_store_close(&r->store);
    if (*r->reason && r->store.kept_bytes)
        add_kept(r);
    if (!whole)
        send_verdict(r);
    r->report.sender_failed = r->sender_failed;
    cli_tree_report_end(&r->report, r->reason, r->status, r->connection, NULL);
    if (lost_attributes)
        cli_note("times or permissions of some files not preserved by the file system");
    int status = r->status;
    cli_tree_packer_close(&r->answers);
    cli_block_ring_close(&r->ring);
    cli_tree_held_close(&r->held);
    free(r);
    return status;
}

int cli_tree_receive(const struct cli_tree_options *options, struct lh_connection *connection,
                     const uint8_t *first, size_t first_bytes)
{
    struct receiver *r = begin(options, connection);
    if (!r)
        return cli_failed("no memory");
    struct cli_tree_record root;
    bool pipe = !cli_tree_first(first, first_bytes, &root) && root.flags & CLI_TREE_PIPE;
    if (open_rings(r, pipe) && take_message(r, first, first_bytes))
        receive(r);
    return end(r);
}

int cli_tree_get(const struct cli_tree_options *options, struct lh_connection *connection,
                 const struct cli_tree_wish *wish)
{
    struct receiver *r = begin(options, connection);
    if (!r)
        return cli_failed("no memory");
    r->asked = true;
    r->confirmed = wish->confirmed;
    r->report.dry_run = wish->dry_run;
    if (open_rings(r, false) && ask(r, wish))
        receive(r);
    return end(r);
}
