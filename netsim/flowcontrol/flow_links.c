/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/flowcontrol/flow_links.h"

#include "netsim/engine/network.h"
#include "netsim/flowcontrol/flow_machines.h"

/* ---- bifrost link ---------------------------------------------------------------------------------- */

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
static bool is_idle_link(const struct netsim_long_link *link, uint64_t queue_bytes)
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
    link->idle = is_idle_link(link, queue_bytes) && !link->silent;
    link->received_bytes = 0;
    if (quanta > 0)
        signal_pause(control, number, quanta);
    else if (link->guard_ps != 0 || link->bifrost.tells)
        netsim_effect_signal(&control->effects, link->port, LH_NETSIM_RESUME, 0);
    if (link->idle)
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
    if (!link->idle)
        return;
    link->idle = false;
    uint32_t back = control->network->ports[link->port].reverse;
    netsim_time back_ps =
        control->network->ports[back].delay_ps + netsim_drift_max(&control->network->more[back].drift);
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
    if (link->guard_ps != 0 && !link->idle)
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

/* ---- refresh timers -------------------------------------------------------------------------------- */

static bool is_refreshed(const struct netsim_flow_control *control, uint32_t link)
{
    return control->refreshing && control->refreshes[link].period_ns != 0;
}

uint64_t netsim_refresh_quanta(const struct netsim_flow_control *control, uint32_t link)
{
    return is_refreshed(control, link) ? LH_PFC_QUANTA_MAX : NETSIM_HOLD;
}

static uint32_t event_of_refresh(const struct netsim_flow_control *control, uint32_t link)
{
    return control->first_refresh_event + 2 * link;
}

/* The machine counts whole nanoseconds; its period has at least one, so it is never due at once. */
static void schedule(struct netsim_flow_control *control, uint32_t link)
{
    netsim_effect_timer(&control->effects, event_of_refresh(control, link),
                        control->refreshes[link].due_ns * NETSIM_PS_PER_NS);
}

void netsim_refresh_begin(struct netsim_flow_control *control, uint32_t link)
{
    if (!is_refreshed(control, link) ||
        netsim_event_pending(&control->network->events, event_of_refresh(control, link)))
        return;
    lh_flow_refresh_on_said(&control->refreshes[link], control->network->now_ps / NETSIM_PS_PER_NS);
    schedule(control, link);
}

void netsim_refresh_end(struct netsim_flow_control *control, uint32_t link)
{
    if (!is_refreshed(control, link) ||
        !netsim_event_pending(&control->network->events, event_of_refresh(control, link)))
        return;
    lh_flow_refresh_end(&control->refreshes[link]);
    netsim_event_cancel(&control->network->events, event_of_refresh(control, link));
}

/* A limit that the sender has is not refreshed: InfiniBand goes on, and nothing would change. */
static bool announce_limit(struct netsim_flow_control *control, uint32_t link)
{
    struct netsim_credits *credits = &control->credits[link];
    uint64_t limit = lh_cbfc_limit(&credits->receiver);
    bool known = limit == credits->sender.limit_blocks;
    if (!known)
        netsim_effect_signal(&control->effects, link, LH_NETSIM_CREDIT, limit);
    return !known;
}

static bool announce_pause(struct netsim_flow_control *control, uint32_t link)
{
    assert(control->network->ports[link].stopped != 0);
    netsim_effect_signal(&control->effects, link, LH_NETSIM_PAUSE, LH_PFC_QUANTA_MAX);
    return true;
}

void netsim_refresh_on_expired(struct netsim_flow_control *control, uint32_t link)
{
    bool credits = control->network->ports[link].control == NETSIM_CONTROL_CREDITS;
    bool due =
        lh_flow_refresh_on_expired(&control->refreshes[link], control->network->now_ps / NETSIM_PS_PER_NS);
    assert(due);
    (void)due;
    if (credits ? announce_limit(control, link) : announce_pause(control, link))
        schedule(control, link);
    else
        lh_flow_refresh_end(&control->refreshes[link]);
}

void netsim_refresh_on_pause(struct netsim_flow_control *control, uint32_t port, uint64_t quanta)
{
    uint32_t event = control->first_refresh_event + 2 * port + 1;
    if (!is_refreshed(control, port))
        return;
    if (netsim_event_pending(&control->network->events, event))
        netsim_event_cancel(&control->network->events, event);
    if (quanta == 0)
        return;
    netsim_effect_timer(&control->effects, event,
                        control->network->now_ps +
                            netsim_quanta_ps(&control->network->ports[port], quanta));
}

