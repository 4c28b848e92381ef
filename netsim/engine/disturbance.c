/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/engine/disturbance.h"

#include <math.h>

#include "base/error.h"
#include "netsim/engine/network.h"

/* ---- disturbance ----------------------------------------------------------------------------------- */

/*
 * Events: of a straggler, its next beginning, or while it pauses the end; of bursts and of flaps, the next
 * one.
 */

#define ALL_PRIORITIES 0xFFu

/* ---- set-up ------------------------------------------------------------------------------------------ */

static uint32_t count_stragglers(const struct netsim_disturb_config *config, uint32_t hosts)
{
    double wanted = round(config->stragglers * hosts);
    if (!(config->stragglers > 0))
        return 0;
    return wanted < 1 ? 1 : wanted < hosts ? (uint32_t)wanted : hosts;
}

static bool is_between_switches(const struct netsim_graph *graph, const struct netsim_cable *cable)
{
    return cable->ends[0] >= graph->hosts && cable->ends[1] >= graph->hosts;
}

/* The first ones of a shuffle. */
static void sample_stragglers(struct netsim_disturbance *disturbance)
{
    uint32_t hosts = disturbance->network->hosts_count;
    for (uint32_t i = 0; i < hosts; i++)
        disturbance->hosts[i] = i;
    for (uint32_t i = 0; i < disturbance->stragglers; i++) {
        uint32_t place = i + (uint32_t)lh_prng_below(&disturbance->pauses, hosts - i);
        uint32_t kept = disturbance->hosts[i];
        disturbance->hosts[i] = disturbance->hosts[place];
        disturbance->hosts[place] = kept;
    }
}

static void find_cables(struct netsim_disturbance *disturbance)
{
    struct netsim_network *network = disturbance->network;
    const struct netsim_graph *graph = network->graph;
    for (uint32_t c = 0; c < graph->cables_count; c++) {
        if (!is_between_switches(graph, &graph->cables[c]))
            continue;
        uint32_t link = network->cable_links[c];
        disturbance->cables[disturbance->cables_count++] = link;
        network->ports[link].flags |= NETSIM_PORT_FAULTY;
        network->ports[network->ports[link].reverse].flags |= NETSIM_PORT_FAULTY;
    }
}

void netsim_disturbance_init(struct netsim_disturbance *disturbance, struct netsim_network *network,
                             const struct netsim_config *config, const struct lh_prng *prng,
                             struct netsim_arena *arena)
{
    *disturbance = (struct netsim_disturbance){
        .network = network,
        .config = config->disturb,
        .frame_bytes = config->transport.payload_bytes + config->transport.header_bytes,
        .priority = config->transport.data_priority,
        .stragglers = count_stragglers(&config->disturb, network->hosts_count),
        .pauses = lh_prng_fork(prng, NETSIM_COMPONENT_STRAGGLERS),
        .bursts = lh_prng_fork(prng, NETSIM_COMPONENT_BURSTS),
        .flaps = lh_prng_fork(prng, NETSIM_COMPONENT_FLAPS),
    };
    disturbance->hosts = netsim_arena_take(arena, network->hosts_count, sizeof *disturbance->hosts);
    disturbance->cables =
        netsim_arena_take(arena, network->graph->cables_count, sizeof *disturbance->cables);
    if (arena->base == NULL)
        return;
    sample_stragglers(disturbance);
    if (config->disturb.flap_ps != 0)
        find_cables(disturbance);
}

static uint32_t burst_event(const struct netsim_disturbance *disturbance)
{
    return disturbance->first_event + disturbance->stragglers;
}

uint32_t netsim_disturbance_number_events(struct netsim_disturbance *disturbance, uint32_t first)
{
    disturbance->first_event = first;
    return burst_event(disturbance) + 2;
}

int netsim_disturbance_check(const struct netsim_config *config)
{
    const struct netsim_disturb_config *disturb = &config->disturb;
    bool any = disturb->stragglers > 0 || disturb->burst_bytes != 0 || disturb->flap_ps != 0;
    if (!any || config->transport.ack_bytes != 0 || config->transport.kind == NETSIM_XP)
        return 0;
    return lh_fail(LH_EINVAL, "a key of disturb is set, but transport.ack is 0: a flow with a lost packet "
                              "would never end (set transport.ack)");
}

/* ---- events ------------------------------------------------------------------------------------------ */

/* At least a picosecond, so that time passes. */
static void schedule(struct netsim_disturbance *disturbance, uint32_t event, netsim_time in_ps)
{
    struct netsim_network *network = disturbance->network;
    netsim_event_schedule(&network->events, event, network->now_ps + (in_ps > 0 ? in_ps : 1));
}

static netsim_time sample_ps(struct lh_prng *prng, netsim_time mean_ps)
{
    return (netsim_time)(-log1p(-lh_prng_double(prng)) * (double)mean_ps);
}

static void schedule_burst(struct netsim_disturbance *disturbance)
{
    schedule(disturbance, burst_event(disturbance),
             sample_ps(&disturbance->bursts, disturbance->config.burst_every_ps));
}

static void schedule_flap(struct netsim_disturbance *disturbance)
{
    schedule(disturbance, burst_event(disturbance) + 1,
             sample_ps(&disturbance->flaps, disturbance->config.flap_every_ps));
}

void netsim_disturbance_begin(struct netsim_disturbance *disturbance)
{
    for (uint32_t i = 0; i < disturbance->stragglers; i++)
        schedule(disturbance, disturbance->first_event + i,
                 sample_ps(&disturbance->pauses, disturbance->config.pause_every_ps));
    if (disturbance->config.burst_bytes != 0)
        schedule_burst(disturbance);
    if (disturbance->cables_count != 0)
        schedule_flap(disturbance);
}

