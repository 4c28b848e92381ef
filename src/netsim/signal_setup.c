/*
 * signal_setup.c - gives each direction of the long links its losses of signals.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/network.h"

static void setup_link(struct netsim *net, const struct netsim_long_config *config, uint32_t link,
                       struct netsim_signal_loss *loss, const struct lh_prng *prng)
{
    struct lh_prng own = lh_prng_fork(prng, NETSIM_COMPONENT_SIGNALS | (uint64_t)link << 32);
    netsim_signal_loss_init(loss, config, lh_prng_next(&own));
    net->more[link].signals = loss;
    net->ports[link].flags |= NETSIM_PORT_FAULTY;
}

static uint32_t count_long(const struct netsim_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t c = 0; graph->cables != NULL && c < graph->cables_count; c++)
        count += netsim_cable_is_long(graph, &graph->cables[c]);
    return count;
}

void netsim_signal_setup(struct netsim *net, const struct netsim_config *config,
                         const struct netsim_graph *graph, const struct lh_prng *prng,
                         struct netsim_arena *arena)
{
    if (!netsim_signals_suffer(&config->longs))
        return;
    net->mute_until_ps = config->longs.mute_from_ps + config->longs.mute_for_ps;
    net->signals = netsim_arena_take(arena, (size_t)2 * count_long(graph), sizeof *net->signals);
    struct netsim_signal_loss *loss = net->signals;
    for (uint32_t c = 0; arena->base != NULL && c < graph->cables_count; c++) {
        if (!netsim_cable_is_long(graph, &graph->cables[c]))
            continue;
        uint32_t link = net->cable_links[c];
        setup_link(net, &config->longs, link, loss++, prng);
        setup_link(net, &config->longs, net->ports[link].reverse, loss++, prng);
    }
}
