/*
 * tree_walk.h - the walker: a thread that reads folders, and sends the list of what is in them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_WALK_H
#define LH_CLI_FILE_TREE_WALK_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/file/file_names.h"
#include "cli/file/tree_list.h"
#include "cli/file/tree_message.h"
#include "cli/file/tree_records.h"
#include "cli/file/tree_report.h"
#include "cli/file/tree_rules.h"
#include "cli/options/peer_address.h"

#define CLI_TREE_OPERAND_REASON_MAX 128

/* A PATH of the command line. Its name, and what lies in it, keep their names at the receiver; of ".", ".."
 * and "/" the content alone is sent. */
struct cli_tree_operand {
    int folder;                         /* that it lies in, open */
    char prefix[CLI_TREE_PATH_MAX + 2]; /* as typed before its name: "", "a/b/" */
    char name[CLI_FILE_NAME_MAX + 1];   /* "" for ".", whose folder is `folder` */
    char reason
        [CLI_TREE_OPERAND_REASON_MAX]; /* "" or why it cannot be sent, in words that go after the path;
                                                 `prefix` is all of the path then */
};

/* "HOST", "HOST:PATH", "HOST:PORT", "HOST:PORT:PATH", with HOST as cli_address_parse() takes it. What follows
 * HOST: and is digits alone is a port. path: PATH without "." and further slashes, or "". */
struct cli_remote {
    struct cli_address address;
    bool has_path;
    char path[CLI_TREE_PATH_MAX + 1];
};

/* absolute: what to do instead, where PATH begins with a slash. CLI_PROCEED; or CLI_EXIT_USAGE after
 * reporting the cause. */
int cli_remote_parse(const char *text, const char *absolute, struct cli_remote *remote);

/* False: there is a reason. */
bool cli_tree_operand_open(struct cli_tree_operand *operand, const char *path);
/* Of a peer: a path that cli_tree_path_wrong() lets pass, or an empty one, below an open folder. No link on
 * it is followed. */
bool cli_tree_operand_beneath(struct cli_tree_operand *operand, int root, const char *path, size_t bytes);
void cli_tree_operand_close(struct cli_tree_operand *operand);

struct cli_tree_walk {
    const struct cli_tree_operand *operands;
    unsigned count;
    bool follow;                        /* sends what symbolic links lead to */
    const struct cli_tree_rules *rules; /* what is left out; NULL: nothing */
    bool owners;                        /* of links are sent, too */
    struct cli_tree_list *list;
    struct cli_tree_packer *packer; /* of the walker alone */
    struct cli_tree_report *report;
};

/* Walks all operands, to its end or until the list is stopped. False: a message could not be sent. */
bool cli_tree_walk(const struct cli_tree_walk *walk);

#endif
