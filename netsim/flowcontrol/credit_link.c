/*
 * credit_link.c - see credit_link.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/flowcontrol/credit_link.h"

#include "netsim/engine/port_queue.h"
#include "netsim/flowcontrol/refresh_timers.h"

/* ---- the far end ------------------------------------------------------------------------------------- */

/* Raw packets, which may be longer than any, go without. */
static bool has_credit(const struct netsim_packet *packet)
{
    return packet->kind == LH_NETSIM_DATA && (packet->flags & NETSIM_COPY) == 0;
}

static void announce_limit(struct netsim_flow_control *control, uint32_t link)
{
    netsim_effect_signal(&control->effects, link, LH_NETSIM_CREDIT,
                         lh_cbfc_limit(&control->credits[link].receiver));
    netsim_refresh_begin(control, link);
}

void netsim_credits_on_arrival(struct netsim_flow_control *control, uint32_t link,
                               const struct netsim_packet *packet)
{
    struct lh_cbfc_receiver *receiver = &control->credits[link].receiver;
    if (!has_credit(packet))
        return;
    bool fits = lh_cbfc_on_packet(receiver, packet->wire_bytes);
    assert(fits);
    (void)fits;
    if (lh_cbfc_is_due(receiver))
        announce_limit(control, link);
}

static void freed(struct netsim_flow_control *control, uint32_t link, uint32_t bytes)
{
    if (lh_cbfc_on_freed(&control->credits[link].receiver, bytes))
        announce_limit(control, link);
}

void netsim_credits_on_departure(struct netsim_flow_control *control, uint32_t link,
                                 const struct netsim_packet *packet)
{
    if (has_credit(packet))
        freed(control, link, packet->wire_bytes);
}

/* InfiniBand's sender announces its total from time to time, so that the receiver finds the gap. Here it
 * knows at once. */
void netsim_credits_on_lost(struct netsim_flow_control *control, uint32_t link,
                            const struct netsim_packet *packet)
{
    if (!has_credit(packet))
        return;
    if (lh_cbfc_on_packet(&control->credits[link].receiver, packet->wire_bytes))
        freed(control, link, packet->wire_bytes);
}

/* ---- the near end ------------------------------------------------------------------------------------ */

/* Without credit for a full packet data waits, however short the next one is. */
void netsim_credits_on_sent(struct netsim_flow_control *control, uint32_t port,
                            const struct netsim_packet *packet)
{
    struct lh_cbfc_sender *sender = &control->credits[port].sender;
    if (!has_credit(packet))
        return;
    lh_cbfc_on_sent(sender, packet->wire_bytes);
    if (!lh_cbfc_may_send(sender, control->frame_bytes))
        netsim_queue_pause(control->network, port, packet->priority);
}

void netsim_credits_on_limit(struct netsim_flow_control *control, uint32_t port, uint64_t limit)
{
    struct lh_cbfc_sender *sender = &control->credits[port].sender;
    uint8_t priority = control->priority;
    lh_cbfc_on_limit(sender, limit);
    if ((control->network->ports[port].paused >> priority & 1) != 0 &&
        lh_cbfc_may_send(sender, control->frame_bytes)) {
        netsim_queue_resume(control->network, port, priority);
        netsim_effect_kick(&control->effects, port);
    }
}
