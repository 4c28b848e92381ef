/*
 * tree_delete.h - entries of the receiver's folders that the sender does not have: listed by the receiver,
 * judged by the sender, removed by the receiver.
 *
 * The list is in an order in which each folder follows its content, so that it is empty when it is removed. A
 * decision on each entry comes in this order; an entry without one is kept.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_DELETE_H
#define LH_CLI_FILE_TREE_DELETE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/file/tree_beneath.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_rules.h"
#include "cli/file/tree_store.h"
#include "cli/file/tree_walk.h"

/* Names in a question. */
#define CLI_TREE_EXTRAS_SHOWN 5u

/* ---- receiver -------------------------------------------------------------------------------------- */

/* Bound of the memory: entries with their paths. */
#define CLI_TREE_HELD_BYTES_MAX ((size_t)64 << 20)

struct cli_tree_held {
    struct cli_tree_holding **entries;
    uint64_t count, capacity, decided;
    size_t bytes;
};

/* Appends all that is below a folder of the store; nothing where there is no such folder. False: the store's
 * reason; the list is not whole. */
bool cli_tree_held_list(struct cli_tree_held *held, struct cli_tree_store *store, const char *path,
                        size_t path_bytes);
/* The entry with that number. */
const struct cli_tree_holding *cli_tree_held_entry(const struct cli_tree_held *held, uint64_t number);
/* Decisions on the next entries, enum cli_tree_fate. False: more than entries, or none of these. */
bool cli_tree_held_decide(struct cli_tree_held *held, const char *fates, size_t count);
/* How many are to be removed, and the first of their names. */
uint64_t cli_tree_held_removed(const struct cli_tree_held *held,
                               char shown[CLI_TREE_EXTRAS_SHOWN][CLI_TREE_SHOWN_MAX]);
void cli_tree_held_close(struct cli_tree_held *held);

/* ---- sender ---------------------------------------------------------------------------------------- */

/* Bound of the memory: a byte for each entry. */
#define CLI_TREE_FATES_MAX ((uint64_t)16 << 20)
struct cli_tree_judge {
    const struct cli_tree_operand *operands;
    unsigned count;
    bool follow;
    const struct cli_tree_rules *rules; /* what they exclude is kept; or NULL */
    struct cli_beneath at;              /* of one operand; folder -1 at first */
    char kept[CLI_TREE_PATH_MAX + 1];   /* the last entry that is kept: so are its folders */
    char *fates;
    uint64_t judged, capacity, removed;
    char shown[CLI_TREE_EXTRAS_SHOWN][CLI_TREE_SHOWN_MAX]; /* the first ones to be removed */
    int error; /* of reading the source: nothing may be removed */
};

/* The next entry of the receiver's list: its fate is appended, and returned. A negative error: no memory, or
 * too many. */
int cli_tree_judge_next(struct cli_tree_judge *judge, const char *path, size_t path_bytes, bool folder);
void cli_tree_judge_close(struct cli_tree_judge *judge);

/* ---- question -------------------------------------------------------------------------------------- */

enum cli_tree_answer { CLI_TREE_NO_ANSWER, CLI_TREE_YES, CLI_TREE_NO };

/* Whether someone can be asked: standard input and standard error are a terminal. */
bool cli_tree_question_possible(void);
/* Prints it, with the first names. where: they are, "here" or a host's name. */
void cli_tree_question_ask(uint64_t count, const char *where,
                           char shown[CLI_TREE_EXTRAS_SHOWN][CLI_TREE_SHOWN_MAX]);
/* Looks for the answer for a slice of time. */
enum cli_tree_answer cli_tree_question_look(void);

#endif
