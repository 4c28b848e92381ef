/*
 * tree_list.h - entries of a tree between its walker, the receiver's decisions and the sender of files.
 *
 * The walker adds entries at the end, decisions come in their order, the sender takes them from the start: a
 * bounded queue. An entry is ready when what precedes it in the list was sent and, for a file, when it is
 * decided on. Any of the three threads may call its part.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_LIST_H
#define LH_CLI_FILE_TREE_LIST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/types.h>

#include "cli/file/file_blocks.h"
#include "cli/file/tree_records.h"

/* Bounds of the memory: entries, and bytes of their paths. */
#define CLI_TREE_ENTRIES_MAX    65536u
#define CLI_TREE_LIST_BYTES_MAX ((size_t)16 << 20)
/* Hashes of the receiver's files; of a file beyond that all is sent. */
#define CLI_TREE_LIST_CHANGES_MAX ((size_t)64 << 20)

enum cli_tree_state { CLI_TREE_UNDECIDED, CLI_TREE_SKIPPED, CLI_TREE_WANTED, CLI_TREE_DENIED };

struct cli_tree_entry {
    enum cli_tree_kind kind; /* CLI_TREE_LISTED, CLI_TREE_FOLDER_END, CLI_TREE_HARD_LINK */
    enum cli_tree_state state;
    unsigned operand; /* of the command line */
    struct cli_file_attributes attributes;
    uint64_t size_bytes;
    uint64_t resume_bytes; /* wanted from there on, if what precedes has that digest */
    uint8_t digest[CLI_DIGEST_BYTES];
    uint8_t *changes; /* tree_changes.h; or NULL */
    size_t changes_bytes;
    const char *path, *rest; /* end with a zero */
    size_t path_bytes, rest_bytes;
    char text[];
};

struct cli_tree_list {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct cli_tree_entry **entries; /* a ring of CLI_TREE_ENTRIES_MAX */
    uint64_t added, announced, decided, taken;
    size_t bytes, changes_bytes;
    uint64_t largest_bytes; /* of the files so far */
    bool whole;             /* nothing else is added */
    bool stopped;
};

/* 0 or -LH_ENOMEM. */
int cli_tree_list_open(struct cli_tree_list *list);
void cli_tree_list_close(struct cli_tree_list *list);
/* Ends all waits, now and later. */
void cli_tree_list_stop(struct cli_tree_list *list);

/* The size of the largest file so far. */
uint64_t cli_tree_list_largest(struct cli_tree_list *list);

/* Whether the receiver was asked about the next entry, and has not decided. */
bool cli_tree_list_awaits(struct cli_tree_list *list);

/* ---- walker ---------------------------------------------------------------------------------------- */

/* Whether the next entry would have to wait. */
bool cli_tree_list_full(struct cli_tree_list *list);
/* Copies kind, operand, attributes, size, path and rest of a record. Waits for capacity. False: stopped, or
 * no memory. */
bool cli_tree_list_add(struct cli_tree_list *list, const struct cli_tree_record *record, unsigned operand);
/* The records of all entries so far were sent. */
void cli_tree_list_announce(struct cli_tree_list *list);
void cli_tree_list_end(struct cli_tree_list *list);

/* ---- decisions ------------------------------------------------------------------------------------- */

/* For the next file that has none: an answer as cli_tree_store_decide() gives it. The path of the file, if it
 * is denied, into path[CLI_TREE_PATH_MAX + 1]. False: there is no such file, or it is no answer on it. */
bool cli_tree_list_decide(struct cli_tree_list *list, const struct cli_tree_record *answer, char *path,
                          uint64_t *size_bytes);

/* ---- sender ---------------------------------------------------------------------------------------- */

enum cli_tree_next { CLI_TREE_NEXT, CLI_TREE_NONE_YET, CLI_TREE_NO_MORE };

void cli_tree_entry_free(struct cli_tree_entry *entry);

/* The next entry that is ready, to be freed by the call above; waits that long for it. CLI_TREE_NO_MORE: at
 * the end, or stopped. */
enum cli_tree_next cli_tree_list_take(struct cli_tree_list *list, lh_time timeout_ns,
                                      struct cli_tree_entry **entry);

#endif
