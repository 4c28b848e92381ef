/*
 * tree_sender.h - sends trees, or a pipe, over a connection until the peer has confirmed them.
 *
 * Three threads: the walker sends the list, one takes the receiver's answers, the caller's reads and sends
 * what the receiver wants. They meet in the list (tree_list.h).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_SENDER_H
#define LH_CLI_FILE_TREE_SENDER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <longhaul/connection.h>

#include "cli/file/tree_rules.h"
#include "cli/file/tree_walk.h"

struct cli_tree_sending {
    const struct cli_tree_operand *operands;
    unsigned count;     /* 0: standard input */
    const char *folder; /* below the receiver's; of a pipe: its name there; or "" */
    bool follow;
    const struct cli_tree_rules *rules; /* what is left out; NULL: nothing */
    bool dry_run;
    bool deletes;        /* what the receiver has besides; the receiver must allow it */
    bool confirmed;      /* without a question */
    bool xattrs, owners; /* are sent, too; the receiver must take them */
    bool asked;          /* by the receiver, which has asked for all of this */
    bool json;
    bool names_peer; /* one of several transfers of this process */
    const _Atomic bool
        *crowded; /* slow peers lose their place while it is set (cli_pace_is_slow); or NULL */
};

/* Operands with a reason are reported. Does not close the connection. Prints what became of it; returns the
 * exit status. */
int cli_tree_send(const struct cli_tree_sending *sending, struct lh_connection *connection);

#endif
