/*
 * qp_info.h - the blob that two endpoints exchange before they connect: layout, encode, decode.
 *
 * The same for every fabric. Everything in it is hostile until decoded; decode checks magic, version, exact
 * length, every count against its bound, and a CRC-32 against damage (not against an attacker).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_WIRE_QP_INFO_H
#define LH_WIRE_QP_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QP_INFO_MAGIC           0x4C484C31u /* "LHL1" */
#define QP_INFO_VERSION         1u
#define QP_INFO_CHANNELS_MAX    32u
#define QP_INFO_GENERATIONS_MAX 8u
#define QP_INFO_BYTES_MAX       1400u

enum qp_info_fabric {
    QP_INFO_UDP = 1,
    QP_INFO_VERBS = 2,
    QP_INFO_SIM = 3,
    QP_INFO_FABRICS_END, /* no fabric: the first free number */
};

/* Where an endpoint can be reached: what the fabric contributes. */
struct qp_info_endpoint {
    uint8_t fabric; /* enum qp_info_fabric */
    uint8_t family; /* 4 or 6 */
    uint8_t channels;
    uint8_t generations;
    uint8_t address[16]; /* network order; IPv4 in the first 4, the rest zero */
    uint32_t control_qpn;
    uint16_t control_port; /* UDP port on which control datagrams arrive, host order */
    uint16_t channel_port[QP_INFO_CHANNELS_MAX]; /* UDP port on which the channel's packets arrive */
    uint32_t qpn[QP_INFO_GENERATIONS_MAX][QP_INFO_CHANNELS_MAX];
    uint64_t receive_buffer_bytes; /* what may wait in the receiver's sockets; 0: no limit (hardware) */
    /* Not in the blob, but known of its sender: its packets may come from this host instead, with any ports,
     * for there is NAT on the path. Answers go to where they came from. */
    bool translated;
    uint8_t seen_address[16]; /* of the same family */
    uint32_t proof;           /* that its punches bear: they are its own */
};

struct qp_info {
    struct qp_info_endpoint endpoint;
    uint32_t token; /* this incarnation of the QP: in every control message of the peer */
    uint32_t mtu_bytes;
    uint32_t chunk_bytes;
    uint32_t slots;
    uint64_t slot_bytes; /* largest message */
    uint8_t immediate_message_bits;
    uint8_t immediate_fragment_bits;
    uint8_t send_enable;
    uint8_t recv_enable;
    uint8_t wants_feedback; /* its congestion controller does: 0 or 1 */
    uint8_t credits;        /* number of the receiver's half that grants it credits; 0: none */
};

/* Bytes that encode writes. */
size_t qp_info_bytes(uint32_t channels, uint32_t generations);
/* Returns qp_info_bytes(); out holds that many. */
size_t qp_info_encode(const struct qp_info *info, uint8_t *out);
/* The blob's size from its first 8 bytes (so that a caller who gets only a pointer knows how much to read);
 * 0 when it is no blob of ours or claims more than QP_INFO_BYTES_MAX. */
size_t qp_info_peek_bytes(const uint8_t first[8]);
/* 0, or -LH_EHANDSHAKE / -LH_EVERSION with the reason in lh_last_error(). On 0 all counts are within their
 * bounds, QP numbers have 24 bits, the MTU is a RoCE MTU and divides the chunk, the immediate has at least
 * one bit for each part, and slots and slot_bytes fit it; on udp no port is 0. */
int qp_info_decode(const uint8_t *data, size_t bytes, struct qp_info *info);
/* The largest chunk of at most wanted_bytes: a power of two of packets, or one. */
uint64_t qp_info_chunk_for(uint64_t wanted_bytes, uint32_t mtu_bytes);

#endif
