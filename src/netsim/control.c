/*
 * control.c - flow control at work: what the end of a link tells its beginning, and what that makes of
 * it.
 *
 * Here are PFC and relays, and who is asked about a link; Bifrost, credits and what is said anew have files
 * of their own, control_*.c.
 *
 * Pauses, resumes and credits are packets of 64 bytes. They go before all else, behind the packet that is
 * on the wire.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/control.h"

#include "netsim/network.h"

/* ---- telling ----------------------------------------------------------------------------------------- */

void netsim_control_tell(struct netsim *net, uint32_t link, enum lh_netsim_kind kind, uint64_t value)
{
    uint32_t number = netsim_packet_new(net);
    if (number == NETSIM_NO_PACKET)
        return;
    net->pool.packets[number] = (struct netsim_packet){
        .flow = NETSIM_NO_FLOW,
        .cookie = value,
        .wire_bytes = LH_PFC_FRAME_BYTES,
        .kind = (uint8_t)kind,
        .priority = net->transport.data_priority,
    };
    net->totals.pauses += kind == LH_NETSIM_PAUSE;
    net->totals.resumes += kind == LH_NETSIM_RESUME;
    net->totals.credits += kind == LH_NETSIM_CREDIT;
    netsim_enqueue_urgent(net, net->ports[link].reverse, number);
}

static void tell_signal(struct netsim *net, uint32_t link, enum lh_flow_signal signal)
{
    if (signal == LH_FLOW_PAUSE) {
        netsim_control_tell(net, link, LH_NETSIM_PAUSE, netsim_refresh_quanta(net, link));
        netsim_refresh_begin(net, link);
    } else if (signal == LH_FLOW_RESUME) {
        netsim_control_tell(net, link, LH_NETSIM_RESUME, 0);
        netsim_refresh_end(net, link);
    }
}

static void pfc_update(struct netsim *net, uint32_t link)
{
    struct netsim_port *in = &net->ports[link];
    const struct netsim_switch *node = &net->switches[in->far - net->hosts_count];
    uint8_t priority = net->transport.data_priority;
    uint64_t free_bytes = net->switch_config.buffer_bytes - node->used_bytes;
    tell_signal(
        net, link,
        lh_pfc_update(&net->more[link].pfc, in->held_bytes[priority], free_bytes, priority, &in->stopped));
}

static void relay_update(struct netsim *net, uint32_t link)
{
    struct netsim_port *in = &net->ports[link];
    struct lh_swing *swing = &net->long_links[in->machine].swing;
    uint8_t priority = net->transport.data_priority;
    tell_signal(net, link, lh_swing_on_queue(swing, priority, in->held_bytes[priority]));
    in->stopped = swing->stopped;
}

/* ---- what happens to a link -------------------------------------------------------------------------- */

void netsim_control_on_arrival(struct netsim *net, uint32_t link, const struct netsim_packet *packet)
{
    const struct netsim_port *in = &net->ports[link];
    switch ((enum netsim_control)in->control) {
    case NETSIM_CONTROL_PFC:
        pfc_update(net, link);
        break;
    case NETSIM_CONTROL_CREDITS:
        netsim_credits_on_arrival(net, link, packet);
        break;
    case NETSIM_CONTROL_BIFROST:
        netsim_bifrost_on_arrival(net, in->machine, packet->wire_bytes);
        break;
    case NETSIM_CONTROL_RELAY:
        relay_update(net, link);
        break;
    case NETSIM_CONTROL_NONE:
        break;
    }
}

void netsim_control_on_departure(struct netsim *net, uint32_t link, const struct netsim_packet *packet)
{
    struct netsim_port *in = &net->ports[link];
    if (in->control == NETSIM_CONTROL_PFC) {
        pfc_update(net, link);
    } else if (in->control == NETSIM_CONTROL_RELAY) {
        relay_update(net, link);
    } else if (in->control == NETSIM_CONTROL_CREDITS) {
        netsim_credits_on_departure(net, link, packet);
    }
}

/* ---- what the beginning of a link is told ------------------------------------------------------------ */

/* A relay has two links; what stops one stops who sends by the other. Over the long link it does so only
 * when it forwards. */
static void pass_on(struct netsim *net, uint32_t port, bool pause)
{
    const struct netsim_switch *relay = &net->switches[net->ports[port].owner - net->hosts_count];
    uint32_t other = 2 * relay->first_port + 1 - port;
    uint32_t link = net->ports[other].reverse;
    struct lh_swing *swing = &net->long_links[net->ports[link].machine].swing;
    tell_signal(net, link, lh_swing_on_signal(swing, net->transport.data_priority, pause));
    net->ports[link].stopped = swing->stopped;
}

static void stop_or_go(struct netsim *net, uint32_t port, bool pause)
{
    netsim_on_pause(net, port, net->transport.data_priority, pause);
    if ((net->ports[port].flags & NETSIM_PORT_OF_RELAY) != 0)
        pass_on(net, port, pause);
}

void netsim_control_on_pause_over(struct netsim *net, uint32_t port)
{
    stop_or_go(net, port, false);
}

static void on_pause(struct netsim *net, uint32_t port, const struct netsim_packet *frame)
{
    bool pause = frame->kind == LH_NETSIM_PAUSE;
    stop_or_go(net, port, pause);
    netsim_refresh_on_heard(net, port, pause ? frame->cookie : 0);
}

void netsim_control_on_frame(struct netsim *net, uint32_t link, uint32_t number)
{
    const struct netsim_packet frame = net->pool.packets[number];
    uint32_t port = net->ports[link].reverse;
    netsim_packet_put(&net->pool, number);
    if ((frame.flags & NETSIM_CORRUPTED) != 0) {
        net->totals.signals_lost++; /* its frame check sequence is wrong */
        return;
    }
    if (frame.kind == LH_NETSIM_CREDIT)
        netsim_credits_on_limit(net, port, frame.cookie);
    else if (net->ports[port].control == NETSIM_CONTROL_BIFROST)
        netsim_bifrost_on_frame(net, port, &frame);
    else
        on_pause(net, port, &frame);
}
