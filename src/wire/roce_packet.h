/*
 * roce.h - the RoCEv2 UC packet: BTH, RETH, immediate; constants and one encoder and decoder.
 *
 * A packet is UDP / BTH 12 / [RETH 16] / [ImmDt 4] / payload padded to 4 / iCRC 4, big-endian save the iCRC
 * (InfiniBand Architecture Specification, Annex A17 and chapter 9). We send ONLY packets: each one carries
 * the address of its payload, so order never matters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_ROCE_H
#define LH_WIRE_ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCE_UDP_PORT        4791u /* IANA "roce" */
#define ROCE_PKEY_DEFAULT    0xFFFFu
#define ROCE_BTH_BYTES       12u
#define ROCE_RETH_BYTES      16u
#define ROCE_IMMEDIATE_BYTES 4u
#define ROCE_ICRC_BYTES      4u
#define ROCE_MTU_MIN         256u /* of RDMA devices (IBTA: path MTU) */
#define ROCE_PAYLOAD_MIN     64u  /* of full packets elsewhere: the SDK's SDR_MTU_64 */
#define ROCE_MTU_MAX         4096u
#define ROCE_QPN_MASK        0xFFFFFFu
#define ROCE_QPN_OFFSET      5u
#define ROCE_PSN_MASK        0xFFFFFFu

/* Header bytes before the payload of each kind. */
#define ROCE_WRITE_IMM_HEADER_BYTES (ROCE_BTH_BYTES + ROCE_RETH_BYTES + ROCE_IMMEDIATE_BYTES)
#define ROCE_WRITE_HEADER_BYTES     (ROCE_BTH_BYTES + ROCE_RETH_BYTES)
#define ROCE_SEND_HEADER_BYTES      ROCE_BTH_BYTES
/* A congestion notification packet (Annex A17.9.3): BTH, and 16 bytes that are reserved. */
#define ROCE_CNP_HEADER_BYTES (ROCE_BTH_BYTES + 16u)
#define ROCE_CNP_BYTES        (ROCE_CNP_HEADER_BYTES + ROCE_ICRC_BYTES)

/* A send may be as long on the wire as the longest write with immediate: it probes the path for that. */
#define ROCE_SEND_MAX (ROCE_MTU_MAX + ROCE_WRITE_IMM_HEADER_BYTES - ROCE_SEND_HEADER_BYTES)

/* IPv6 or IPv4, UDP, BTH and all: what a write with immediate costs beyond its (padded) payload. */
#define ROCE_WRITE_IMM_OVERHEAD_V6 (40u + 8u + ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)
#define ROCE_WRITE_IMM_OVERHEAD_V4 (20u + 8u + ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)

/* BTH byte 0: UC opcodes, and the one of a congestion notification to a QP of any type. */
enum roce_opcode {
    ROCE_UC_SEND_ONLY = 0x24,
    ROCE_UC_WRITE_ONLY = 0x2A,
    ROCE_UC_WRITE_ONLY_IMM = 0x2B,
    ROCE_CNP = 0x81,
};

struct roce_packet {
    enum roce_opcode opcode;
    uint32_t dest_qpn;  /* 24 bits */
    uint32_t psn;       /* 24 bits */
    uint64_t va;        /* writes only: where the payload goes */
    uint32_t rkey;      /* writes only */
    uint32_t immediate; /* WRITE_ONLY_IMM only */
    const uint8_t *payload;
    uint32_t payload_bytes; /* without pad; for a write the same as RETH.DMALen; of a CNP 0 */
};

/* Why a datagram is not a packet that we take. */
enum roce_verdict {
    ROCE_OK = 0,
    ROCE_BAD_HEADER, /* too short, unknown opcode, version, or partition key */
    /* RETH.DMALen, pad and datagram length do not agree, or payload over ROCE_MTU_MAX (a send:
     * ROCE_SEND_MAX) */
    ROCE_BAD_LENGTH,
};

static inline uint32_t roce_pad_bytes(uint32_t payload_bytes)
{
    return (4u - (payload_bytes & 3u)) & 3u;
}

/* Header bytes before the payload; 0 for an opcode that we do not know. */
size_t roce_header_bytes(uint8_t opcode);
/* Writes the header (M bit set, pad count, default P_Key; of a CNP BECN) and returns its size. out holds 32
 * bytes. */
size_t roce_encode_header(const struct roce_packet *packet, uint8_t *out);
/* Reads a UDP payload, iCRC included; on ROCE_OK packet->payload points into data. The iCRC is not
 * checked. Only header bytes are read, so that the rest may lie elsewhere. */
enum roce_verdict roce_decode(const uint8_t *data, size_t bytes, struct roce_packet *packet);

#endif
