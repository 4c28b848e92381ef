/*
 * file_blocks.h - the file that is sent or received, in blocks: their memory, digest, attributes, summary and
 * timeouts.
 *
 * This bounds the memory of a transfer: as many blocks as the window holds, and a few that are being read
 * or written.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_CLI_FILE_FILE_BLOCKS_H
#define LH_CLI_FILE_FILE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#include <xxhash.h>

#include <longhaul/connection.h>
#include <longhaul/types.h>

/* The largest message; also the distance of the digests that a resumed transfer is checked by. */
#define CLI_BLOCK_BYTES ((size_t)4 << 20)

#define CLI_DIGEST_BYTES 16

/* Of a reason that goes to a peer. */
#define CLI_FILE_TEXT_MAX 255

/* ---- block ring ------------------------------------------------------------------------------------ */

struct cli_block_ring {
    struct lh_connection *connection;
    uint8_t *memory;
    struct lh_memory *registered; /* NULL where the fabric needs none */
    struct lh_request **requests;
    uint32_t blocks;
    uint64_t head; /* blocks that were sent or posted so far */
    uint64_t tail; /* blocks of those that are done with */
};

/* Of that many blocks; 0: as many as the connection may have in flight; at most LH_REQUESTS_MAX / 2. 0;
 * -LH_ENOMEM; or the error of lh_register. */
int cli_block_ring_open(struct cli_block_ring *ring, struct lh_connection *connection, uint32_t blocks);
/* Blocks for a pipe, which soon uses all of a ring: 28 MiB, so that a process with parity stays below 64. 0:
 * as above, where the window is larger than its default. */
uint32_t cli_pipe_blocks(struct lh_connection *connection);
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
 * Attributes of a file besides name and size: its permissions, and when it was last written to.
 *
 * In a message:
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
    bool replaced;          /* some of them in the file that is replaced */
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

/* ---- timeouts -------------------------------------------------------------------------------------- */

/*
 * Timeouts of each side of a file transfer, so that neither waits for ever.
 *
 * A peer that is dead or cut off is found by the library (--peer-timeout). These are for one that lives and
 * does nothing, which is either a slow disk or malice.
 */

/* Where nothing has to be read from a disk: the first message. Whoever is silent then holds up others. */
#define CLI_PROMPT_TIMEOUT_NS (5 * LH_NS_PER_S)
/* On a lossy link a message takes some round trips. */
#define CLI_PROMPT_ROUND_TRIPS 20
/* A peer that answers late is measured as one that is far away: no farther than the Moon. */
#define CLI_PROMPT_RTT_MAX_NS (3 * LH_NS_PER_S)
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

/* For a peer that owes the first message. */
static inline lh_time cli_prompt_timeout(lh_time rtt_ns)
{
    lh_time counted = rtt_ns < CLI_PROMPT_RTT_MAX_NS ? rtt_ns : CLI_PROMPT_RTT_MAX_NS;
    return CLI_PROMPT_TIMEOUT_NS + CLI_PROMPT_ROUND_TRIPS * counted;
}

/*
 * A server has places for few clients at once. While all are taken, one that moves next to nothing loses its
 * place. The time is that of an honest client's longest silence: its disk reads a part of a large file.
 */
#define CLI_PACE_NS    (600 * LH_NS_PER_S)
#define CLI_PACE_BYTES ((uint64_t)8 << 20)
/* An entry of a tree without bytes is work as well. */
#define CLI_PACE_ENTRY_BYTES 4096u

/* Zero: has just begun, at time 0. */
struct cli_pace {
    lh_time since_ns;
    uint64_t before_bytes;
};

/* Whether the last CLI_PACE_BYTES took longer than CLI_PACE_NS. bytes: all so far. */
static inline bool cli_pace_is_slow(struct cli_pace *pace, lh_time now, uint64_t bytes)
{
    if (bytes - pace->before_bytes >= CLI_PACE_BYTES)
        *pace = (struct cli_pace){.since_ns = now, .before_bytes = bytes};
    return now - pace->since_ns > CLI_PACE_NS;
}

/* A code of a call or a wait on the connection in words; other: what the peer is. Valid until the
 * thread's next call. */
const char *cli_file_strerror(struct lh_connection *connection, int code, const char *other);

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
