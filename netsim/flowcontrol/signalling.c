/*
 * signalling.c - see signalling.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/flowcontrol/signalling.h"

#include "netsim/flowcontrol/bifrost_link.h"
#include "netsim/flowcontrol/credit_link.h"
#include "netsim/flowcontrol/pause_link.h"
#include "netsim/flowcontrol/refresh_timers.h"

void netsim_signalling_on_arrival(struct netsim_flow_control *control, uint32_t link,
                                  const struct netsim_packet *packet)
{
    const struct netsim_port *in = &control->network->ports[link];
    switch ((enum netsim_control)in->control) {
    case NETSIM_CONTROL_PFC:
        netsim_pfc_update(control, link);
        break;
    case NETSIM_CONTROL_CREDITS:
        netsim_credits_on_arrival(control, link, packet);
        break;
    case NETSIM_CONTROL_BIFROST:
        netsim_bifrost_on_arrival(control, in->long_link, packet->wire_bytes);
        break;
    case NETSIM_CONTROL_RELAY:
        netsim_relay_update(control, link);
        break;
    case NETSIM_CONTROL_NONE:
        break;
    }
}

void netsim_signalling_on_departure(struct netsim_flow_control *control, uint32_t link,
                                    const struct netsim_packet *packet)
{
    struct netsim_port *in = &control->network->ports[link];
    if (in->control == NETSIM_CONTROL_PFC) {
        netsim_pfc_update(control, link);
    } else if (in->control == NETSIM_CONTROL_RELAY) {
        netsim_relay_update(control, link);
    } else if (in->control == NETSIM_CONTROL_CREDITS) {
        netsim_credits_on_departure(control, link, packet);
    }
}

void netsim_signalling_on_refused(struct netsim_flow_control *control, uint32_t link,
                                  const struct netsim_packet *packet)
{
    const struct netsim_port *in = &control->network->ports[link];
    if ((in->flags & NETSIM_PORT_CREDITS) != 0)
        netsim_credits_on_lost(control, link, packet);
    else if (in->control == NETSIM_CONTROL_BIFROST &&
             netsim_is_lossless(control->network, packet->priority))
        netsim_bifrost_on_arrival(control, in->long_link,
                                  packet->wire_bytes); /* it is not expected any more */
}

void netsim_signalling_on_signal(struct netsim_flow_control *control, uint32_t link,
                                 const struct netsim_packet *signal)
{
    uint32_t port = control->network->ports[link].reverse;
    if ((signal->flags & NETSIM_CORRUPTED) != 0)
        control->network->totals.signals_lost++; /* its frame check sequence is wrong */
    else if (signal->kind == LH_NETSIM_CREDIT)
        netsim_credits_on_limit(control, port, signal->cookie);
    else if (control->network->ports[port].control == NETSIM_CONTROL_BIFROST)
        netsim_bifrost_on_frame(control, port, signal);
    else
        netsim_pause_on_frame(control, port, signal);
}

void netsim_signalling_on_event(struct netsim_flow_control *control, uint32_t event)
{
    if (event < control->first_refresh_event)
        netsim_bifrost_on_event(control, event - control->first_slot_event);
    else if ((event - control->first_refresh_event) % 2 == 0)
        netsim_refresh_on_expired(control, (event - control->first_refresh_event) / 2);
    else
        netsim_pause_on_expired(control, (event - control->first_refresh_event) / 2);
}

uint32_t netsim_signalling_packet(struct netsim_flow_control *control, enum lh_netsim_kind kind,
                                  uint64_t value)
{
    struct netsim_network *network = control->network;
    uint32_t number = netsim_packet_new(network);
    if (number == NETSIM_NO_PACKET)
        return number;
    network->pool.packets[number] = (struct netsim_packet){
        .flow = NETSIM_NO_FLOW,
        .cookie = value,
        .wire_bytes = LH_PFC_FRAME_BYTES,
        .kind = (uint8_t)kind,
        .priority = control->priority,
    };
    network->totals.pauses += kind == LH_NETSIM_PAUSE;
    network->totals.resumes += kind == LH_NETSIM_RESUME;
    network->totals.credits += kind == LH_NETSIM_CREDIT;
    return number;
}
