/*
 * rx_check.h - what a fabric in software checks of a data packet before it touches memory, in one place.
 *
 * A pure decision over the slot table: which slot, where in its buffer, or why not. The udp and sim fabrics
 * both decide here; verbs leaves it to the NIC.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_RX_CHECK_H
#define LH_FABRIC_RX_CHECK_H

#include "fabric/fabric.h"
#include "wire/roce_packet.h"

struct rx_slot {
    struct fabric_slot bound; /* counts only while open */
    uint32_t rkey;
    uint32_t binds; /* how often the slot was bound; makes each binding's key another */
    bool open;
};

/* The receiving half of an endpoint. Slot i covers the VA range [i * slot_bytes, (i + 1) * slot_bytes)
 * (paper section 3.2.2); each binding gets a key of its own, so that what an earlier binding left on the
 * way does not fit. */
struct rx_table {
    struct rx_slot *slots; /* attr.slots of them, owned by the caller; NULL: none is open */
    uint32_t binds;        /* at most, of a slot of those that were given back */
    struct fabric_endpoint_attr attr;
    uint32_t key_salt; /* random in each incarnation of the endpoint */
    /* PACKET_PARTIALS of each channel, of the caller; NULL: no pieces are taken. Set once, by any thread. */
    _Atomic(struct packet_partial *) partials;
};

enum rx_verdict {
    RX_TAKE = 0,        /* place the payload at *place */
    RX_PIECE,           /* likewise, then rx_on_piece() */
    RX_DUPLICATE,       /* its bit is set: do not touch memory; still reported as an arrival */
    RX_DUPLICATE_PIECE, /* likewise, and not reported: the last piece of its packet is */
    RX_LATE,            /* slot is closed, or of another generation */
    RX_BAD_KEY,
    RX_BAD_RANGE,   /* no such slot, outside the buffer, or VA and immediate name different places */
    RX_BAD_LENGTH,  /* over the MTU, or empty and not a fragment of the immediate alone */
    RX_BAD_CHANNEL, /* its packet index travels on another channel */
};

/* Memory for the slots, zeroed; keys go on where they were. */
void rx_table_give_slots(struct rx_table *table, struct rx_slot *slots);
/* Takes it back; none may be open. */
struct rx_slot *rx_table_take_slots(struct rx_table *table);
/* There are slots, slot < attr.slots, and what->length_bytes is at most attr.slot_bytes. Key is what a sender
 * needs. */
void rx_table_bind(struct rx_table *table, uint32_t slot, const struct fabric_slot *what,
                   struct fabric_slot_key *key);
/* From here on the slot takes nothing. Harmless on a closed slot. */
void rx_table_unbind(struct rx_table *table, uint32_t slot);
/* Judges a decoded WRITE_ONLY_IMM that came to the data QP of (channel, generation). place is set on
 * RX_TAKE. A packet without payload is never a duplicate here: it carries a fragment of the user's
 * immediate that a short message has no other packet for, writes nothing, and its index need not lie in the
 * buffer. */
enum rx_verdict rx_check(const struct rx_table *table, const struct roce_packet *packet, uint32_t channel,
                         uint8_t generation, uint8_t **place);
/* The payload of a piece is in place, and right. Returns the bytes of the packet that it made whole: that is
 * the arrival; or 0: there is none. */
uint32_t rx_on_piece(struct rx_table *table, const struct roce_packet *packet, uint32_t channel);
/* Memory of rx_table.partials, zeroed. */
size_t rx_partials_bytes(const struct rx_table *table);
/* Adds one to the counter that goes with the verdict (none for RX_TAKE and RX_DUPLICATE: the SDR layer
 * counts those). */
void rx_count(struct lh_stats *stats, enum rx_verdict verdict);

#endif
