/*
 * block_ring.h - the blocks of a file that are in memory: a ring, each with its request, done in order.
 *
 * This bounds the memory of a transfer: as many blocks as the window holds, and a few that are being read
 * or written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_BLOCK_RING_H
#define LH_CLI_FILE_BLOCK_RING_H

#include <longhaul/connection.h>

/* Blocks beyond the window: read ahead or written behind. */
#define CLI_RING_EXTRA 4

struct cli_block_ring {
    struct lh_connection *connection;
    uint8_t *memory;
    struct lh_memory *registered; /* NULL where the fabric needs none */
    struct lh_request **requests;
    uint32_t blocks;
    uint64_t head; /* blocks that were sent or posted so far */
    uint64_t tail; /* blocks of those that are done with */
};

/* Sized for what the connection may have in flight. 0; -LH_ENOMEM; or the error of lh_register. */
int cli_block_ring_open(struct cli_block_ring *ring, struct lh_connection *connection);
/* Cancels the blocks in flight; they keep their places in the ring. */
void cli_block_ring_cancel(struct cli_block_ring *ring);
/* The same, and frees the memory. The connection must still be there. May be called for a zeroed ring. */
void cli_block_ring_close(struct cli_block_ring *ring);

int cli_block_ring_full(const struct cli_block_ring *ring);
int cli_block_ring_empty(const struct cli_block_ring *ring);
/* Where the head block lies, to be filled, and the tail block, to be emptied. */
uint8_t *cli_block_ring_head(const struct cli_block_ring *ring);
uint8_t *cli_block_ring_tail(const struct cli_block_ring *ring);

/* Sends the first bytes of the head block; posts the head block as a receive. The ring must not be full. */
int cli_block_ring_send(struct cli_block_ring *ring, size_t bytes);
int cli_block_ring_post(struct cli_block_ring *ring);
/* lh_wait for the tail block, which must be there. */
int cli_block_ring_wait(struct cli_block_ring *ring, lh_time timeout_ns, struct lh_result *result);
/* Gives the tail block back, after its request is done. */
void cli_block_ring_release(struct cli_block_ring *ring);

#endif
