/*
 * exchange.h - messages of a file transfer (cli/file/message.h) between the ranks of a group: rank 0's to
 * all, and each rank's to all.
 *
 *   rank 0                              the others
 *   OFFER name, size, attributes, --->
 *         may resume
 *   ANSWER of each rank to all:   <-->  yes, and from which offset it could start, with the digest of what
 *                                       lies before; or no, reason
 *   START offset, digest          --->  only where something may be resumed; then ANSWER of each once more
 *   blocks (stream.h)             --->
 *   DIGEST of each rank to all:   <-->  of what it has; or no, reason
 *   VERDICT of each rank to all:  <-->  in place under its name; or not, and reason
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DISTRIBUTE_EXCHANGE_H
#define LH_CLI_DISTRIBUTE_EXCHANGE_H

#include "cli/file/message.h"

#include <longhaul/collective.h>

#include <stdbool.h>

/* Why a transfer has failed, and at which rank. */
struct cli_fault {
    uint32_t rank;                    /* LH_NO_RANK: unknown */
    char text[CLI_FILE_TEXT_MAX + 1]; /* "": none */
    bool interrupted;                 /* by a user: what has arrived is worth keeping */
};

/* Both wait for all ranks. False: the group is of no more use, and *fault has the reason. */

/* Copies rank 0's message to all. */
bool cli_exchange_announce(struct lh_group *group, enum cli_file_kind kind,
                           struct cli_file_message *message, struct cli_fault *fault);
/* Copies each rank's message to all[size]. */
bool cli_exchange_gather(struct lh_group *group, enum cli_file_kind kind,
                         const struct cli_file_message *mine, struct cli_file_message *all,
                         struct cli_fault *fault);

/* The first rank that refused or failed, by its message, is the fault, unless there is one. */
void cli_exchange_find_fault(const struct cli_file_message *all, uint32_t ranks, struct cli_fault *fault);

/* Waits for an operation, which it frees; cancels it when a signal asks to stop. */
bool cli_exchange_await(struct lh_group *group, struct lh_collective *op, struct cli_fault *fault);
/* The fault of an operation that ended with an error; returns false. */
bool cli_exchange_failed(struct lh_group *group, const struct lh_collective_result *result,
                         struct cli_fault *fault);
/* A call of the library failed, perhaps for a rank that has; or this process was asked to stop; returns
 * false. */
bool cli_exchange_call_failed(struct lh_group *group, struct cli_fault *fault);
bool cli_exchange_stopped(struct lh_group *group, struct cli_fault *fault);

#endif
