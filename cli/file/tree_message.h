/*
 * tree_message.h - records packed into large messages, many of which are in flight.
 *
 * One thread fills a packer; several packers may share a connection. The memory is a ring of blocks
 * (file_blocks.h), whatever is sent: when all are in flight the packer waits for the oldest.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_TREE_MESSAGE_H
#define LH_CLI_FILE_TREE_MESSAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <longhaul/connection.h>

#include "cli/file/file_blocks.h"
#include "cli/file/tree_records.h"

/* Blocks of a ring for lists and answers, which are short. */
#define CLI_TREE_RING_SHORT 16u

struct cli_tree_packer {
    struct cli_block_ring ring;
    size_t used;              /* bytes of the message being filled: the head of the ring */
    const _Atomic bool *stop; /* ends a wait with -LH_ECANCELED, as a signal does */
    lh_time stall_ns;         /* the peer takes no message for that long: an error; LH_TIME_NEVER */
    int code;                 /* the first error; everything fails after it */
};

/* Calls that return false have set code. */

/* blocks: of the ring; 0: as many as the connection's window takes. */
bool cli_tree_packer_open(struct cli_tree_packer *packer, struct lh_connection *connection, uint32_t blocks,
                          const _Atomic bool *stop);
/* Cancels what is in flight. May be called for a zeroed packer. */
void cli_tree_packer_close(struct cli_tree_packer *packer);

/* A place for that many bytes, at most CLI_TREE_MESSAGE_MAX, in the message being filled, which is sent first
 * if they do not fit; NULL: failed. The caller adds to `used` what it has written. */
uint8_t *cli_tree_packer_reserve(struct cli_tree_packer *packer, size_t bytes);
bool cli_tree_packer_add(struct cli_tree_packer *packer, const struct cli_tree_record *record);
/* An entry of the sender's that does not come, unless it has no path: the peer prints it, too. */
bool cli_tree_packer_fault(struct cli_tree_packer *packer, const char *path, size_t path_bytes,
                           const char *reason);
/* A sign of life to a peer that waits, if none was sent for a while: *since, at first the time of the call
 * before. */
bool cli_tree_packer_idle(struct cli_tree_packer *packer, lh_time *since);
/* Sends the message being filled, if there is something in it. */
bool cli_tree_packer_flush(struct cli_tree_packer *packer);
/* Messages that are not acknowledged. */
uint64_t cli_tree_packer_in_flight(struct cli_tree_packer *packer);
/* Waits until all messages are acknowledged. */
bool cli_tree_packer_drain(struct cli_tree_packer *packer);

#endif
