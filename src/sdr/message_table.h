/*
 * message_table.h - the receiving half of a QP: slots, generations, packet bitmaps folded into chunk bitmaps,
 * ends of messages.
 *
 * Pure. Workers hand in arrivals, in parallel when they are of different channels; opening and closing a
 * slot is serialised with all of them by the caller. (SDR-RDMA paper, sections 3.2.1, 3.3.2 and 3.4.2.)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_SDR_MESSAGE_TABLE_H
#define LH_SDR_MESSAGE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <longhaul/stats.h>

#include "fabric/fabric.h"
#include "wire/roce_packet.h"

/* ---- message extent -------------------------------------------------------------------------------- */

/*
 * Where a message ends, as far as its packets and its sender have shown.
 *
 * Pure. A message is full packets up to its end, where a shorter one may stand. So one short packet fixes
 * the end, and the length that its sender announces does, too; from then on whatever contradicts that end is
 * refused: a packet behind it, a second short one. A short packet is refused that packets have arrived
 * behind. What is not refused fits one length, in whatever order it came.
 *
 * One atomic word decides, without a lock, whichever threads ask at the same time: the end in bytes (of the
 * buffer while nothing is fixed), one past the highest full packet, and two flags.
 */

struct message_extent {
    _Atomic uint64_t word;
};

/* A buffer of that many bytes, fewer than 2^32. Not while another thread asks. */
void message_extent_open(struct message_extent *extent, uint64_t room_bytes);
/* Full packets of mtu bytes: `first` + i for each bit i of mask, of which there is one at least. Returns
 * those that lie before the end. */
uint64_t message_extent_full(struct message_extent *extent, uint32_t mtu, uint32_t first, uint64_t mask);
/* A packet of fewer bytes, but some. False: it is refused. */
bool message_extent_short(struct message_extent *extent, uint32_t mtu, uint32_t packet, uint32_t bytes);
/* The message has that many bytes. False, and nothing is changed, when a packet behind them has arrived, or
 * the end was fixed before them. A later call may fix a nearer end, unless the short packet has come. */
bool message_extent_fix(struct message_extent *extent, uint32_t mtu, uint64_t bytes);

/* Its end in bytes, as far as it is fixed; else that of the buffer. */
uint64_t message_extent_end(const struct message_extent *extent);

/* ---- message table --------------------------------------------------------------------------------- */

struct message_shape {
    uint32_t slots;
    uint32_t mtu_bytes;
    uint32_t chunk_packets; /* power of two */
    uint64_t slot_bytes;
    uint32_t generations;
    struct immediate_split split;
};

/* The bitmaps of a slot lie in memory that its owner gives it, and takes back: a slot that is not used has
 * its number and its generation only. */
struct message_slot {
    _Atomic uint64_t *packets;    /* one bit a packet; where its memory begins; or NULL */
    _Atomic uint8_t *chunks;      /* one byte a chunk, as the SDK publishes it */
    _Atomic uint32_t *chunk_left; /* chunks of 64 packets and more: packets that are still missing */
    uint32_t chunk_room;          /* chunks that its memory is for */
    uint32_t packet_count;        /* of the posted buffer */
    uint32_t message_packets;     /* of the message, once that is known to be shorter */
    uint32_t chunk_count;
    _Atomic uint32_t phantom_chunks; /* past the end of a message that turned out shorter */
    _Atomic uint32_t chunks_arrived;
    struct message_extent extent; /* where the message ends */
    _Atomic uint32_t immediate;
    _Atomic uint32_t fragments; /* bit i: fragment i of the immediate is there */
    uint8_t generation;         /* of this use, or of the next one while it is closed */
    bool open;
};

struct message_table {
    struct message_shape shape;
    struct message_slot *slots; /* shape.slots of them, of the owner; NULL: none is open */
    uint32_t packets_max;       /* of a message */
    uint32_t chunks_max;
    uint32_t chunk_log;    /* of chunk_packets */
    uint64_t chunk_firsts; /* of a word: the first packet of each chunk */
};

/* slots: shape->slots of them, zeroed; or NULL, then the owner sets and takes them while none is open and no
 * arrivals are handed in. */
void message_table_init(struct message_table *table, const struct message_shape *shape,
                        struct message_slot *slots);
/* What a buffer of that many bytes needs for its bitmaps, rounded up: chunks. At most slot_bytes. */
uint32_t message_table_room(const struct message_table *table, uint64_t bytes);
/* Bytes of memory for bitmaps of so many chunks. */
size_t message_table_bytes(const struct message_table *table, uint32_t chunk_room);
/* Gives a closed slot memory for so many chunks, aligned to 8; or takes it away: NULL, 0. Returns what it had
 * before: message_table_bytes() of its chunk_room then. */
void *message_slot_set_memory(struct message_table *table, uint32_t slot, void *memory,
                              uint32_t chunk_room);

/* Clears the bitmaps for a buffer of that many bytes, and opens the slot. The slot is closed, bytes at most
 * slot_bytes, and its memory is for as many. */
void message_slot_open(struct message_table *table, uint32_t slot, uint64_t bytes);
/* Closes it; the generation moves on. */
void message_slot_close(struct message_table *table, uint32_t slot);
/* The message has only that many bytes, and the rest counts as arrived. Runs in parallel with arrivals.
 * False, and nothing is changed, when it was truncated to less before (what counts as arrived cannot be
 * missing again), or a packet came that does not fit this length. */
bool message_slot_truncate(struct message_table *table, uint32_t slot, uint64_t bytes);
/* Whole chunks of the message, truncated or not. */
uint32_t message_slot_chunks_arrived(const struct message_slot *slot);
/* True when every fragment of the user's immediate is there. */
bool message_slot_immediate(const struct message_table *table, const struct message_slot *slot,
                            uint32_t *immediate);

/* Sets the bits of a batch that a fabric delivered. Counts packets, bytes, duplicates and stale ones. A
 * packet that does not fit where the message ends is bad_length and never marked. */
void message_table_on_arrivals(struct message_table *table, const struct fabric_arrival *arrivals,
                               uint32_t count, struct lh_stats *stats);

#endif
