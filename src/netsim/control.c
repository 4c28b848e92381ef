/*
 * control.c - flow control at work: what the end of a link tells its beginning, and what that makes of
 * it.
 *
 * Pauses, resumes and credits are packets of 64 bytes. They go before all else, behind the packet that is
 * on the wire.
 *
 * Timers, two of each long link under Bifrost: its slot, at whole multiples of the slot's length, as long
 * as anything came or is expected less than the link can carry; and the end of a pause, at its beginning.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/control.h"

#include "netsim/network.h"

/* ---- telling ----------------------------------------------------------------------------------------- */

static void tell(struct netsim *net, uint32_t link, enum lh_netsim_kind kind, uint64_t value)
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
    if (signal == LH_FLOW_PAUSE)
        tell(net, link, LH_NETSIM_PAUSE, NETSIM_HOLD);
    else if (signal == LH_FLOW_RESUME)
        tell(net, link, LH_NETSIM_RESUME, 0);
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

/* ---- Bifrost ----------------------------------------------------------------------------------------- */

static void schedule_slot(struct netsim *net, uint32_t machine)
{
    uint32_t event = net->first_slot_event + 2 * machine;
    netsim_time slot_ps = net->long_links[machine].slot_ps;
    if (!netsim_event_pending(&net->events, event))
        netsim_event_schedule(&net->events, event, (net->now_ps / slot_ps + 1) * slot_ps);
}

/* An empty queue behind a link that may be full: nothing is to be said until something comes. */
static bool is_at_rest(const struct netsim_long_link *machine, uint64_t queue_bytes)
{
    return queue_bytes == 0 && machine->received_bytes == 0 &&
           machine->bifrost.incoming_bytes == machine->bifrost.most_bytes;
}

static void on_slot(struct netsim *net, uint32_t number)
{
    struct netsim_long_link *machine = &net->long_links[number];
    uint64_t queue_bytes = net->ports[machine->port].held_bytes[net->transport.data_priority];
    uint32_t quanta = lh_bifrost_on_slot(&machine->bifrost, queue_bytes, machine->received_bytes);
    bool rests = is_at_rest(machine, queue_bytes);
    machine->received_bytes = 0;
    if (quanta > 0)
        tell(net, machine->port, LH_NETSIM_PAUSE, quanta);
    if (!rests)
        schedule_slot(net, number);
}

/* ---- credits ----------------------------------------------------------------------------------------- */

/* Raw packets, which may be longer than any, go without. */
static bool has_credit(const struct netsim_packet *packet)
{
    return packet->kind == LH_NETSIM_DATA && (packet->flags & NETSIM_COPY) == 0;
}

static void freed(struct netsim *net, uint32_t link, uint32_t bytes)
{
    struct lh_cbfc_receiver *receiver = &net->credits[link].receiver;
    if (lh_cbfc_on_freed(receiver, bytes))
        tell(net, link, LH_NETSIM_CREDIT, lh_cbfc_limit(receiver));
}

/* InfiniBand's sender tells its total from time to time, so that the receiver finds what is missing. Here
 * it knows at once. */
void netsim_control_on_lost(struct netsim *net, uint32_t link, const struct netsim_packet *packet)
{
    if (!has_credit(packet))
        return;
    if (lh_cbfc_on_packet(&net->credits[link].receiver, packet->wire_bytes))
        freed(net, link, packet->wire_bytes);
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
        if (has_credit(packet)) {
            bool fits = lh_cbfc_on_packet(&net->credits[link].receiver, packet->wire_bytes);
            assert(fits);
            (void)fits;
        }
        break;
    case NETSIM_CONTROL_BIFROST:
        net->long_links[in->machine].received_bytes += packet->wire_bytes;
        schedule_slot(net, in->machine);
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
    } else if (in->control == NETSIM_CONTROL_CREDITS && has_credit(packet)) {
        freed(net, link, packet->wire_bytes);
    }
}

/* Without credit for a full packet data waits, however short the next one is. */
void netsim_control_on_sent(struct netsim *net, uint32_t port, const struct netsim_packet *packet)
{
    struct lh_cbfc_sender *sender = &net->credits[port].sender;
    if (!has_credit(packet))
        return;
    lh_cbfc_on_sent(sender, packet->wire_bytes);
    if (!lh_cbfc_may_send(sender, net->frame_bytes))
        netsim_stop(net, port, packet->priority);
}

/* ---- what the beginning of a link is told ------------------------------------------------------------ */

static void on_credit(struct netsim *net, uint32_t port, uint64_t limit)
{
    struct lh_cbfc_sender *sender = &net->credits[port].sender;
    uint8_t priority = net->transport.data_priority;
    lh_cbfc_on_limit(sender, limit);
    if ((net->ports[port].paused >> priority & 1) != 0 && lh_cbfc_may_send(sender, net->frame_bytes))
        netsim_go(net, port, priority);
}

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

static void on_pause(struct netsim *net, uint32_t port, const struct netsim_packet *frame)
{
    bool pause = frame->kind == LH_NETSIM_PAUSE;
    netsim_on_pause(net, port, frame->priority, pause);
    if ((net->ports[port].flags & NETSIM_PORT_OF_RELAY) != 0)
        pass_on(net, port, pause);
    if (!pause || frame->cookie == NETSIM_HOLD)
        return;
    /* A pause counts from its arrival, and takes the place of the one before. */
    uint32_t event = net->first_slot_event + 2 * net->ports[port].machine + 1;
    if (netsim_event_pending(&net->events, event))
        netsim_event_cancel(&net->events, event);
    uint64_t bytes =
        frame->cookie * LH_PFC_QUANTUM_BYTES; /* at most 65,535 quanta: 39 bits with the rest */
    netsim_event_schedule(&net->events, event,
                          net->now_ps + (net->ports[port].ps_per_byte_q16 * bytes >> 16));
}

void netsim_control_on_frame(struct netsim *net, uint32_t link, uint32_t number)
{
    const struct netsim_packet frame = net->pool.packets[number];
    uint32_t port = net->ports[link].reverse;
    netsim_packet_put(&net->pool, number);
    if ((frame.flags & NETSIM_CORRUPTED) != 0)
        return; /* its frame check sequence is wrong */
    if (frame.kind == LH_NETSIM_CREDIT)
        on_credit(net, port, frame.cookie);
    else
        on_pause(net, port, &frame);
}

void netsim_control_on_event(struct netsim *net, uint32_t event)
{
    if (event % 2 == 0)
        on_slot(net, event / 2);
    else
        netsim_go(net, net->long_links[event / 2].port, net->transport.data_priority);
}
