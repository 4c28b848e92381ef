/*
 * packet_pieces.h - packets in pieces, for a path whose MTU has become smaller than a packet. Pure.
 *
 * The bitmap of a message counts packets of the MTU that both ends agreed on, whatever the path takes. So a
 * packet that does not pass any more travels as 2, 4 or 8 pieces of equal length, the last of a message in
 * fewer, each a RDMA WRITE Only with the immediate of the packet. Its address says what it is: slots take
 * addresses from 0 to *extent* = slots x slot_bytes; what is k = 1 … 6 extents higher is a piece:
 *
 *   1, 2, 3   one of 2, 4 or 8, as long as all of them
 *   4, 5, 6   the last one of a packet that is shorter than the MTU
 *
 * Cut is always at eighths of the MTU, so pieces of any of these lengths fit together: after the path has
 * changed in between, and in any order. The receiver knows of each packet which eighths have come.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_PACKET_PIECES_H
#define LH_FABRIC_PACKET_PIECES_H

#include <stdbool.h>

#include "fabric/fabric.h"

#define PACKET_PIECES_MAX 8u    /* of a packet */
#define PACKET_LENGTHS    4u    /* 1, 2, 4 and 8 pieces a packet */
#define PACKET_PARTIALS   1024u /* packets of a channel of which some pieces have come; a power of two */
#define PACKET_PIECE_MIN  256u  /* ROCE_MTU_MIN: below that the headers are most of what is sent */

/* ---- sending ---- */

struct packet_receiver {
    uint64_t extent_bytes; /* of the receiver's slots */
    uint32_t mtu_bytes;
};

/* How many lengths there are for this MTU: 1, only whole packets, to PACKET_LENGTHS. */
uint32_t packet_lengths(uint32_t mtu_bytes);
/* Cuts a write into pieces of 1/`pieces` of the MTU, 2, 4 or 8. One that fits a piece stays as it is. Returns
 * their number. */
uint32_t packet_cut(const struct packet_receiver *peer, const struct fabric_write *write, uint32_t pieces,
                    struct fabric_write out[PACKET_PIECES_MAX]);

/* ---- receiving ---- */

/* Which part of a packet a write is. */
struct packet_piece {
    uint32_t slot;
    uint64_t offset;    /* in the slot */
    uint32_t first;     /* eighth */
    uint32_t end_bytes; /* where the packet ends that it is the last piece of; 0: it may be any */
};

/* A packet that has not come whole. rkey is new with each binding of a slot, so a late piece never completes
 * a packet of another one. */
struct packet_partial {
    uint32_t rkey;
    uint32_t packet; /* of the slot */
    uint16_t slot;
    uint16_t end_bytes; /* 0: not known */
    uint8_t eighths;    /* bit i: eighth i has come; 0: it is nobody's */
};

/* Reads the address of a write of `bytes` bytes. False: it is no piece, or not what a piece of that length
 * can be. */
bool packet_piece_read(const struct fabric_endpoint_attr *attr, uint64_t va, uint32_t packet,
                       uint32_t bytes, struct packet_piece *piece);
/* Notes a piece that was read, of that binding, when its bytes are in place; partials are PACKET_PARTIALS
 * of its channel. A packet whose place another one needs is forgotten, as if lost. Returns the bytes of the
 * packet that it made whole, or 0. */
uint32_t packet_piece_add(struct packet_partial *partials, const struct packet_piece *piece,
                          uint32_t mtu_bytes, uint32_t rkey, uint32_t packet, uint32_t bytes);

#endif
