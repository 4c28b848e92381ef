/*
 * message.h - messages between sender and receiver of a file, besides its blocks.
 *
 *   sender                              receiver
 *   OFFER name, size, attributes, --->
 *         may resume
 *                                 <---  ANSWER  yes, from offset, digest of what lies before it;
 *                                               or no, reason
 *   START offset (or 0)           --->
 *   block, block, …               --->
 *   DIGEST of the whole file      --->
 *                                 <---  VERDICT in place under its name; or not, reason, bytes kept (offset)
 *
 * Blocks are bare: CLI_BLOCK_BYTES of the file each, the last one the rest. In place of any block the
 * sender may send ABORT with a reason; it gives that message a length that the block would not have. Its
 * offset is CLI_FILE_KEEP when the sender was stopped by a signal: then the receiver keeps what arrived. A
 * negative VERDICT may come at any time after START.
 *
 * All kinds have one shape; fields that a kind does not use are zero, and not looked at. So the attributes of
 * an OFFER (attributes.h, in the digest's place) and the offsets of ABORT and VERDICT came without a new
 * version: older peers send zeros. Numbers are little-endian:
 *
 *   0 magic "LHFILE" | 6 version u8 | 7 kind u8 | 8 flags u32 | 12 text bytes u32
 *   16 size u64 | 24 offset u64 | 32 digest 16 | 48 text
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_MESSAGE_H
#define LH_CLI_FILE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#define CLI_FILE_VERSION 1

/* Also the distance of the digests that a resumed transfer is checked by. */
#define CLI_BLOCK_BYTES ((size_t)4 << 20)

#define CLI_DIGEST_BYTES 16

enum cli_file_kind {
    CLI_FILE_OFFER = 1,
    CLI_FILE_ANSWER = 2,
    CLI_FILE_START = 3,
    CLI_FILE_DIGEST = 4,
    CLI_FILE_VERDICT = 5,
    CLI_FILE_ABORT = 6,
};

enum cli_file_flag {
    CLI_FILE_RESUME =
        1, /* OFFER: go on where an earlier try ended, and keep what came if this one ends early */
    CLI_FILE_NO = 2, /* ANSWER, VERDICT: refused or failed, with the reason as text */
};

#define CLI_FILE_KEEP 1

#define CLI_FILE_TEXT_MAX    255
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

#endif
