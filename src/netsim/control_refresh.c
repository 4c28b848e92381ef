/*
 * control_refresh.c - flow control that says again what holds: pauses that end by themselves, and limits of
 * credit.
 *
 * Timers, two of each link: at its far end, when what was said is to be said anew, as long as it holds; at
 * its beginning, the end of a pause, which the next pause or a resume takes away. So a link that is not
 * stopped has none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

static bool is_refreshed(const struct netsim *net, uint32_t link)
{
    return net->refreshing && net->refreshes[link].period_ns != 0;
}

uint64_t netsim_refresh_quanta(const struct netsim *net, uint32_t link)
{
    return is_refreshed(net, link) ? LH_PFC_QUANTA_MAX : NETSIM_HOLD;
}

static uint32_t event_of_refresh(const struct netsim *net, uint32_t link)
{
    return net->first_refresh_event + 2 * link;
}

/* The machine counts whole nanoseconds; its period has at least one, so it is never due at once. */
static void schedule(struct netsim *net, uint32_t link)
{
    netsim_event_schedule(&net->events, event_of_refresh(net, link),
                          net->refreshes[link].due_ns * NETSIM_PS_PER_NS);
}

void netsim_refresh_begin(struct netsim *net, uint32_t link)
{
    if (!is_refreshed(net, link) || netsim_event_pending(&net->events, event_of_refresh(net, link)))
        return;
    lh_flow_refresh_on_said(&net->refreshes[link], net->now_ps / NETSIM_PS_PER_NS);
    schedule(net, link);
}

void netsim_refresh_end(struct netsim *net, uint32_t link)
{
    if (!is_refreshed(net, link) || !netsim_event_pending(&net->events, event_of_refresh(net, link)))
        return;
    lh_flow_refresh_end(&net->refreshes[link]);
    netsim_event_cancel(&net->events, event_of_refresh(net, link));
}

/* A limit that the sender has is told no more: InfiniBand goes on, and nothing would change. */
static bool tell_limit(struct netsim *net, uint32_t link)
{
    struct netsim_credits *credits = &net->credits[link];
    uint64_t limit = lh_cbfc_limit(&credits->receiver);
    bool known = limit == credits->sender.limit_blocks;
    if (!known)
        netsim_control_tell(net, link, LH_NETSIM_CREDIT, limit);
    return !known;
}

static bool tell_pause(struct netsim *net, uint32_t link)
{
    assert(net->ports[link].stopped != 0);
    netsim_control_tell(net, link, LH_NETSIM_PAUSE, LH_PFC_QUANTA_MAX);
    return true;
}

static void on_refresh(struct netsim *net, uint32_t link)
{
    bool credits = net->ports[link].control == NETSIM_CONTROL_CREDITS;
    bool due = lh_flow_refresh_on_expired(&net->refreshes[link], net->now_ps / NETSIM_PS_PER_NS);
    assert(due);
    (void)due;
    if (credits ? tell_limit(net, link) : tell_pause(net, link))
        schedule(net, link);
    else
        lh_flow_refresh_end(&net->refreshes[link]);
}

/* A pause counts from its arrival. */
void netsim_refresh_on_heard(struct netsim *net, uint32_t port, uint64_t quanta)
{
    uint32_t event = net->first_refresh_event + 2 * port + 1;
    if (!is_refreshed(net, port))
        return;
    if (netsim_event_pending(&net->events, event))
        netsim_event_cancel(&net->events, event);
    if (quanta == 0)
        return;
    netsim_event_schedule(&net->events, event, net->now_ps + netsim_quanta_ps(&net->ports[port], quanta));
}

void netsim_on_refresh_event(struct netsim *net, uint32_t event)
{
    if (event % 2 == 0)
        on_refresh(net, event / 2);
    else
        netsim_control_on_pause_over(net, event / 2);
}
