/*
 * eager_packets.h - small messages without a clear-to-send, and headers of one-sided operations: layout,
 * encode, decode. All integers big-endian. They travel as CONTROL_UPPER (control_messages.h), beside the
 * messages of transfer.h.
 *
 *   kind 1 (7) | flags 1 | runs 1 | zero 1 | carrier 4
 *   with EAGER_HAS_ACK:     newest 4 | received 4 | base 4 | posted 4 | runs x 2: state 2, messages 14 bits
 *   with EAGER_HAS_ENTRIES: message 4 | entries, at least one
 *
 * An *entry* is a unit of a small message: EAGER_UNIT_BYTES of it, or what is left; or announces a long one:
 *
 *   head 1 | [message 4] | length 2 (of a long message 6) | [unit 1] | [tag 8] | bytes of the unit
 *
 * head: bits 0 … 4 are added to the number of the entry before (31: the number follows); bit 5: the message
 * has several units, and which one this is follows; bit 6: a long message; bit 7: a tag follows.
 *
 * Carriers are numbered as they are sent, whatever they contain: entries are retransmitted in new ones. An
 * acknowledgement names the newest carrier and the number of those that arrived; of the messages all before
 * `base` are over, and the runs say what is known of those from there on. Messages before `posted` have a
 * receive; beyond it, the receiver holds up to EAGER_CELLS cells of EAGER_CELL_BYTES.
 *
 * Where receives choose their messages (BLOB_MATCHES), the receiver holds as many of all that have none, and
 * EAGER_PART says that nothing is said of those before `base`.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_EAGER_PACKETS_H
#define LH_WIRE_EAGER_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/control_messages.h"

#define EAGER_KIND       7u /* after those of enum transfer_kind */
#define EAGER_BYTES_MAX  CONTROL_PAYLOAD_MAX
#define EAGER_LONG_MAX   (CONTROL_LONG_MAX - CONTROL_HEADER_BYTES) /* of a message in several units */
#define EAGER_UNIT_BYTES 896u
#define EAGER_MAX        4096u /* bytes of a small message, where packets have CONTROL_MESSAGE_MAX */
#define EAGER_UNITS_MAX  5u    /* of it */
#define EAGER_RUNS_MAX   64u
#define EAGER_RUN_MAX    16383u /* messages */
#define EAGER_ACK_MAX    152u   /* bytes of a packet that only acknowledges */
#define EAGER_CELLS      512u
#define EAGER_CELL_BYTES 128u

enum eager_flags {
    EAGER_HAS_ACK = 1,
    EAGER_HAS_ENTRIES = 2,
    EAGER_PROBE = 4, /* acknowledge at once */
    EAGER_PART = 8,  /* the acknowledgement does not say that all before base are over */
};

/* What a receiver knows of a message. */
enum eager_state {
    EAGER_MISSING = 0,
    EAGER_HELD = 1,      /* it has arrived, and waits for its receive */
    EAGER_DELIVERED = 2, /* it is in its receive's buffer */
    EAGER_OTHER = 3,     /* no carrier changes it: it is a long one, or refused */
};

struct eager_run {
    enum eager_state state;
    uint32_t messages; /* 1 … EAGER_RUN_MAX */
};

struct eager_ack {
    uint32_t newest;   /* carrier */
    uint32_t received; /* carriers, ever */
    uint32_t base;     /* message: all before it are over */
    uint32_t posted;   /* message: all before it have a receive */
    bool is_part;      /* nothing is known of those before base */
    uint32_t run_count;
    struct eager_run runs[EAGER_RUNS_MAX]; /* from base on */
};

struct eager_entry {
    uint32_t message;
    uint64_t bytes; /* of the message */
    bool is_long;   /* only announced */
    uint8_t unit;
    uint64_t tag;
    const uint8_t *data; /* of the unit; decode: points into the input */
    uint32_t data_bytes;
};

/* A packet that was received. */
struct eager_packet {
    uint8_t flags;
    uint32_t carrier;
    struct eager_ack ack;
    uint32_t at_message; /* of the entry before */
    const uint8_t *entries;
    size_t entry_bytes;
};

/* A packet that is being written. */
struct eager_writer {
    uint8_t *out;
    size_t bytes;
    size_t limit; /* of those */
    uint32_t at_message;
};

/* Bytes of a small message. Where packets are shorter than a control message may be, it is one unit, which
 * fits a packet with all that is beside it. */
static inline uint32_t eager_small_max(uint32_t mtu_bytes)
{
    const uint32_t beside = 128;
    if (mtu_bytes >= CONTROL_MESSAGE_MAX)
        return EAGER_MAX;
    return mtu_bytes > beside ? mtu_bytes - beside : 0;
}

/* Bytes of a packet; the longest acknowledgement fits in any case. */
static inline uint32_t eager_packet_max(uint32_t mtu_bytes)
{
    const uint32_t minimum = 160;
    if (mtu_bytes >= CONTROL_MESSAGE_MAX)
        return EAGER_BYTES_MAX;
    return mtu_bytes >= minimum + CONTROL_HEADER_BYTES ? mtu_bytes - CONTROL_HEADER_BYTES : minimum;
}

