/*
 * control_credits.c - credits at work: what the end of a link tells, and what its beginning may send.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

/* ---- the end of the link ----------------------------------------------------------------------------- */

/* Raw packets, which may be longer than any, go without. */
static bool has_credit(const struct netsim_packet *packet)
{
    return packet->kind == LH_NETSIM_DATA && (packet->flags & NETSIM_COPY) == 0;
}

static void tell_limit(struct netsim *net, uint32_t link)
{
    netsim_control_tell(net, link, LH_NETSIM_CREDIT, lh_cbfc_limit(&net->credits[link].receiver));
    netsim_refresh_begin(net, link);
}

void netsim_credits_on_arrival(struct netsim *net, uint32_t link, const struct netsim_packet *packet)
{
    struct lh_cbfc_receiver *receiver = &net->credits[link].receiver;
    if (!has_credit(packet))
        return;
    bool fits = lh_cbfc_on_packet(receiver, packet->wire_bytes);
    assert(fits);
    (void)fits;
    if (lh_cbfc_is_due(receiver))
        tell_limit(net, link);
}

static void freed(struct netsim *net, uint32_t link, uint32_t bytes)
{
    if (lh_cbfc_on_freed(&net->credits[link].receiver, bytes))
        tell_limit(net, link);
}

void netsim_credits_on_departure(struct netsim *net, uint32_t link, const struct netsim_packet *packet)
{
    if (has_credit(packet))
        freed(net, link, packet->wire_bytes);
}

/* InfiniBand's sender tells its total from time to time, so that the receiver finds what is missing. Here
 * it knows at once. */
void netsim_credits_on_lost(struct netsim *net, uint32_t link, const struct netsim_packet *packet)
{
    if (!has_credit(packet))
        return;
    if (lh_cbfc_on_packet(&net->credits[link].receiver, packet->wire_bytes))
        freed(net, link, packet->wire_bytes);
}

/* ---- its beginning ------------------------------------------------------------------------------------ */

/* Without credit for a full packet data waits, however short the next one is. */
void netsim_credits_on_sent(struct netsim *net, uint32_t port, const struct netsim_packet *packet)
{
    struct lh_cbfc_sender *sender = &net->credits[port].sender;
    if (!has_credit(packet))
        return;
    lh_cbfc_on_sent(sender, packet->wire_bytes);
    if (!lh_cbfc_may_send(sender, net->frame_bytes))
        netsim_stop(net, port, packet->priority);
}

void netsim_credits_on_limit(struct netsim *net, uint32_t port, uint64_t limit)
{
    struct lh_cbfc_sender *sender = &net->credits[port].sender;
    uint8_t priority = net->transport.data_priority;
    lh_cbfc_on_limit(sender, limit);
    if ((net->ports[port].paused >> priority & 1) != 0 && lh_cbfc_may_send(sender, net->frame_bytes))
        netsim_go(net, port, priority);
}
