/*
 * file_blocks.h - the file that is sent or received, in blocks: their memory, digest, attributes and summary.
 *
 * This bounds the memory of a transfer: as many blocks as the window holds, and a few that are being read
 * or written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_FILE_BLOCKS_H
#define LH_CLI_FILE_FILE_BLOCKS_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>
#include <xxhash.h>

#include <longhaul/connection.h>

#include "cli/file/file_messages.h"

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
/* The same with that many blocks, at most LH_REQUESTS_MAX / 2. */
int cli_block_ring_open_short(struct cli_block_ring *ring, struct lh_connection *connection,
                              uint32_t blocks);
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

/* ---- digest ---------------------------------------------------------------------------------------- */

/*
 * The XXH3-128 digest of a file, as xxhsum -H2 prints it; and of each prefix of whole blocks on
 * the way.
 */

struct cli_digest {
    XXH3_state_t *state;
};

/* 0 or -LH_ENOMEM. */
int cli_digest_open(struct cli_digest *digest);
void cli_digest_close(struct cli_digest *digest);

void cli_digest_reset(struct cli_digest *digest);
void cli_digest_add(struct cli_digest *digest, const void *data, size_t bytes);
void cli_digest_copy(struct cli_digest *to, const struct cli_digest *from);
/* Of all that was added so far; more may be added afterwards. */
void cli_digest_get(const struct cli_digest *digest, uint8_t out[CLI_DIGEST_BYTES]);

/* Of these bytes. */
void cli_digest_of(const void *data, size_t bytes, uint8_t out[CLI_DIGEST_BYTES]);

/* 32 hexadecimal digits and a zero. */
#define CLI_DIGEST_TEXT_MAX (2 * CLI_DIGEST_BYTES + 1)
char *cli_digest_text(const uint8_t digest[CLI_DIGEST_BYTES], char out[CLI_DIGEST_TEXT_MAX]);

/* ---- attributes ------------------------------------------------------------------------------------ */

/*
 * Attributes of a file in an offer besides name and size: its permissions, and when it was
 * last written to.
 *
 * They stand where other messages have a digest (offset 32 of file_messages.h). Older receivers do not look
 * there, and older senders leave zeros:
 *
 *   0 seconds i64 | 8 nanoseconds u32 | 12 mode u32: 0777, and 0x80000000 for "the rest is valid"
 */

struct cli_file_attributes {
    bool known;              /* false: the sender did not announce them */
    mode_t mode;             /* of 0777: no set-user-ID, set-group-ID or sticky bit */
    struct timespec written; /* from 1901 to 9999 */
};

/* Of the source file; a time outside the range is announced as its nearest end. */
struct cli_file_attributes cli_file_attributes_of(mode_t mode, struct timespec written);

void cli_file_attributes_encode(const struct cli_file_attributes *attributes,
                                uint8_t out[CLI_DIGEST_BYTES]);
/* 0, or -LH_EPROTOCOL: a mode, a time or a bit that no sender announces. */
int cli_file_attributes_decode(const uint8_t in[CLI_DIGEST_BYTES], struct cli_file_attributes *attributes);

/* ---- summary --------------------------------------------------------------------------------------- */

/* What is said of a file transfer, at its end and on the way. */

struct cli_file_summary {
    const char *done; /* "sent", "received" */
    const char *name;
    uint64_t size_bytes;
    uint64_t resumed_bytes; /* of those were there before */
    lh_time elapsed_ns;
    uint8_t digest[CLI_DIGEST_BYTES];
    const struct lh_stats *stats;                  /* of the sender; NULL: none */
    uint64_t recovered;                            /* chunks that were decoded */
    const struct lh_bottleneck_report *bottleneck; /* of the sender; NULL: unknown */
};

/* On stdout. */
void cli_file_summary_print(const struct cli_file_summary *summary);
/* The line of it on what limited the sender; none where nothing is known. */
void cli_file_limit_print(const struct lh_bottleneck_report *report, lh_time elapsed_ns);

#define CLI_FILE_FATE_MAX 120

/* What became of the bytes that arrived of a file that did not, to be appended to the reason; "" when none
 * did. */
void cli_file_fate(uint64_t arrived_bytes, uint64_t kept_bytes, uint64_t size_bytes,
                   char out[CLI_FILE_FATE_MAX]);

/* On stderr: an unfinished file of that many bytes is lost, if it is worth words; it is of a file of another
 * size, or whose start has another digest; the file is right, but its attributes are not those of the
 * sender's. */
void cli_file_note_replaced(const char *name, uint64_t found_bytes);
void cli_file_note_other_size(const char *name, uint64_t unfinished_bytes, uint64_t size_bytes);
void cli_file_note_other_digest(const char *name, uint64_t compared_bytes);
void cli_file_note_attributes_lost(const char *name);

#endif