static void on_straggler(struct netsim_disturbance *disturbance, uint32_t event,
                         struct netsim_disturbed *done)
{
    uint32_t host = disturbance->hosts[event - disturbance->first_event];
    struct netsim_port *port = &disturbance->network->ports[netsim_host_port(host)];
    if (port->stalled != 0) {
        port->stalled = 0;
        done->kick = netsim_host_port(host);
        schedule(disturbance, event, sample_ps(&disturbance->pauses, disturbance->config.pause_every_ps));
        return;
    }
    port->stalled = ALL_PRIORITIES;
    done->until_ps = disturbance->network->now_ps + disturbance->config.pause_ps;
    schedule(disturbance, event, disturbance->config.pause_ps);
}

static void on_burst(struct netsim_disturbance *disturbance, struct netsim_disturbed *done)
{
    struct lh_prng *prng = &disturbance->bursts;
    uint32_t hosts = disturbance->network->hosts_count;
    uint64_t bytes = disturbance->config.burst_bytes;
    done->source = (uint32_t)lh_prng_below(prng, hosts);
    done->destination = (done->source + 1 + (uint32_t)lh_prng_below(prng, hosts - 1)) % hosts;
    done->entropy = (uint32_t)lh_prng_next(prng);
    done->packets = (uint32_t)((bytes + disturbance->frame_bytes - 1) / disturbance->frame_bytes);
    schedule_burst(disturbance);
}

static void on_flap(struct netsim_disturbance *disturbance, struct netsim_disturbed *done)
{
    struct netsim_network *network = disturbance->network;
    uint32_t place = (uint32_t)lh_prng_below(&disturbance->flaps, disturbance->cables_count);
    uint32_t link = disturbance->cables[place];
    done->until_ps = network->now_ps + disturbance->config.flap_ps;
    network->more[link].down_until_ps = done->until_ps;
    network->more[network->ports[link].reverse].down_until_ps = done->until_ps;
    schedule_flap(disturbance);
}

struct netsim_disturbed netsim_disturbance_on_event(struct netsim_disturbance *disturbance, uint32_t event)
{
    struct netsim_disturbed done = {.kick = NETSIM_NO_PORT};
    assert(event >= disturbance->first_event && event < burst_event(disturbance) + 2);
    if (event < burst_event(disturbance))
        on_straggler(disturbance, event, &done);
    else if (event == burst_event(disturbance))
        on_burst(disturbance, &done);
    else
        on_flap(disturbance, &done);
    return done;
}

uint32_t netsim_disturbance_packet(struct netsim_disturbance *disturbance,
                                   const struct netsim_disturbed *burst)
{
    uint32_t packet = netsim_packet_new(disturbance->network);
    if (packet == NETSIM_NO_PACKET)
        return packet;
    disturbance->network->pool.packets[packet] = (struct netsim_packet){
        .flow = NETSIM_NO_FLOW,
        .sent_ps = disturbance->network->now_ps,
        .source = burst->source,
        .destination = burst->destination,
        .entropy = burst->entropy,
        .wire_bytes = (uint16_t)disturbance->frame_bytes,
        .kind = LH_NETSIM_DATA,
        .priority = disturbance->priority,
    };
    return packet;
}

/* ---- deadlock -------------------------------------------------------------------------------------- */

/* A signal gets through within far fewer, though nine of ten are lost in bursts of thousands. */
#define DEADLOCK_EVENTS ((uint64_t)1 << 20)

/* Rounds: signals on the wire before the first packet. */
static bool has_packets(const struct netsim_network *network, uint32_t port)
{
    uint32_t packet = network->ports[port].wire_first;
    while (packet != NETSIM_NO_PACKET && netsim_is_control(&network->pool.packets[packet]))
        packet = network->pool.packets[packet].next;
    return packet != NETSIM_NO_PACKET || network->more[port].overtakers != NETSIM_NO_PACKET;
}

static bool any_pending(const struct netsim_network *network, uint32_t first, uint32_t end)
{
    uint32_t event = first;
    while (event < end && !netsim_event_pending(&network->events, event))
        event++;
    return event < end;
}

static bool something_comes(const struct netsim_deadlock *deadlock, const struct netsim_network *network)
{
    if (any_pending(network, deadlock->first_event, deadlock->end_event) ||
        network->now_ps < deadlock->mute_until_ps)
        return true;
    for (uint32_t port = 0; port < network->ports_count; port++)
        if (has_packets(network, port))
            return true;
    return false;
}

/* A signal that is sent now is received, and answered, within that. */
static netsim_time longest_answer_ps(const struct netsim_network *network)
{
    netsim_time longest_ps = 0;
    for (uint32_t port = 0; port < network->ports_count; port++) {
        netsim_time delay_ps = network->ports[port].delay_ps + netsim_drift_max(&network->more[port].drift);
        longest_ps = delay_ps > longest_ps ? delay_ps : longest_ps;
    }
    return 2 * longest_ps;
}

static uint64_t count_moves(const struct netsim_network *network)
{
    uint64_t sum = 0;
    for (uint32_t port = 0; port < network->ports_count; port++)
        sum += network->ports[port].sent_packets;
    return sum - network->urgent_packets;
}

bool netsim_deadlock_found(struct netsim_deadlock *deadlock, const struct netsim_network *network)
{
    if (network->totals.events - deadlock->events < DEADLOCK_EVENTS)
        return false;
    uint64_t moves = count_moves(network);
    if (moves == deadlock->moves && !something_comes(deadlock, network))
        return network->now_ps - deadlock->since_ps > longest_answer_ps(network);
    deadlock->events = network->totals.events;
    deadlock->since_ps = network->now_ps;
    deadlock->moves = moves;
    return false;
}
