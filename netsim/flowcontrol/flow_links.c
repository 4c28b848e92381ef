/*
 * bifrost_link.c - see bifrost_link.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/flowcontrol/bifrost_link.h"

#include "netsim/engine/port_queue.h"

/* ---- timers ------------------------------------------------------------------------------------------ */

static uint32_t long_event(const struct netsim_flow_control *control, uint32_t number, unsigned kind)
{
    return control->first_slot_event + NETSIM_LONG_EVENTS * number + kind;
}

static void cancel(struct netsim_flow_control *control, uint32_t event)
{
    if (netsim_event_pending(&control->network->events, event))
        netsim_event_cancel(&control->network->events, event);
}

static void reschedule(struct netsim_flow_control *control, uint32_t event, netsim_time at_ps)
{
    cancel(control, event);
    netsim_effect_timer(&control->effects, event, at_ps);
}

static void schedule_slot(struct netsim_flow_control *control, uint32_t number)
{
    uint32_t event = long_event(control, number, NETSIM_LONG_SLOT);
    netsim_time slot_ps = control->long_links[number].slot_ps;
    if (!netsim_event_pending(&control->network->events, event))
        netsim_effect_timer(&control->effects, event, (control->network->now_ps / slot_ps + 1) * slot_ps);
}

/* ---- the far end ------------------------------------------------------------------------------------- */

/* An empty queue behind a link that may be full: no frame is due until a packet arrives. */
static bool is_at_rest(const struct netsim_long_link *link, uint64_t queue_bytes)
{
    return queue_bytes == 0 && link->received_bytes == 0 &&
           link->bifrost.incoming_bytes == link->bifrost.most_bytes;
}

static void signal_pause(struct netsim_flow_control *control, uint32_t number, uint32_t quanta)
{
    struct netsim_long_link *link = &control->long_links[number];
    uint32_t after = 0;
    uint32_t part = lh_pfc_part(quanta, &after);
    netsim_effect_signal(&control->effects, link->port, LH_NETSIM_PAUSE, part);
    link->left_quanta = quanta - after;
    if (after != 0)
        netsim_effect_timer(&control->effects, long_event(control, number, NETSIM_LONG_PART),
                            control->network->now_ps +
                                netsim_quanta_ps(&control->network->ports[link->port], after));
}

static void on_slot(struct netsim_flow_control *control, uint32_t number)
{
    struct netsim_long_link *link = &control->long_links[number];
    uint64_t queue_bytes = control->network->ports[link->port].held_bytes[control->priority];
    uint32_t quanta = lh_bifrost_on_slot(&link->bifrost, queue_bytes, link->received_bytes);
    link->rests = is_at_rest(link, queue_bytes) && !link->silent;
    link->received_bytes = 0;
    if (quanta > 0)
        signal_pause(control, number, quanta);
    else if (link->guard_ps != 0 || link->bifrost.tells)
        netsim_effect_signal(&control->effects, link->port, LH_NETSIM_RESUME, 0);
    if (link->rests)
        cancel(control, long_event(control, number, NETSIM_LONG_GUARD));
    else
        schedule_slot(control, number);
}

/* The first packet after a rest. The first frame sets out within a slot, and had none been left out, one
 * would have come until then. */
void netsim_bifrost_on_arrival(struct netsim_flow_control *control, uint32_t number, uint32_t bytes)
{
    struct netsim_long_link *link = &control->long_links[number];
    link->received_bytes += bytes;
    schedule_slot(control, number);
    if (!link->rests)
        return;
    link->rests = false;
    uint32_t back = control->network->ports[link->port].reverse;
    netsim_time back_ps =
        control->network->ports[back].delay_ps + netsim_drift_most(&control->network->more[back].drift);
    if (link->guard_ps != 0)
        reschedule(control, long_event(control, number, NETSIM_LONG_GUARD),
                   control->network->now_ps + link->slot_ps + back_ps + link->guard_ps);
}

/* ---- the near end ------------------------------------------------------------------------------------ */

/* A frame counts from its arrival, and takes the place of the one before. */
void netsim_bifrost_on_frame(struct netsim_flow_control *control, uint32_t port,
                             const struct netsim_packet *frame)
{
    uint32_t number = control->network->ports[port].long_link;
    struct netsim_long_link *link = &control->long_links[number];
    uint32_t pause_end = long_event(control, number, NETSIM_LONG_PAUSE_END);
    link->silent = false;
    link->paused = frame->kind == LH_NETSIM_PAUSE;
    if (link->paused) {
        control->network->more[port].pauses++;
        netsim_queue_pause(control->network, port, frame->priority);
    } else {
        netsim_queue_resume(control->network, port, frame->priority);
        netsim_effect_kick(&control->effects, port);
    }
    cancel(control, pause_end);
    if (link->paused)
        netsim_effect_timer(&control->effects, pause_end,
                            control->network->now_ps +
                                netsim_quanta_ps(&control->network->ports[port], (uint32_t)frame->cookie));
    if (link->guard_ps != 0 && !link->rests)
        reschedule(control, long_event(control, number, NETSIM_LONG_GUARD),
                   control->network->now_ps + link->guard_ps);
}

static void on_pause_end(struct netsim_flow_control *control, uint32_t number)
{
    struct netsim_long_link *link = &control->long_links[number];
    link->paused = false;
    if (link->silent)
        return;
    netsim_queue_resume(control->network, link->port, control->priority);
    netsim_effect_kick(&control->effects, link->port);
}

static void on_guard(struct netsim_flow_control *control, uint32_t number)
{
    struct netsim_long_link *link = &control->long_links[number];
    link->silent = true;
    netsim_queue_pause(control->network, link->port, control->priority);
}

void netsim_bifrost_on_event(struct netsim_flow_control *control, uint32_t event)
{
    uint32_t number = event / NETSIM_LONG_EVENTS;
    switch (event % NETSIM_LONG_EVENTS) {
    case NETSIM_LONG_SLOT:
        on_slot(control, number);
        break;
    case NETSIM_LONG_PART:
        signal_pause(control, number, control->long_links[number].left_quanta);
        break;
    case NETSIM_LONG_PAUSE_END:
        on_pause_end(control, number);
        break;
    default:
        on_guard(control, number);
        break;
    }
}
