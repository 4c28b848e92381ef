/*
 * inbound.h - what of carriers has arrived, and when it is acknowledged. Pure.
 *
 * Timer:
 *   ack_at   after a carrier: 1/4 of the shortest round trip, at most 20 us, so that an answer of the
 *            program takes the acknowledgement along; at once when the sender asks
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_MESSAGE_EAGER_INBOUND_H
#define LH_MESSAGE_EAGER_INBOUND_H

#include <longhaul/types.h>

#include "wire/eager.h"

struct inbound {
    bool any;           /* a carrier arrived, ever */
    uint32_t newest;    /* of those */
    uint32_t received;  /* how many */
    bool seen;          /* something of a message, ever */
    uint32_t seen_next; /* after the newest of those */
    bool ack_wanted;
    lh_time ack_at; /* if it is */
};

/* A carrier, or a probe. */
void inbound_on_carrier(struct inbound *inbound, const struct eager_packet *packet, lh_time rtt_minimum_ns,
                        lh_time now);
/* Something of this message arrived. */
void inbound_on_message(struct inbound *inbound, uint32_t number);
/* There is something to report. */
void inbound_want_ack(struct inbound *inbound, lh_time rtt_minimum_ns, lh_time now);
/* An acknowledgement was made. */
void inbound_on_acknowledged(struct inbound *inbound);

#endif
