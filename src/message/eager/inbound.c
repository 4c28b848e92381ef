/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/eager/inbound.h"

#include "base/least.h"
#include "message/control/number.h"

#define ACK_FRACTION 4u
#define ACK_MAX_NS   (20 * LH_NS_PER_US)

static void want_ack(struct inbound *inbound, lh_time at)
{
    inbound->ack_at = inbound->ack_wanted ? lh_least(inbound->ack_at, at) : at;
    inbound->ack_wanted = true;
}

void inbound_want_ack(struct inbound *inbound, lh_time rtt_minimum_ns, lh_time now)
{
    want_ack(inbound, now + lh_least(rtt_minimum_ns / ACK_FRACTION, ACK_MAX_NS));
}

void inbound_on_carrier(struct inbound *inbound, const struct eager_packet *packet, lh_time rtt_minimum_ns,
                        lh_time now)
{
    if (!(packet->flags & (EAGER_HAS_ENTRIES | EAGER_PROBE)))
        return;
    if (!inbound->any || number_before(inbound->newest, packet->carrier))
        inbound->newest = packet->carrier;
    inbound->any = true;
    inbound->received++;
    if (packet->flags & EAGER_PROBE)
        want_ack(inbound, now);
    else
        inbound_want_ack(inbound, rtt_minimum_ns, now);
}

void inbound_on_message(struct inbound *inbound, uint32_t number)
{
    if (!inbound->seen || number_before(inbound->seen_next, number + 1))
        inbound->seen_next = number + 1;
    inbound->seen = true;
}

void inbound_on_acknowledged(struct inbound *inbound)
{
    inbound->ack_wanted = false;
}
