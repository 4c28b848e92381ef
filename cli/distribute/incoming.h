/*
 * incoming.h - the file at a rank that receives it: a partial file (cli/file/partial.h) in its folder, until
 * it is whole and verified.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_DISTRIBUTE_INCOMING_H
#define LH_CLI_DISTRIBUTE_INCOMING_H

#include "cli/file/attributes.h"
#include "cli/file/partial.h"

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

#endif
