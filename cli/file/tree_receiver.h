/*
 * tree_receiver.h - takes trees, or a pipe, over a connection.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_RECEIVER_H
#define LH_CLI_FILE_TREE_RECEIVER_H

#include <longhaul/connection.h>

#include "cli/file/tree_store.h"

/* After the peer's CLI_FILE_TREE. Does not close the connection. Prints what became of it; returns the exit
 * status. */
int cli_tree_receive(const struct cli_tree_options *options, struct lh_connection *connection);

#endif
