/*
 * refresh_timers.c - see refresh_timers.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/flowcontrol/refresh_timers.h"

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
