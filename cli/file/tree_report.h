/*
 * tree_report.h - what either side of a tree prints: faults, progress, a summary, or lines of JSON.
 *
 * Any thread may call.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_REPORT_H
#define LH_CLI_FILE_TREE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/connection.h>

#include "cli/file/file_blocks.h"
#include "cli/terminal/terminal.h"

/* Lines on entries that failed; of more, their number. The peer chooses how many there are. */
#define CLI_TREE_FAULTS_SHOWN 1000u

#define CLI_TREE_LABEL_MAX 256
#define CLI_TREE_PEER_MAX  64

struct cli_tree_report {
    const char *done; /* "sent", "received" */
    bool json;
    bool names_peer; /* one of several transfers of this process */
    bool receives;
    bool dry_run;
    uint64_t files, skipped, folders, links, failed;
    uint64_t deleted;        /* at the receiver; of a dry run: that would be */
    uint64_t total_bytes;    /* of the files that are to be sent, as far as it is known */
    uint64_t bytes;          /* of those, sent or written */
    uint64_t spared_bytes;   /* of those, holes and what was there before */
    bool copied;             /* some of those from the file that is replaced */
    uint64_t compared_bytes; /* of unfinished files at the receiver */
    uint64_t refused;        /* of the failed: at the receiver, as it has reported */
    uint64_t sender_failed;  /* entries that failed at the sender: only their number is known here */
    lh_time started_ns, printed_ns;
    struct cli_progress progress;
    char label[CLI_TREE_LABEL_MAX]; /* of the bar: the only file, or how many */
    char name[CLI_TREE_LABEL_MAX];  /* of the file that is being sent or written */
    char peer[CLI_TREE_PEER_MAX];
    bool digest_known; /* of the last file: of all its bytes */
    uint8_t digest[CLI_DIGEST_BYTES];
};

/* peer: its name, for JSON. The report must stay where it is. */
void cli_tree_report_begin(struct cli_tree_report *report, const char *peer);
/* The next file is being sent or written. */
void cli_tree_report_next(struct cli_tree_report *report, const char *path, size_t path_bytes);
/* A file was sent or written; a dry run names it. digest: of all its bytes, or NULL. */
void cli_tree_report_file(struct cli_tree_report *report, const char *path, size_t path_bytes,
                          uint64_t bytes, const uint8_t digest[CLI_DIGEST_BYTES]);
void cli_tree_report_skip(struct cli_tree_report *report, const char *path, size_t path_bytes);
/* An entry of the receiver was deleted; a dry run names it. */
void cli_tree_report_deletion(struct cli_tree_report *report, const char *path, size_t path_bytes);
/* An entry failed: a line, with the prefix (a folder as typed, or "") before its path. */
void cli_tree_report_fault(struct cli_tree_report *report, const char *prefix, const char *path,
                           size_t path_bytes, const char *reason);
/* The same, as the receiver has reported it. */
void cli_tree_report_refusal(struct cli_tree_report *report, const char *path, size_t path_bytes,
                             const char *reason);
/* Entries that failed at this side; at either. */
uint64_t cli_tree_report_own(struct cli_tree_report *report);
uint64_t cli_tree_report_failures(struct cli_tree_report *report);
uint64_t cli_tree_report_bytes(struct cli_tree_report *report);
void cli_tree_report_expect(struct cli_tree_report *report, uint64_t bytes);
void cli_tree_report_moved(struct cli_tree_report *report, uint64_t bytes);
void cli_tree_report_spared(struct cli_tree_report *report, uint64_t bytes);
/* The same, of the file that is replaced. */
void cli_tree_report_copied(struct cli_tree_report *report, uint64_t bytes);
/* Read again of what an earlier transfer sent. */
void cli_tree_report_compared(struct cli_tree_report *report, uint64_t bytes);
/* What a sender has done for its peer, for cli_pace_is_slow(). */
uint64_t cli_tree_report_work(struct cli_tree_report *report);
/* Moves the bar, or prints a line of JSON each second. */
void cli_tree_report_progress(struct cli_tree_report *report);

/* The summary, after everything else. reason: what ended the transfer early, or "". connection: whose numbers
 * are added. bottleneck: of a sender that has sent all, or NULL. */
void cli_tree_report_end(struct cli_tree_report *report, const char *reason, int status,
                         struct lh_connection *connection, const struct lh_bottleneck_report *bottleneck);

#endif
