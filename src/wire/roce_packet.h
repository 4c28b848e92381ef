/*
 * roce_packet.h - the RoCEv2 UC packet: BTH, RETH, immediate, iCRC; constants, encoder and decoder.
 *
 * A packet is UDP / BTH 12 / [RETH 16] / [ImmDt 4] / payload padded to 4 / iCRC 4, big-endian save the iCRC
 * (InfiniBand Architecture Specification, Annex A17 and chapter 9). We send ONLY packets: each one carries
 * the address of its payload, so order never matters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_ROCE_PACKET_H
#define LH_WIRE_ROCE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCE_UDP_PORT        4791u /* IANA "roce" */
#define ROCE_PKEY_DEFAULT    0xFFFFu
#define ROCE_BTH_BYTES       12u
#define ROCE_RETH_BYTES      16u
#define ROCE_IMMEDIATE_BYTES 4u
#define ROCE_ICRC_BYTES      4u
/* RDMA devices take powers of two (IBTA: path MTU). Between two udp endpoints a full packet has any multiple
 * of a cache line, so that it fills the path: 1,408 bytes of 1,500, 8,896 of 9,000. */
#define ROCE_MTU_MIN      256u
#define ROCE_MTU_MAX      4096u
#define ROCE_PAYLOAD_MIN  64u /* of full packets: the SDK's SDR_MTU_64 */
#define ROCE_PAYLOAD_MAX  8896u
#define ROCE_PAYLOAD_STEP 64u
#define ROCE_QPN_MASK     0xFFFFFFu
#define ROCE_QPN_OFFSET   5u
#define ROCE_PSN_MASK     0xFFFFFFu

/* Header bytes before the payload of each kind. */
#define ROCE_WRITE_IMM_HEADER_BYTES (ROCE_BTH_BYTES + ROCE_RETH_BYTES + ROCE_IMMEDIATE_BYTES)
#define ROCE_SEND_HEADER_BYTES      ROCE_BTH_BYTES
/* A congestion notification packet (Annex A17.9.3): BTH, and 16 bytes that are reserved. */
#define ROCE_CNP_HEADER_BYTES (ROCE_BTH_BYTES + 16u)
#define ROCE_CNP_BYTES        (ROCE_CNP_HEADER_BYTES + ROCE_ICRC_BYTES)

/* IPv6 or IPv4, UDP, BTH and all: what a write with immediate costs beyond its (padded) payload. */
#define ROCE_WRITE_IMM_OVERHEAD_V6 (40u + 8u + ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)
#define ROCE_WRITE_IMM_OVERHEAD_V4 (20u + 8u + ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)

/* Bytes that an encrypted packet is longer (docs/wire.md): header and ICV of 16 each; no iCRC, no pad. */
#define ROCE_SEALED_EXTRA 28u

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
    /* RETH.DMALen, pad and datagram length do not agree, or payload over ROCE_PAYLOAD_MAX (a send:
     * ROCE_SEND_MAX) */
    ROCE_BAD_LENGTH,
};

static inline uint32_t roce_pad_bytes(uint32_t payload_bytes)
{
    return (4u - (payload_bytes & 3u)) & 3u;
}

/* The largest payload of a full packet that goes into IP packets of path_bytes, ROCE_WRITE_IMM_OVERHEAD_V4 or
 * _V6 of it headers; 0: less than ROCE_MTU_MIN. */
uint32_t roce_payload_for(uint32_t path_bytes, uint32_t overhead_bytes);
/* The largest MTU of RDMA devices that is at most payload_bytes, ROCE_MTU_MIN or more. */
uint32_t roce_mtu_for(uint32_t payload_bytes);
/* Whether full packets of udp endpoints may have that payload. */
bool roce_payload_is_valid(uint32_t payload_bytes);
/* Header bytes before the payload; 0 for an opcode that we do not know. */
size_t roce_header_bytes(uint8_t opcode);
/* Writes the header (M bit set, pad count, default P_Key; of a CNP BECN) and returns its size. out holds 32
 * bytes. */
size_t roce_encode_header(const struct roce_packet *packet, uint8_t *out);
/* Reads a UDP payload, iCRC included; on ROCE_OK packet->payload points into data. The iCRC is not
 * checked. Only header bytes are read, so that the rest may lie elsewhere. */
enum roce_verdict roce_decode(const uint8_t *data, size_t bytes, struct roce_packet *packet);

/* ---- icrc ------------------------------------------------------------------------------------------ */

