/*
 * xp_header.h - the packet of the XP transport (OptiNIC paper, section 3.1): each one says by itself which
 * message it is of, and where its payload goes.
 *
 * A packet is UDP / BTH 12 / XPETH 28 / payload padded to 4 / iCRC 4, big-endian save the iCRC. The BTH is
 * that of RoCEv2 with an opcode of the range that is left to manufacturers, and has the message's wqe_seq
 * where the PSN is. XPETH: offset or address 64, key 32, immediate 32, length 32, deadline 32, receive 16,
 * stride 16 bits: see struct xp_packet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_XP_HEADER_H
#define LH_WIRE_XP_HEADER_H

#include "wire/roce_packet.h"

#define XP_XPETH_BYTES  28u
#define XP_HEADER_BYTES (ROCE_BTH_BYTES + XP_XPETH_BYTES)
#define XP_OVERHEAD     (XP_HEADER_BYTES + ROCE_ICRC_BYTES)
#define XP_SEQ_MASK     0xFFFFFFu

/* BTH byte 0. */
enum xp_opcode {
    XP_SEND = 0xC0,
    XP_WRITE = 0xC1,
    XP_WRITE_IMM = 0xC2,
    XP_READ_REQUEST = 0xC3,
    XP_READ_RESPONSE = 0xC4,
    XP_NOTIFICATION = 0xC5, /* of congestion: for the sender's rate control */
    XP_OPCODE_FIRST = XP_SEND,
    XP_OPCODE_LAST = XP_NOTIFICATION,
};

struct xp_packet {
    enum xp_opcode opcode;
    bool last;            /* fragment of its message: BTH's solicited event */
    uint32_t dest_qpn;    /* 24 bits */
    uint32_t wqe_seq;     /* 24 bits; of a response, its request's */
    uint64_t offset;      /* SEND, READ_RESPONSE: in the buffer; WRITE, READ_REQUEST: remote address */
    uint32_t key;         /* WRITE, READ_REQUEST */
    uint32_t immediate;   /* WRITE_IMM */
    uint32_t length;      /* READ_REQUEST: bytes wanted; else of the whole message */
    uint32_t deadline_us; /* READ_REQUEST: no response leaves later than this after its arrival */
    uint16_t receive;     /* SEND, WRITE_IMM: which receive of the peer it takes, counted from the start */
    uint16_t stride;      /* elements of a packet are of this many blocks (section 3.2); 0: none */
    const uint8_t *payload; /* of SEND, WRITE, WRITE_IMM and READ_RESPONSE */
    uint32_t payload_bytes; /* to ROCE_MTU_MAX */
};

/* Writes XP_HEADER_BYTES. */
void xp_encode_header(const struct xp_packet *packet, uint8_t out[XP_HEADER_BYTES]);
/* Reads a UDP payload, iCRC included, which is not checked; on ROCE_OK packet->payload points into data.
 * Fields that a packet of its kind does not have must be zero. */
enum roce_verdict xp_decode(const uint8_t *data, size_t bytes, struct xp_packet *packet);

#endif
