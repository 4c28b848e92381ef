/*
 * file_messages.h - messages between sender and receiver of a file besides its blocks: encoding, reading,
 * timeouts.
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
 * an OFFER (file_blocks.h, in the digest's place) and the offsets of ABORT and VERDICT came without a new
 * version: older peers send zeros. Numbers are little-endian:
 *
 *   0 magic "LHFILE" | 6 version u8 | 7 kind u8 | 8 flags u32 | 12 text bytes u32
 *   16 size u64 | 24 offset u64 | 32 digest 16 | 48 text
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_FILE_MESSAGES_H
#define LH_CLI_FILE_FILE_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include <longhaul/connection.h>
#include <longhaul/types.h>

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
    CLI_FILE_TREE = 7, /* in place of an OFFER: a stream of tree_records.h follows, in both directions */
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

/* ---- message io ------------------------------------------------------------------------------------ */

/* One message of file_messages.h being sent or received, with the buffer it needs. */

/* Zero it first. Must stay where it is until cli_file_io_end(). */
struct cli_file_io {
    struct lh_request *request;
    uint8_t bytes[CLI_FILE_MESSAGE_MAX + 1]; /* one more than fits: a longer message is seen as too long */
};

/* Sends the message. 0, or the error of lh_send. */
int cli_file_send(struct lh_connection *connection, struct cli_file_io *io,
                  const struct cli_file_message *message);

/* Posts a receive for the next message. 0, or the error of lh_recv. */
int cli_file_expect(struct lh_connection *connection, struct cli_file_io *io);
/* As cli_wait, for a message of that kind, or of any with CLI_FILE_ANY. -LH_EPROTOCOL, -LH_EVERSION:
 * something else came. */
#define CLI_FILE_ANY ((enum cli_file_kind)0)
int cli_file_await(struct cli_file_io *io, lh_time timeout_ns, enum cli_file_kind kind,
                   struct cli_file_message *message);

/* A code of the calls above in words; other: what the peer is. Valid until the next call. */
const char *cli_file_strerror(struct lh_connection *connection, int code, const char *other);

/* Forgets it, done or not. May be called for one that was never used. */
void cli_file_io_end(struct cli_file_io *io);

/* ---- timeouts -------------------------------------------------------------------------------------- */

/*
 * Timeouts of each side of a file transfer, so that neither waits for ever.
 *
 * A peer that is dead or cut off is found by the library (--peer-timeout). These are for one that lives and
 * does nothing, which is either a slow disk or malice.
 */

/* Where nothing has to be read from a disk: an offer, and what follows the answer to one. Whoever is silent
 * then holds up others. */
#define CLI_PROMPT_TIMEOUT_NS (5 * LH_NS_PER_S)
/* On a lossy link a message takes some round trips. */
#define CLI_PROMPT_ROUND_TRIPS 20
/* A disk that is busy with others can stall for a minute. */
#define CLI_DISK_TIMEOUT_NS (120 * LH_NS_PER_S)
/* For an abort message. */
#define CLI_ABORT_TIMEOUT_NS (5 * LH_NS_PER_S)
/* Slower disks than this count as broken. */
#define CLI_DISK_BYTES_PER_MS ((uint64_t)10000)
/* Two centuries at that rate, which nanoseconds can still count: files with holes can be larger. */
#define CLI_DISK_BYTES_MAX ((uint64_t)1 << 56)

/* For a peer that has to read, or bring to its disk, that much before it can answer. */
static inline lh_time cli_disk_timeout(uint64_t bytes)
{
    uint64_t counted = bytes < CLI_DISK_BYTES_MAX ? bytes : CLI_DISK_BYTES_MAX;
    return CLI_DISK_TIMEOUT_NS + counted / CLI_DISK_BYTES_PER_MS * LH_NS_PER_MS;
}

/* For a peer that owes the next message at once, or has to read that much before. */
static inline lh_time cli_prompt_timeout(lh_time rtt_ns, uint64_t bytes)
{
    return CLI_PROMPT_TIMEOUT_NS + CLI_PROMPT_ROUND_TRIPS * rtt_ns + (bytes ? cli_disk_timeout(bytes) : 0);
}

/* ---- little endian --------------------------------------------------------------------------------- */

/* Numbers of messages and files, byte by byte. */

static inline void cli_put_u32(uint8_t *out, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static inline void cli_put_u64(uint8_t *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static inline uint32_t cli_get_u32(const uint8_t *in)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < 4; i++)
        value |= (uint32_t)in[i] << (8 * i);
    return value;
}

static inline uint64_t cli_get_u64(const uint8_t *in)
{
    return cli_get_u32(in) | (uint64_t)cli_get_u32(in + 4) << 32;
}

#endif
