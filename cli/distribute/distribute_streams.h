/*
 * distribute_streams.h - the blocks of a file, from rank 0 to all ranks of a group: one broadcast a
 * block, CLI_WINDOW of them pending at any time, which bounds the memory of each rank.
 *
 * Beside each block all ranks tell each other how far they are, and whether one has failed: an all-gather. So
 * no rank is more than a window ahead of another; and all learn of a failure at the same block, where all of
 * them have begun the same operations: the group stays usable, and they can exchange the reason.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DISTRIBUTE_DISTRIBUTE_STREAMS_H
#define LH_CLI_DISTRIBUTE_DISTRIBUTE_STREAMS_H

#include <stdbool.h>

#include <longhaul/collective.h>
#include <longhaul/group.h>

#include "cli/file/file_blocks.h"
#include "cli/file/file_partial.h"
#include "cli/terminal/terminal.h"

/* ---- exchange -------------------------------------------------------------------------------------- */

/*
 * Messages between the ranks of a group: rank 0's to all, and each rank's to all.
 *
 *   rank 0                              the others
 *   OFFER name, size, attributes, --->
 *         may resume
 *   ANSWER of each rank to all:   <-->  yes, and from which offset it could start, with the digest of what
 *                                       lies before; or no, reason
 *   START offset, digest          --->  only where something may be resumed; then ANSWER of each once more
 *   blocks             --->
 *   DIGEST of each rank to all:   <-->  of what it has; or no, reason
 *   VERDICT of each rank to all:  <-->  in place under its name; or not, and reason
 *
 * All kinds have one shape; fields that a kind does not use are zero. Numbers are little-endian:
 *
 *   0 magic "LHFILE" | 6 version u8 | 7 kind u8 | 8 flags u32 | 12 text bytes u32
 *   16 size u64 | 24 offset u64 | 32 digest 16 | 48 text
 */

#define CLI_FILE_VERSION 1

enum cli_file_kind {
    CLI_FILE_OFFER = 1,
    CLI_FILE_ANSWER = 2,
    CLI_FILE_START = 3,
    CLI_FILE_DIGEST = 4,
    CLI_FILE_VERDICT = 5,
};

enum cli_file_flag {
    CLI_FILE_RESUME = 1, /* OFFER: go on where an earlier try ended, and keep what came if this one fails */
    CLI_FILE_NO = 2,     /* ANSWER, VERDICT: refused or failed, with the reason as text */
};

#define CLI_FILE_HEADER      48
#define CLI_FILE_MESSAGE_MAX (CLI_FILE_HEADER + CLI_FILE_TEXT_MAX)

struct cli_file_message {
    enum cli_file_kind kind;
    uint32_t flags;
    uint64_t size_bytes;
    uint64_t offset_bytes;
    uint8_t digest[CLI_DIGEST_BYTES]; /* XXH3-128, canonical (big-endian); OFFER: attributes */
    char text[CLI_FILE_TEXT_MAX + 1]; /* OFFER: the name; else a reason, or "" */
};

/* Into out[CLI_FILE_MESSAGE_MAX]; returns the bytes used. */
size_t cli_file_encode(const struct cli_file_message *message, uint8_t *out);
/* 0; -LH_EVERSION: it is such a message, of another version; -LH_EPROTOCOL: it is none. Checks everything
 * but the meaning: text ends with a zero and holds no other. */
int cli_file_decode(const uint8_t *data, size_t bytes, struct cli_file_message *message);

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

/* ---- stream ---------------------------------------------------------------------------------------- */

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

/* ---- incoming -------------------------------------------------------------------------------------- */

/*
 * The file at a rank that receives it: a partial file (cli/file/file_partial.h) in its folder, until
 * it is whole and verified.
 */

struct cli_incoming_options {
    const char *output; /* folder; %r in it is the rank */
    bool force, dotfiles, resume;
    mode_t umask;
};

#define CLI_INCOMING_PATH_MAX 96 /* a longer one is cut */

struct cli_incoming {
    const struct cli_incoming_options *options;
    struct cli_file_attributes attributes; /* that were offered */
    struct cli_partial partial;
    struct cli_digest digest; /* of what is written */
    uint64_t written_bytes;
    int folder;                       /* -1: not open */
    char path[CLI_INCOMING_PATH_MAX]; /* of the folder, for messages */
    bool resumes;
    uint64_t other_size_bytes; /* what an earlier try left is of a file of that size; else 0 */
    bool committed;
    char reason[CLI_FILE_TEXT_MAX + 1]; /* after a call that returned false */
};

/* Before any other call; then cli_incoming_end() always. */
void cli_incoming_init(struct cli_incoming *incoming, const struct cli_incoming_options *options);
/* Takes an offer: its name, and the space on disk. *answer: from which offset on it could go on, and the
 * digest of what is before. */
bool cli_incoming_open(struct cli_incoming *incoming, uint32_t rank, const struct cli_file_message *offer,
                       struct cli_file_message *answer);
/* Goes back to an offset, of those up to the answered one. *digest: of what is before it. */
bool cli_incoming_rewind(struct cli_incoming *incoming, uint64_t offset_bytes,
                         uint8_t digest[CLI_DIGEST_BYTES]);
/* From that offset on it is written; 0, or that of the last call. */
bool cli_incoming_start(struct cli_incoming *incoming, uint64_t offset_bytes);
bool cli_incoming_write(struct cli_incoming *incoming, const uint8_t *block, size_t bytes);
/* What is written is on disk. */
bool cli_incoming_sync(struct cli_incoming *incoming);
/* All is written and verified: the file gets its name. */
bool cli_incoming_commit(struct cli_incoming *incoming);
/* Keeps a file that is not whole for a resumption, or deletes it. Returns the bytes kept. */
uint64_t cli_incoming_end(struct cli_incoming *incoming, bool stopped);

/* ---- site progress --------------------------------------------------------------------------------- */

/*
 * How far the ranks are, at rank 0: a bar on the terminal for each site, of its slowest
 * rank; one bar where all ranks are in one site.
 */

#define CLI_SITE_LABEL_MAX (256 + LH_GROUP_SITE_MAX + 8) /* "model.bin to site2" */

struct cli_site_bar {
    uint32_t site;
    uint64_t min_bytes;
    char label[CLI_SITE_LABEL_MAX];
    struct cli_progress progress;
};

struct cli_site_progress {
    struct lh_group *group;
    uint32_t sites; /* with a receiver */
    struct cli_site_bar *bars;
};

/* name: of the file. Without memory there are no bars. */
void cli_site_progress_start(struct cli_site_progress *progress, struct lh_group *group, const char *name,
                             uint64_t size_bytes, uint64_t from_bytes);
/* positions: bytes that each rank has. */
void cli_site_progress_show(struct cli_site_progress *progress, const int64_t *positions);
/* Takes the bars away; also of {0}. */
void cli_site_progress_clear(struct cli_site_progress *progress);

#endif
