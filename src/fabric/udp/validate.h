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

/* Validates all packets of a message, puts the good ones into rx.ready and moves payload that is elsewhere.
 * True when all of them are in their speculative places. rx.proven: the number of those that are the peer's,
 * late ones too. */
bool udp_take_message(struct udp_channel *channel, struct udp_scatter *scatter,
                      const struct udp_received *message);

#endif
