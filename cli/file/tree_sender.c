/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/file/tree_sender.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <longhaul/connection.h>
#include <longhaul/error.h>

#include "cli/file/file_blocks.h"
#include "cli/file/tree_delete.h"
#include "cli/file/tree_list.h"
#include "cli/file/tree_message.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_report.h"
#include "cli/file/tree_source.h"
#include "cli/file/tree_walk.h"
#include "cli/terminal/terminal.h"

struct sender {
    const struct cli_tree_sending *sending;
    struct lh_connection *connection;
    struct cli_tree_list list;
    struct cli_tree_packer walk_packer, packer;
    struct cli_block_ring answers;
    struct cli_tree_source source;
    struct cli_tree_report report;
    _Atomic bool stop;     /* for the walker and the reader of files */
    _Atomic bool sent;     /* END is out: the verdict comes next */
    _Atomic bool hopeless; /* no verdict will come */
    bool stopped;          /* it says that the same command continues */
    bool verdict;          /* it came; the rest belongs to the thread of answers until that has ended */
    int answers_code;      /* what ended the answers */
    int code;              /* what ended the files */
    int input_error;       /* errno of standard input */
    struct cli_tree_judge judge; /* of the thread of answers, until all lists have ended */
    _Atomic unsigned lists_asked, lists_ended;
    struct cli_pace pace; /* of the thread of answers, from paced_ns on */
    lh_time paced_ns;
    struct lh_bottleneck_report bottleneck;
    char path[CLI_TREE_PATH_MAX + 1]; /* of an entry that the receiver refused */
    char reason[CLI_TREE_TEXT_MAX + 64];
};

static void stop_all(struct sender *s)
{
    atomic_store(&s->stop, true);
    cli_tree_list_stop(&s->list);
}

/* ---- answers --------------------------------------------------------------------------------------- */

static void copy_text(const struct cli_tree_record *record, char out[CLI_TREE_TEXT_MAX + 1])
{
    memcpy(out, record->rest, record->rest_bytes);
    out[record->rest_bytes] = 0;
    cli_text_clean(out, record->rest_bytes);
}

/* A decision on the next file. */
static bool decide(struct sender *s, const struct cli_tree_record *answer)
{
    char text[CLI_TREE_TEXT_MAX + 1];
    uint64_t size_bytes;
    if (!cli_tree_list_decide(&s->list, answer, s->path, &size_bytes))
        return false;
    if (answer->kind == CLI_TREE_REFUSED) {
        copy_text(answer, text);
        cli_tree_report_refusal(&s->report, s->path, strlen(s->path), text);
    } else if (answer->kind != CLI_TREE_DECISIONS || answer->number == CLI_TREE_SEND) {
        cli_tree_report_expect(&s->report, size_bytes);
    }
    return true;
}

static bool take_decisions(struct sender *s, const struct cli_tree_record *record)
{
    for (size_t i = 0; i < record->rest_bytes; i++) {
        const struct cli_tree_record one = {.kind = CLI_TREE_DECISIONS, .number = (uint8_t)record->rest[i]};
        if (one.number > CLI_TREE_SEND || !decide(s, &one))
            return false;
    }
    return true;
}

/* An entry that the receiver has. */
static bool take_held(struct sender *s, const struct cli_tree_record *record)
{
    if (atomic_load(&s->lists_asked) == atomic_load(&s->lists_ended))
        return false;
    int fate = cli_tree_judge_next(&s->judge, record->path, record->path_bytes,
                                   record->flags & CLI_TREE_IS_FOLDER);
    if (fate == CLI_TREE_REMOVE && s->sending->dry_run)
        cli_tree_report_deletion(&s->report, record->path, record->path_bytes);
    return fate >= 0;
}

static bool take_held_end(struct sender *s)
{
    if (atomic_load(&s->lists_asked) == atomic_load(&s->lists_ended))
        return false;
    atomic_fetch_add(&s->lists_ended, 1);
    return true;
}

