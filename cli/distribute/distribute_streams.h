/*
 * stream.h - the blocks of a file, from rank 0 to all ranks of a group: one broadcast a block, CLI_WINDOW of
 * them pending at any time, which bounds the memory of each rank.
 *
 * Beside each block all ranks tell each other how far they are, and whether one has failed: an all-gather. So
 * no rank is more than a window ahead of another; and all learn of a failure at the same block, where all of
 * them have begun the same operations: the group stays usable, and they can exchange the reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DISTRIBUTE_STREAM_H
#define LH_CLI_DISTRIBUTE_STREAM_H

#include "cli/distribute/exchange.h"

#define CLI_WINDOW 16u

struct cli_stream {
    struct lh_group *group;
    struct lh_collective_options options;
    uint64_t size_bytes;
    uint64_t begun_bytes; /* of the file, from its start: those of begun blocks */
    uint64_t taken_bytes; /* of taken blocks */
    uint64_t begun, taken;
    uint32_t ranks;
    uint8_t *memory;    /* CLI_WINDOW blocks */
    int64_t *statuses;  /* by block of the window: what this rank has sent, then that of each rank */
    int64_t *positions; /* by rank: bytes that it has written, as of the last block taken */
    struct lh_collective *blocks[CLI_WINDOW], *gathers[CLI_WINDOW];
    const char *schedule; /* the one that was run; NULL: none yet */
};

/* False: no memory. cli_stream_close() always. */
bool cli_stream_open(struct cli_stream *stream, struct lh_group *group, const char *schedule);
/* Of a file of that size, from that byte on. */
void cli_stream_start(struct cli_stream *stream, uint64_t size_bytes, uint64_t from_bytes);
/* Cancels what is pending: at all ranks. */
void cli_stream_close(struct cli_stream *stream);

/* Whether another block may begin: there is one, and it is within the window. */
bool cli_stream_may_begin(const struct cli_stream *stream);
/* The next block to begin: rank 0 fills it. */
uint8_t *cli_stream_head(const struct cli_stream *stream, size_t *bytes);
/* Begins it. written_bytes: what this rank has on disk; failed: this rank has. */
bool cli_stream_begin(struct cli_stream *stream, uint64_t written_bytes, bool failed,
                      struct cli_fault *fault);
bool cli_stream_is_done(const struct cli_stream *stream);
/* Whether the next block is here: 0; -LH_ETIMEDOUT after a while; else the group is of no use, and *fault has
 * the reason. */
int cli_stream_wait(struct cli_stream *stream, struct cli_fault *fault);
const uint8_t *cli_stream_tail(const struct cli_stream *stream, size_t *bytes);
/* The first rank that had failed when it began that block, or LH_NO_RANK. The block is of no use then: rank 0
 * may have failed to read it. */
uint32_t cli_stream_failed_rank(const struct cli_stream *stream);
/* Takes that block, whose memory is free then. */
void cli_stream_take(struct cli_stream *stream);

#endif