static inline uint32_t eager_units(uint64_t bytes)
{
    return bytes == 0 ? 1 : (uint32_t)((bytes + EAGER_UNIT_BYTES - 1) / EAGER_UNIT_BYTES);
}

/* One bit for each unit. */
static inline uint8_t eager_unit_mask(uint64_t bytes)
{
    return (uint8_t)((1u << eager_units(bytes)) - 1);
}

static inline uint32_t eager_unit_bytes(uint64_t bytes, uint32_t unit)
{
    uint64_t left = bytes - (uint64_t)unit * EAGER_UNIT_BYTES;
    return left < EAGER_UNIT_BYTES ? (uint32_t)left : EAGER_UNIT_BYTES;
}

/* Of the receiver's memory while the message waits for its receive. */
static inline uint32_t eager_cells(uint64_t bytes)
{
    return bytes <= EAGER_CELL_BYTES ? 1 : (uint32_t)((bytes + EAGER_CELL_BYTES - 1) / EAGER_CELL_BYTES);
}

/* Adds a message to the runs; false when there is no place for it. */
bool eager_ack_add(struct eager_ack *ack, enum eager_state state);

/* Begins a packet of at most `limit` bytes (eager_packet_max()) in out; ack: or NULL. */
void eager_write_begin(struct eager_writer *writer, uint8_t *out, size_t limit, uint32_t carrier,
                       const struct eager_ack *ack);
/* Asks for an acknowledgement. */
void eager_write_probe(struct eager_writer *writer);
/* False, and nothing is written, when the entry does not fit. Its data_bytes bytes are written behind it by
 * the caller at *payload. */
bool eager_write_entry(struct eager_writer *writer, const struct eager_entry *entry, uint8_t **payload);

/* 0, or -1 when anything in the packet is out of range, entries included. */
int eager_decode(const uint8_t *data, size_t bytes, struct eager_packet *packet);
/* The next entry of a decoded packet; false: there is none. */
bool eager_next_entry(struct eager_packet *packet, struct eager_entry *entry);

/* ---- onesided -------------------------------------------------------------------------------------- */

/*
 * One-sided operations: layout, encode, decode. All integers big-endian.
 *
 * They have a queue pair of their own, the *inner* one, whose blobs the two sides exchange over that of the
 * connection, as CONTROL_UPPER beside the messages of control_messages.h:
 *
 *   EXCHANGE     kind 1 (8) | flags 1 | zero 2 | operations 4 | blob 0 … 976
 *
 * operations: how many the writer's user has started, of which an answer repeats the number it answers. A
 * side sends its blob until the peer has it; an answer without a blob says that nothing is exposed.
 *
 * On the inner connection each operation begins with a small message, its *header*:
 *
 *   WRITE        kind 1 | notify 1 | zero 2 | key 8 | offset 8 | bytes 8 | immediate 0 or 8
 *   READ         kind 1 | zero 3 | key 8 | offset 8 | bytes 8
 *   ANSWER       kind 1 | zero 3 | error 4
 *
 * The message after a WRITE has its bytes, and so has that after an ANSWER without error, which answers the
 * oldest READ without one. A WRITE that is not allowed ends by a REFUSE of the message after it.
 */

#define ONESIDED_KIND               8u /* after EAGER_KIND */
#define ONESIDED_EXCHANGE_BYTES     8u /* and the blob */
#define ONESIDED_EXCHANGE_BYTES_MAX CONTROL_PAYLOAD_MAX
#define ONESIDED_BLOB_MAX           976u
#define ONESIDED_HEADER_MAX         36u

enum onesided_exchange_flags {
    ONESIDED_HAS_PEER = 1, /* the writer has the reader's blob */
    ONESIDED_ASKS = 2,     /* answer this */
    ONESIDED_ANSWERS = 4,  /* operations: of the message that this one answers */
};

struct onesided_exchange {
    uint8_t flags;
    uint32_t operations;
    const uint8_t *blob; /* decode: points into the input */
    uint32_t blob_bytes; /* 0: none */
};

enum onesided_kind {
    ONESIDED_WRITE = 1,
    ONESIDED_READ = 2,
    ONESIDED_ANSWER = 3,
};

struct onesided_header {
    enum onesided_kind kind;
    bool notify; /* WRITE */
    uint64_t key;
    uint64_t offset;
    uint64_t bytes;
    uint64_t immediate; /* with notify; else 0 */
    uint32_t error;     /* ANSWER: an lh_error, or 0 */
};

/* Bytes written into out, which holds ONESIDED_EXCHANGE_BYTES_MAX. */
size_t onesided_exchange_encode(const struct onesided_exchange *exchange, uint8_t *out);
/* 0, or -1 when a field is out of range. */
int onesided_exchange_decode(const uint8_t *data, size_t bytes, struct onesided_exchange *exchange);

/* Bytes written into out, which holds ONESIDED_HEADER_MAX. */
size_t onesided_header_encode(const struct onesided_header *header, uint8_t *out);
/* 0, or -1 when a field is out of range. */
int onesided_header_decode(const uint8_t *data, size_t bytes, struct onesided_header *header);

#endif
