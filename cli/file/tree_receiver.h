/*
 * tree_receiver.h - takes trees, or a pipe, over a connection.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_RECEIVER_H
#define LH_CLI_FILE_TREE_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/connection.h>

#include "cli/file/tree_store.h"

/* Neither closes the connection; both print what became of it, and return the exit status. */

/* What the peer sends; first: its first message, which cli_tree_first() has found to be a ROOT. */
int cli_tree_receive(const struct cli_tree_options *options, struct lh_connection *connection,
                     const uint8_t *first, size_t first_bytes);

struct cli_tree_wish {
    const char *const *paths; /* below the peer's folder; the options have their names */
    unsigned count;
    bool dry_run;
    bool confirmed; /* with options->deletes: without a question */
};

/* What the peer has under these paths, and nothing else. */
int cli_tree_get(const struct cli_tree_options *options, struct lh_connection *connection,
                 const struct cli_tree_wish *wish);

#endif
