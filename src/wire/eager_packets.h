/*
 * eager.h - small messages that need no clear-to-send: carriers and their acknowledgements. All integers
 * big-endian. They travel as CONTROL_UPPER (control.h), beside the messages of transfer.h.
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
#ifndef LH_WIRE_EAGER_H
#define LH_WIRE_EAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/transfer.h"

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
    const uint32_t least = 160;
    if (mtu_bytes >= CONTROL_MESSAGE_MAX)
        return EAGER_BYTES_MAX;
    return mtu_bytes >= least + CONTROL_HEADER_BYTES ? mtu_bytes - CONTROL_HEADER_BYTES : least;
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

#endif
