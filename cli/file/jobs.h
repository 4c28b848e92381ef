/*
 * jobs.h - files of several senders at once: each connection is served by a thread of its own.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_JOBS_H
#define LH_CLI_FILE_JOBS_H

#include "cli/file/receiver.h"

#define CLI_JOBS_MAX 64u

/* Receives files until a signal, up to `jobs` at once; further senders wait in the listener. Returns the exit
 * status, when the last file has ended. */
int cli_jobs_serve(struct lh_listener *listener, const struct cli_file_receiver *receiver, unsigned jobs);

#endif