/* ---- credit link ----------------------------------------------------------------------------------- */

/* ---- the far end ------------------------------------------------------------------------------------- */

/* Raw packets, which may be longer than any, go without. */
static bool has_credit(const struct netsim_packet *packet)
{
    return packet->kind == LH_NETSIM_DATA && (packet->flags & NETSIM_COPY) == 0;
}

static void credit_link_announce_limit(struct netsim_flow_control *control, uint32_t link)
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
        credit_link_announce_limit(control, link);
}

static void freed(struct netsim_flow_control *control, uint32_t link, uint32_t bytes)
{
    if (lh_cbfc_on_freed(&control->credits[link].receiver, bytes))
        credit_link_announce_limit(control, link);
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

/* ---- pause link ------------------------------------------------------------------------------------ */

/* ---- the far end ------------------------------------------------------------------------------------- */

static void signal_near_end(struct netsim_flow_control *control, uint32_t link, enum lh_flow_signal signal)
{
    if (signal == LH_FLOW_PAUSE) {
        netsim_effect_signal(&control->effects, link, LH_NETSIM_PAUSE,
                             netsim_refresh_quanta(control, link));
        netsim_refresh_begin(control, link);
    } else if (signal == LH_FLOW_RESUME) {
        netsim_effect_signal(&control->effects, link, LH_NETSIM_RESUME, 0);
        netsim_refresh_end(control, link);
    }
}

void netsim_pfc_update(struct netsim_flow_control *control, uint32_t link)
{
    struct netsim_port *in = &control->network->ports[link];
    const struct netsim_switch *node = &control->network->switches[in->far - control->network->hosts_count];
    uint8_t priority = control->priority;
    uint64_t free_bytes = control->network->config.buffer_bytes - node->used_bytes;
    signal_near_end(control, link,
                    lh_pfc_update(&control->network->more[link].pfc, in->held_bytes[priority], free_bytes,
                                  priority, &in->stopped));
}

void netsim_relay_update(struct netsim_flow_control *control, uint32_t link)
{
    struct netsim_port *in = &control->network->ports[link];
    struct lh_swing *swing = &control->long_links[in->long_link].swing;
    uint8_t priority = control->priority;
    signal_near_end(control, link, lh_swing_on_queue(swing, priority, in->held_bytes[priority]));
    in->stopped = swing->stopped;
}

/* ---- the near end ------------------------------------------------------------------------------------ */

/* A relay has two links; what stops one stops who sends by the other. Over the long link it does so only
 * when it forwards. */
static void pass_on(struct netsim_flow_control *control, uint32_t port, bool pause)
{
    const struct netsim_switch *relay =
        &control->network->switches[control->network->ports[port].owner - control->network->hosts_count];
    uint32_t other = 2 * relay->first_port + 1 - port;
    uint32_t link = control->network->ports[other].reverse;
    struct lh_swing *swing = &control->long_links[control->network->ports[link].long_link].swing;
    signal_near_end(control, link, lh_swing_on_signal(swing, control->priority, pause));
    control->network->ports[link].stopped = swing->stopped;
}

static void pause_or_resume(struct netsim_flow_control *control, uint32_t port, bool pause)
{
    if (pause) {
        control->network->more[port].pauses++;
        netsim_queue_pause(control->network, port, control->priority);
    } else {
        netsim_queue_resume(control->network, port, control->priority);
        netsim_effect_kick(&control->effects, port);
    }
    if ((control->network->ports[port].flags & NETSIM_PORT_OF_RELAY) != 0)
        pass_on(control, port, pause);
}

void netsim_pause_on_frame(struct netsim_flow_control *control, uint32_t port,
                           const struct netsim_packet *frame)
{
    bool pause = frame->kind == LH_NETSIM_PAUSE;
    pause_or_resume(control, port, pause);
    netsim_refresh_on_pause(control, port, pause ? frame->cookie : 0);
}

void netsim_pause_on_expired(struct netsim_flow_control *control, uint32_t port)
{
    pause_or_resume(control, port, false);
}

/* ---- signalling ------------------------------------------------------------------------------------ */

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
