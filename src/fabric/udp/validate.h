/*
 * validate.h - validates the packets of a received message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_VALIDATE_H
#define LH_FABRIC_UDP_VALIDATE_H

#include "fabric/udp/udp.h"

struct udp_received {
    uint32_t bytes;
    uint32_t segment_bytes; /* of each packet in it, but for a shorter last one */
    uint32_t first;         /* the place of its first packet in the message that the kernel had */
};

/* Validates all packets of a message, puts payloads where they belong, and good packets into rx.arrivals.
 * rx.proven: the number of those that are the peer's, late ones too. */
void udp_take_message(struct udp_channel *channel, const uint8_t *data, const struct udp_received *message);

#endif
