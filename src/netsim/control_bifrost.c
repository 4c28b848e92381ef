/*
 * control_bifrost.c - Bifrost at work: its slots at the end of a long link, its pauses and its guard at the
 * beginning.
 *
 * Timers of each long link under Bifrost: its slot, at whole multiples of the slot's length, as long as
 * anything came or is expected less than the link can carry; the next part of a pause; and at its
 * beginning the end of a pause, and that of what a guard allows without a frame. A guarded link has a frame
 * in each slot, always; while it is at rest and its beginning is not silent, these would say nothing, and
 * are left out.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

/* ---- timers ------------------------------------------------------------------------------------------ */

static uint32_t long_event(const struct netsim *net, uint32_t machine, unsigned kind)
{
    return net->first_slot_event + NETSIM_LONG_EVENTS * machine + kind;
}

static void cancel(struct netsim *net, uint32_t event)
{
    if (netsim_event_pending(&net->events, event))
        netsim_event_cancel(&net->events, event);
}

static void schedule_anew(struct netsim *net, uint32_t event, netsim_time at_ps)
{
    cancel(net, event);
    netsim_event_schedule(&net->events, event, at_ps);
}

static void schedule_slot(struct netsim *net, uint32_t machine)
{
    uint32_t event = long_event(net, machine, NETSIM_LONG_SLOT);
    netsim_time slot_ps = net->long_links[machine].slot_ps;
    if (!netsim_event_pending(&net->events, event))
        netsim_event_schedule(&net->events, event, (net->now_ps / slot_ps + 1) * slot_ps);
}

/* ---- the end of the link ----------------------------------------------------------------------------- */

/* An empty queue behind a link that may be full: nothing is to be said until something comes. */
static bool is_at_rest(const struct netsim_long_link *machine, uint64_t queue_bytes)
{
    return queue_bytes == 0 && machine->received_bytes == 0 &&
           machine->bifrost.incoming_bytes == machine->bifrost.most_bytes;
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
                              net->now_ps + netsim_quanta_ps(&net->ports[machine->port], after));
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
void netsim_bifrost_on_arrival(struct netsim *net, uint32_t number, uint32_t bytes)
{
    struct netsim_long_link *machine = &net->long_links[number];
    machine->received_bytes += bytes;
    schedule_slot(net, number);
    if (!machine->rests)
        return;
    machine->rests = false;
    uint32_t back = net->ports[machine->port].reverse;
    netsim_time back_ps = net->ports[back].delay_ps + netsim_drift_most(&net->more[back].drift);
    if (machine->guard_ps != 0)
        schedule_anew(net, long_event(net, number, NETSIM_LONG_GUARD),
                      net->now_ps + machine->slot_ps + back_ps + machine->guard_ps);
}

/* ---- its beginning ------------------------------------------------------------------------------------ */

/* A frame counts from its arrival, and takes the place of the one before. */
void netsim_bifrost_on_frame(struct netsim *net, uint32_t port, const struct netsim_packet *frame)
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
                              net->now_ps + netsim_quanta_ps(&net->ports[port], (uint32_t)frame->cookie));
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

void netsim_bifrost_on_event(struct netsim *net, uint32_t event)
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