/* False: it is none that a receiver sends here. */
static bool take_answer(struct sender *s, const struct cli_tree_record *record)
{
    char text[CLI_TREE_TEXT_MAX + 1];
    switch ((int)record->kind) {
    case CLI_TREE_DECISIONS:
        return take_decisions(s, record);
    case CLI_TREE_RESUME:
    case CLI_TREE_CHANGES:
    case CLI_TREE_REFUSED:
        return record->number % CLI_BLOCK_BYTES == 0 && decide(s, record);
    case CLI_TREE_FAULT:
        copy_text(record, text);
        cli_tree_report_refusal(&s->report, record->path, record->path_bytes, text);
        /* Behind the end of all only what could not be deleted fails. */
        if (atomic_load(&s->sent) && s->report.deleted)
            s->report.deleted--;
        return true;
    case CLI_TREE_HELD:
        return take_held(s, record);
    case CLI_TREE_HELD_END:
        return take_held_end(s);
    case CLI_TREE_VERDICT:
        copy_text(record, text);
        s->stopped = *text && record->flags & CLI_TREE_STOPPED;
        if (*text)
            snprintf(s->reason, sizeof s->reason, "%s%s",
                     s->stopped ? "" : "refused by the receiver: ", text);
        s->verdict = *text || (atomic_load(&s->sent) && record->number == s->report.refused);
        return s->verdict;
    default:
        return false;
    }
}

static int take_answers(struct sender *s, const uint8_t *data, size_t bytes)
{
    struct cli_tree_record record;
    if (cli_tree_first(data, bytes, &record) == -LH_EVERSION)
        return -LH_EVERSION;
    for (size_t at = 0; at < bytes;) { /* each record of the message */
        int64_t used = cli_tree_decode(data + at, bytes - at, &record);
        if (used < 0 || s->verdict || !take_answer(s, &record))
            return -LH_EPROTOCOL;
        at += (size_t)used;
    }
    return 0;
}

static bool loses_place(struct sender *s)
{
    bool slow = cli_pace_is_slow(&s->pace, cli_now() - s->paced_ns, cli_tree_report_work(&s->report));
    return slow && s->sending->crowded && atomic_load(s->sending->crowded);
}

/* The next message of the receiver. */
static int next_answer(struct sender *s)
{
    struct lh_result result;
    lh_time since = cli_now();            /* or when all was sent: the receiver syncs then */
    bool limited = s->sending->count > 0; /* who reads a pipe may take any time */
    int code = 0;
    if (loses_place(s))
        return -LH_ETIMEDOUT;
    while (!code && !cli_block_ring_full(&s->answers))
        code = cli_block_ring_post(&s->answers);
    /* Behind what has come there may be nothing to post for any more. */
    if (code && cli_block_ring_empty(&s->answers))
        return code;
    while ((code = cli_block_ring_wait(&s->answers, CLI_SLICE_NS, &result)) == -LH_ETIMEDOUT) {
        cli_tree_report_progress(&s->report);
        if (cli_stopped() || atomic_load(&s->hopeless))
            return -LH_ECANCELED;
        since = limited && atomic_load(&s->sent) ? since : cli_now();
        if (loses_place(s) || cli_now() - since > cli_disk_timeout(cli_tree_report_bytes(&s->report)))
            return -LH_ETIMEDOUT;
    }
    if (!code)
        code = result.error == -LH_ETRUNCATED ? -LH_EPROTOCOL : result.error;
    if (!code)
        code = take_answers(s, cli_block_ring_tail(&s->answers), (size_t)result.bytes);
    if (!code)
        cli_block_ring_release(&s->answers);
    cli_tree_report_progress(&s->report);
    return code;
}

static void *run_answers(void *argument)
{
    struct sender *s = argument;
    while (!s->answers_code && !s->verdict)
        s->answers_code = next_answer(s);
    /* A good one comes when all was sent. */
    if (!s->verdict || *s->reason)
        stop_all(s);
    return NULL;
}

/* ---- walker ---------------------------------------------------------------------------------------- */

static void *run_walk(void *argument)
{
    struct sender *s = argument;
    const struct cli_tree_walk walk = {.operands = s->sending->operands,
                                       .count = s->sending->count,
                                       .follow = s->sending->follow,
                                       .rules = s->sending->rules,
                                       .owners = s->sending->owners && !s->sending->dry_run,
                                       .list = &s->list,
                                       .packer = &s->walk_packer,
                                       .report = &s->report};
    if (!cli_tree_walk(&walk))
        stop_all(s);
    return NULL;
}

/* ---- files ----------------------------------------------------------------------------------------- */

