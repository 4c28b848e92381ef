/*
 * sender.h - sends one file over a connection, until the peer confirms that it is in place.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_SENDER_H
#define LH_CLI_FILE_SENDER_H

#include "cli/file/source.h"

#include <longhaul/connection.h>

/* Does not close the connection. Prints a line on stdout when the file got there, else one on stderr.
 * Returns the exit status. */
int cli_file_send_source(struct cli_source *source, struct lh_connection *connection, bool resume);

#endif
