/*
 * pause_link.c - see pause_link.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/flowcontrol/pause_link.h"

#include "netsim/engine/port_queue.h"
#include "netsim/flowcontrol/refresh_timers.h"

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