/*
 * The invariant CRC of RoCEv2 (Annex A17.3.3): CRC-32 of IEEE 802.3 over the packet with those
 * fields set to ones that may change on the way. Stored little-endian.
 */

/* What of the IP and UDP headers enters the iCRC. Addresses in network order; IPv4 ones in 4 bytes. */
struct icrc_flow {
    bool ipv4;
    uint8_t source[16];
    uint8_t destination[16];
    uint16_t source_port;      /* host order */
    uint16_t destination_port; /* host order */
};

/* Running state after the masked LRH, IP and UDP headers of a datagram with this UDP payload length
 * (BTH to iCRC). ip_id counts only for IPv4, dont_fragment too. */
uint32_t icrc_begin(const struct icrc_flow *flow, uint32_t udp_payload_bytes, uint16_t ip_id,
                    bool dont_fragment);
/* Adds header bytes, the first of which is BTH byte 0 (byte 4 is masked). At least 12. */
uint32_t icrc_add_header(uint32_t state, const uint8_t *header, size_t bytes);
/* Adds payload and pad bytes; any piece lengths. */
uint32_t icrc_add(uint32_t state, const uint8_t *data, size_t bytes);
/* The same; meanwhile `later`, what is used next, is fetched into the caches. NULL: nothing is. */
uint32_t icrc_add_ahead(uint32_t state, const uint8_t *data, size_t bytes, const uint8_t *later);
/* The value as it is stored, little-endian, in the last four bytes of the packet. */
void icrc_store(uint32_t state, uint8_t out[4]);
uint32_t icrc_load(const uint8_t in[4]); /* comparable with icrc_finish() */
uint32_t icrc_finish(uint32_t state);

/* One whole UDP payload (BTH to iCRC, contiguous): does its iCRC hold? For IPv4 the IP ID of the sender is
 * unknown to a plain socket: tries the likely one, then solves for it (a 16-bit residual check remains, see
 * icrc_solve_ip_id). At least 16 bytes. */
bool icrc_check(const struct icrc_flow *flow, const uint8_t *udp_payload, size_t bytes, uint16_t likely_id);

/* IPv4: the ID with which the iCRC (finished value `wanted`) would hold, given the finished value for ID 0
 * of a datagram of that length. CRC is affine over GF(2): iCRC(id) = iCRC(0) ^ L(id), L fixed by the
 * length. False when there is none: the packet is damaged. */
bool icrc_solve_ip_id(uint32_t with_id_zero, uint32_t wanted, uint32_t udp_payload_bytes, uint16_t *ip_id);

/* ---- immediate ------------------------------------------------------------------------------------- */

/*
 * The 32-bit transport immediate: message ID, packet offset, fragment of the user's immediate
 * (SDR-RDMA paper, section 3.2.4).
 */

/* Widths in bits, most significant first: message ID, packet offset, fragment; they add up to 32. */
struct immediate_split {
    uint8_t message_bits;
    uint8_t offset_bits;
    uint8_t fragment_bits;
};

#define IMMEDIATE_SPLIT_10_18_4 ((struct immediate_split){10, 18, 4})
#define IMMEDIATE_SPLIT_8_22_2  ((struct immediate_split){8, 22, 2})

struct immediate_fields {
    uint32_t message;
    uint32_t packet;
    uint32_t fragment;
};

static inline uint32_t immediate_join(struct immediate_split split, struct immediate_fields fields)
{
    return (fields.message << (split.offset_bits + split.fragment_bits)) |
           (fields.packet << split.fragment_bits) | fields.fragment;
}

static inline struct immediate_fields immediate_part(struct immediate_split split, uint32_t immediate)
{
    return (struct immediate_fields){
        .message = immediate >> (split.offset_bits + split.fragment_bits),
        .packet = (immediate >> split.fragment_bits) & ((1u << split.offset_bits) - 1u),
        .fragment = immediate & ((1u << split.fragment_bits) - 1u),
    };
}

/* Packet p carries fragment p % immediate_fragments(): bits fragment_bits * that … of the user's. */
static inline uint32_t immediate_fragments(struct immediate_split split)
{
    return 32u / split.fragment_bits;
}

static inline uint32_t immediate_fragment_of(struct immediate_split split, uint32_t user, uint32_t packet)
{
    uint32_t index = packet % immediate_fragments(split);
    return (user >> (index * split.fragment_bits)) & ((1u << split.fragment_bits) - 1u);
}

#endif