static bool send_entry(struct sender *s, const struct cli_tree_entry *entry)
{
    s->packer.stall_ns = cli_disk_timeout(cli_tree_list_largest(&s->list));
    struct cli_tree_record record = {.kind = entry->kind,
                                     .attributes = entry->attributes,
                                     .size_bytes = entry->size_bytes,
                                     .path = entry->path,
                                     .path_bytes = entry->path_bytes,
                                     .rest = entry->rest,
                                     .rest_bytes = entry->rest_bytes};
    if (entry->kind == CLI_TREE_HARD_LINK) {
        cli_output_lock();
        s->report.links++;
        cli_output_unlock();
    }
    if (entry->kind == CLI_TREE_LISTED && entry->state == CLI_TREE_SKIPPED)
        cli_tree_report_skip(&s->report, entry->path, entry->path_bytes);
    if (entry->kind == CLI_TREE_LISTED && entry->state == CLI_TREE_WANTED && s->sending->dry_run) {
        cli_tree_report_file(&s->report, entry->path, entry->path_bytes, entry->size_bytes, NULL);
        cli_tree_report_moved(&s->report, entry->size_bytes);
    } else if (entry->kind == CLI_TREE_LISTED && entry->state == CLI_TREE_WANTED) {
        return cli_tree_source_send(&s->source, &s->sending->operands[entry->operand], entry);
    }
    if (entry->kind == CLI_TREE_FOLDER_END && !s->sending->dry_run &&
        !cli_tree_source_folder(&s->source, &s->sending->operands[entry->operand], entry))
        return false;
    return entry->kind == CLI_TREE_LISTED || cli_tree_packer_add(&s->packer, &record);
}

/* Waits for the next entry; what is packed is sent before. Before it decides, the receiver may have to write
 * what it was sent, and to read what it has of a file. */
static enum cli_tree_next next_entry(struct sender *s, struct cli_tree_entry **entry)
{
    lh_time since = cli_now(), asked = since;
    enum cli_tree_next next = cli_tree_list_take(&s->list, 0, entry);
    if (next == CLI_TREE_NONE_YET && !cli_tree_packer_flush(&s->packer))
        return CLI_TREE_NO_MORE;
    while (next == CLI_TREE_NONE_YET && !cli_stopped()) {
        next = cli_tree_list_take(&s->list, CLI_SLICE_NS, entry);
        if (next == CLI_TREE_NONE_YET && !cli_tree_packer_idle(&s->packer, &since))
            return CLI_TREE_NO_MORE;
        uint64_t bytes = cli_tree_list_largest(&s->list) + cli_tree_report_bytes(&s->report);
        asked = cli_tree_list_awaits(&s->list) ? asked : cli_now();
        if (next == CLI_TREE_NONE_YET && cli_now() - asked > cli_disk_timeout(bytes)) {
            s->packer.code = -LH_ETIMEDOUT;
            return CLI_TREE_NO_MORE;
        }
    }
    return next;
}

static bool send_entries(struct sender *s)
{
    struct cli_tree_entry *entry = NULL;
    bool going = true;
    while (going && next_entry(s, &entry) == CLI_TREE_NEXT) {
        going = send_entry(s, entry);
        cli_tree_entry_free(entry);
    }
    return going && !cli_stopped() && !atomic_load(&s->stop);
}

static bool send_pipe(struct sender *s)
{
    uint8_t digest[CLI_DIGEST_BYTES];
    cli_tree_report_next(&s->report, "-", 1);
    bool sent = cli_tree_source_pipe(&s->source, STDIN_FILENO, &s->input_error);
    cli_digest_get(&s->source.digest, digest);
    if (sent)
        cli_tree_report_file(&s->report, "-", 1, cli_tree_report_bytes(&s->report), digest);
    return sent;
}

/* ---- deletion -------------------------------------------------------------------------------------- */

#define LISTS_PAUSE_NS (2 * LH_NS_PER_MS) /* looks for their end this often */

static bool ask_list(struct sender *s, const char *path)
{
    const struct cli_tree_record list = {.kind = CLI_TREE_LIST, .path = path, .path_bytes = strlen(path)};
    atomic_fetch_add(&s->lists_asked, 1);
    return cli_tree_packer_add(&s->packer, &list);
}

/* Of each folder that was sent: all that is in it. */
static bool ask_lists(struct sender *s)
{
    struct stat status;
    const struct cli_tree_sending *sending = s->sending;
    for (unsigned i = 0; i < sending->count; i++)
        if (!*sending->operands[i].name)
            return ask_list(s, "") && cli_tree_packer_flush(&s->packer);
    for (unsigned i = 0; i < sending->count; i++) {
        const struct cli_tree_operand *operand = &sending->operands[i];
        bool found =
            !fstatat(operand->folder, operand->name, &status, sending->follow ? 0 : AT_SYMLINK_NOFOLLOW);
        if (found && S_ISDIR(status.st_mode) && !ask_list(s, operand->name))
            return false;
    }
    return cli_tree_packer_flush(&s->packer);
}

