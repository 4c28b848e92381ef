/*
 * control.c - flow control at work: what the end of a link tells its beginning, and what that makes of
 * it.
 *
 * Pauses, resumes and credits are packets of 64 bytes. They go before all else, behind the packet that is
 * on the wire.
 *
 * Timers of each long link under Bifrost: its slot, at whole multiples of the slot's length, as long as
 * anything came or is expected less than the link can carry; the next part of a pause; and at its
 * beginning the end of a pause, and that of what a guard allows without a frame. A guarded link has a frame
 * in each slot, always; while it is at rest and its beginning is not silent, these would say nothing, and
 * are left out. Those of a refresh are in control_refresh.c.
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

/* ---- Bifrost ----------------------------------------------------------------------------------------- */

static uint32_t long_event(const struct netsim *net, uint32_t machine, unsigned kind)
{
    return net->first_slot_event + NETSIM_LONG_EVENTS * machine + kind;
}

static void schedule_anew(struct netsim *net, uint32_t event, netsim_time at_ps)
{
    if (netsim_event_pending(&net->events, event))
        netsim_event_cancel(&net->events, event);
    netsim_event_schedule(&net->events, event, at_ps);
}

static void cancel(struct netsim *net, uint32_t event)
{
    if (netsim_event_pending(&net->events, event))
        netsim_event_cancel(&net->events, event);
}

static void schedule_slot(struct netsim *net, uint32_t machine)
{
    uint32_t event = long_event(net, machine, NETSIM_LONG_SLOT);
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

static netsim_time quanta_ps(const struct netsim *net, uint32_t port, uint32_t quanta)
{
    uint64_t bytes = (uint64_t)quanta * LH_PFC_QUANTUM_BYTES; /* of one frame: 39 bits with the rest */
    return net->ports[port].ps_per_byte_q16 * bytes >> 16;
}

static void tell_pause(struct netsim *net, uint32_t number, uint32_t quanta)
{
    struct netsim_long_link *machine = &net->long_links[number];
    uint32_t after = 0;
    uint32_t part = lh_pfc_part(quanta, &after);
    netsim_control_tell(net, machine->port, LH_NETSIM_PAUSE, part);
    machine->left_quanta = quanta - after;
    if (after != 0)
        netsim_event_schedule(&net->events, long_event(net, number, NETSIM_LONG_PART),
                              net->now_ps + quanta_ps(net, machine->port, after));
}

static void on_slot(struct netsim *net, uint32_t number)
{
    struct netsim_long_link *machine = &net->long_links[number];
    uint64_t queue_bytes = net->ports[machine->port].held_bytes[net->transport.data_priority];
    uint32_t quanta = lh_bifrost_on_slot(&machine->bifrost, queue_bytes, machine->received_bytes);
    machine->rests = is_at_rest(machine, queue_bytes) && !machine->silent;
    machine->received_bytes = 0;
    if (quanta > 0)
        tell_pause(net, number, quanta);
    else if (machine->guard_ps != 0 || machine->bifrost.tells)
        netsim_control_tell(net, machine->port, LH_NETSIM_RESUME, 0);
    if (machine->rests)
        cancel(net, long_event(net, number, NETSIM_LONG_GUARD));
    else
        schedule_slot(net, number);
}

/* The first packet after a rest. The first frame sets out within a slot, and had none been left out, one
 * would have come until then. */
static void on_long_arrival(struct netsim *net, uint32_t number, uint32_t bytes)
{
    struct netsim_long_link *machine = &net->long_links[number];
    machine->received_bytes += bytes;
    schedule_slot(net, number);
    if (!machine->rests)
        return;
    machine->rests = false;
    netsim_time back_ps = net->ports[net->ports[machine->port].reverse].delay_ps;
    if (machine->guard_ps != 0)
        schedule_anew(net, long_event(net, number, NETSIM_LONG_GUARD),
                      net->now_ps + machine->slot_ps + back_ps + machine->guard_ps);
}

/* At the beginning of the link: a frame counts from its arrival, and takes the place of the one before. */
static void on_bifrost_frame(struct netsim *net, uint32_t port, const struct netsim_packet *frame)
{
    uint32_t number = net->ports[port].machine;
    struct netsim_long_link *machine = &net->long_links[number];
    uint32_t pause_end = long_event(net, number, NETSIM_LONG_PAUSE_END);
    machine->silent = false;
    machine->paused = frame->kind == LH_NETSIM_PAUSE;
    netsim_on_pause(net, port, frame->priority, machine->paused);
    cancel(net, pause_end);
    if (machine->paused)
        netsim_event_schedule(&net->events, pause_end,
                              net->now_ps + quanta_ps(net, port, (uint32_t)frame->cookie));
    if (machine->guard_ps != 0 && !machine->rests)
        schedule_anew(net, long_event(net, number, NETSIM_LONG_GUARD), net->now_ps + machine->guard_ps);
}

static void on_pause_end(struct netsim *net, uint32_t number)
{
    struct netsim_long_link *machine = &net->long_links[number];
    machine->paused = false;
    if (!machine->silent)
        netsim_go(net, machine->port, net->transport.data_priority);
}

static void on_guard(struct netsim *net, uint32_t number)
{
    struct netsim_long_link *machine = &net->long_links[number];
    machine->silent = true;
    netsim_stop(net, machine->port, net->transport.data_priority);
}

/* ---- credits ----------------------------------------------------------------------------------------- */

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

static void freed(struct netsim *net, uint32_t link, uint32_t bytes)
{
    if (lh_cbfc_on_freed(&net->credits[link].receiver, bytes))
        tell_limit(net, link);
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
            if (lh_cbfc_is_due(&net->credits[link].receiver))
                tell_limit(net, link);
        }
        break;
    case NETSIM_CONTROL_BIFROST:
        on_long_arrival(net, in->machine, packet->wire_bytes);
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
        on_credit(net, port, frame.cookie);
    else if (net->ports[port].control == NETSIM_CONTROL_BIFROST)
        on_bifrost_frame(net, port, &frame);
    else
        on_pause(net, port, &frame);
}

void netsim_control_on_event(struct netsim *net, uint32_t event)
{
    uint32_t number = event / NETSIM_LONG_EVENTS;
    switch (event % NETSIM_LONG_EVENTS) {
    case NETSIM_LONG_SLOT:
        on_slot(net, number);
        break;
    case NETSIM_LONG_PART:
        tell_pause(net, number, net->long_links[number].left_quanta);
        break;
    case NETSIM_LONG_PAUSE_END:
        on_pause_end(net, number);
        break;
    default:
        on_guard(net, number);
        break;
    }
}
