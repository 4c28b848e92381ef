/*
 * roce_vectors.h - whole RoCEv2 packets that the Linux kernel's Soft-RoCE accepted or made.
 *
 * The packets that we make were sent to a Soft-RoCE queue pair (Linux 6.1), completed there and were
 * written to memory; the others came from it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef TEST_SUPPORT_ROCE_VECTORS_H
#define TEST_SUPPORT_ROCE_VECTORS_H

#include "wire/roce_packet.h"

struct roce_vector {
    const char *name;
    bool ours; /* made by us: M bit set; else made by Soft-RoCE, which leaves it clear */
    uint16_t ip_id;
    struct icrc_flow flow;
    struct roce_packet packet; /* payload points to the payload's own bytes */
    const uint8_t *bytes;      /* UDP payload, BTH to iCRC */
    size_t length;
};

#define ROCE_VECTORS 6
extern const struct roce_vector roce_vectors[ROCE_VECTORS];

/* Enough for a packet of any MTU. */
#define ROCE_PACKET_MAX (ROCE_PAYLOAD_MAX + 64)

/* Builds the packet that the header, with its payload and length, asks for; returns its size. */
size_t roce_build(const struct icrc_flow *flow, const struct roce_packet *packet, uint16_t ip_id,
                  uint8_t out[ROCE_PACKET_MAX]);

#endif