static bool await_lists(struct sender *s)
{
    lh_time began = cli_now(), since = began;
    const struct timespec pause = {.tv_nsec = LISTS_PAUSE_NS};
    lh_time limit_ns =
        cli_disk_timeout(cli_tree_list_largest(&s->list) + cli_tree_report_bytes(&s->report));
    while (atomic_load(&s->lists_ended) < atomic_load(&s->lists_asked)) {
        if (cli_stopped() || atomic_load(&s->stop) || !cli_tree_packer_idle(&s->packer, &since))
            return false;
        if (cli_now() - began > limit_ns) {
            s->packer.code = -LH_ETIMEDOUT;
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

/* False: no; or a message could not be sent, or a signal came. */
static bool confirm(struct sender *s)
{
    enum cli_tree_answer answer = CLI_TREE_NO_ANSWER;
    lh_time since = cli_now();
    if (s->sending->confirmed || s->sending->asked)
        return true;
    cli_tree_question_ask(s->judge.removed, lh_peer_name(s->connection), s->judge.shown);
    while (answer == CLI_TREE_NO_ANSWER && !cli_stopped() && !atomic_load(&s->stop) &&
           cli_tree_packer_idle(&s->packer, &since))
        answer = cli_tree_question_look();
    return answer == CLI_TREE_YES;
}

static bool send_fates(struct sender *s)
{
    const uint64_t part = CLI_TREE_MESSAGE_MAX / 2;
    for (uint64_t at = 0; at < s->judge.judged; at += part) { /* each part of them */
        uint64_t left = s->judge.judged - at;
        const struct cli_tree_record fates = {.kind = CLI_TREE_FATES,
                                              .rest = s->judge.fates + at,
                                              .rest_bytes = (size_t)(left < part ? left : part)};
        if (!cli_tree_packer_add(&s->packer, &fates))
            return false;
    }
    s->report.deleted = s->sending->asked || s->sending->dry_run ? s->report.deleted : s->judge.removed;
    return true;
}

/* What the receiver has besides, when all else has arrived. Where something is missing that the list was to
 * have, nothing is deleted. */
static bool send_deletions(struct sender *s)
{
    uint64_t failed = cli_tree_report_failures(&s->report);
    if (!failed && !(ask_lists(s) && await_lists(s)))
        return false;
    failed = cli_tree_report_failures(&s->report);
    if (failed || s->judge.error) {
        s->report.deleted = 0;
        if (s->judge.error)
            cli_tree_report_fault(&s->report, "", ".", 1, strerror(s->judge.error));
        cli_note("nothing is deleted: %" PRIu64 " entr%s failed", failed + !failed,
                 failed > 1 ? "ies" : "y");
        return true;
    }
    if (!s->judge.removed)
        return true;
    if (confirm(s))
        return send_fates(s);
    if (!cli_stopped() && !atomic_load(&s->stop) && !s->packer.code)
        cli_note("nothing is deleted");
    return !s->packer.code;
}

static bool send_end(struct sender *s)
{
    const struct cli_tree_record end = {.kind = CLI_TREE_END, .number = cli_tree_report_own(&s->report)};
    if (!cli_tree_packer_add(&s->packer, &end))
        return false;
    /* Before it is out: the verdict may come at once. */
    atomic_store(&s->sent, true);
    if (!cli_tree_packer_drain(&s->packer))
        return false;
    if (lh_connection_bottleneck(s->connection, &s->bottleneck))
        s->bottleneck.bottleneck = LH_BOTTLENECK_NONE;
    return true;
}

/* ---- whole ----------------------------------------------------------------------------------------- */

static int begin(struct sender *s)
{
    uint32_t blocks = s->sending->count ? 0 : cli_pipe_blocks(s->connection);
    const struct cli_tree_record root = {
        .kind = CLI_TREE_ROOT,
        .flags = (s->sending->count ? 0 : CLI_TREE_PIPE) | (s->sending->dry_run ? CLI_TREE_DRY_RUN : 0) |
                 (s->sending->deletes ? CLI_TREE_DELETES : 0) | (s->sending->xattrs ? CLI_TREE_XATTRS : 0) |
                 (s->sending->owners ? CLI_TREE_OWNERS : 0),
        .number = CLI_TREE_VERSION,
        .path = s->sending->folder,
        .path_bytes = strlen(s->sending->folder),
    };
    int code = cli_tree_list_open(&s->list);
    if (!code)
        code = cli_block_ring_open(&s->answers, s->connection, CLI_TREE_RING_SHORT);
    if (!code && !cli_tree_packer_open(&s->walk_packer, s->connection, CLI_TREE_RING_SHORT, &s->stop))
        code = s->walk_packer.code;
    if (!code && !cli_tree_packer_open(&s->packer, s->connection, blocks, &s->stop))
        code = s->packer.code;
    s->packer.stall_ns = CLI_DISK_TIMEOUT_NS; /* of a tree without files */
    if (!code)
        code = cli_tree_source_open(&s->source, &s->packer, &s->report, s->sending->follow);
    s->source.reading =
        (struct cli_tree_reading){.xattrs = s->sending->xattrs, .owners = s->sending->owners};
    if (!code && (!cli_tree_packer_add(&s->packer, &root) || !cli_tree_packer_flush(&s->packer)))
        code = s->packer.code;
    return code;
}

/* What both threads do while this one sends the files. */
static bool run(struct sender *s)
{
    pthread_t walk, answers;
    bool walks = s->sending->count > 0, sent;
    if (pthread_create(&answers, NULL, run_answers, s))
        return false;
    if (walks && pthread_create(&walk, NULL, run_walk, s)) {
        walks = false;
        stop_all(s);
    }
    sent = (s->sending->count ? send_entries(s) : send_pipe(s)) &&
           (!s->sending->deletes || send_deletions(s)) && send_end(s);
    if (!sent)
        stop_all(s);
    if (walks)
        pthread_join(walk, NULL);
    s->code = s->walk_packer.code ? s->walk_packer.code : s->packer.code;
    /* A connection that has ended ends the answers, after those that came before. */
    if (!sent && !lh_connection_error(s->connection))
        atomic_store(&s->hopeless, true);
    pthread_join(answers, NULL);
    return sent;
}

static int status_of(struct sender *s)
{
    int code = s->code && s->code != -LH_ECANCELED ? s->code : s->answers_code;
    if (cli_stopped()) {
        snprintf(s->reason, sizeof s->reason, "interrupted (the same command continues)");
        return cli_stopped();
    }
    if (s->input_error)
        snprintf(s->reason, sizeof s->reason, "standard input: %s", strerror(s->input_error));
    if (s->verdict && !*s->reason)
        return s->report.failed ? CLI_EXIT_FAILED : CLI_EXIT_OK;
    if (*s->reason)
        return s->stopped ? CLI_EXIT_LOST : CLI_EXIT_FAILED;
    bool wrong = code == -LH_EPROTOCOL || code == -LH_EVERSION || code == -LH_ENOMEM;
    snprintf(s->reason, sizeof s->reason, "%s%s",
             code ? cli_file_strerror(s->connection, code, "receiver") : "no memory or no thread",
             code && !wrong ? " (the same command continues)" : "");
    return code && !wrong ? CLI_EXIT_LOST : CLI_EXIT_FAILED;
}

static void clean_up(struct sender *s)
{
    cli_tree_packer_close(&s->packer);
    cli_tree_packer_close(&s->walk_packer);
    cli_block_ring_close(&s->answers);
    cli_tree_source_close(&s->source);
    cli_tree_list_close(&s->list);
    cli_tree_judge_close(&s->judge);
}

int cli_tree_send(const struct cli_tree_sending *sending, struct lh_connection *connection)
{
    struct sender *s = calloc(1, sizeof *s);
    if (!s)
        return cli_failed("no memory");
    s->sending = sending;
    s->connection = connection;
    s->paced_ns = cli_now();
    s->judge = (struct cli_tree_judge){.operands = sending->operands,
                                       .count = sending->count,
                                       .follow = sending->follow,
                                       .rules = sending->rules,
                                       .at = {.root = -1, .folder = -1}};
    s->report = (struct cli_tree_report){.done = "sent",
                                         .json = sending->json,
                                         .names_peer = sending->names_peer,
                                         .dry_run = sending->dry_run};
    cli_tree_report_begin(&s->report, lh_peer_name(connection));
    s->code = begin(s);
    bool sent = !s->code && run(s);
    int status = status_of(s);
    cli_tree_report_end(&s->report, s->reason, status, connection, sent ? &s->bottleneck : NULL);
    clean_up(s);
    free(s);
    return status;
}
