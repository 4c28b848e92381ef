/*
 * pace.c - how fast a flow sends: transport.rate, or what DCQCN allows it.
 *
 * DCQCN is asked when a packet leaves, and catches up then. So a higher rate is felt from the next packet on:
 * at most a packet's time at the lower one later, and no event is needed for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/pace.h"

#include "netsim/network.h"

struct dcqcn_config netsim_pace_dcqcn(const struct netsim_dcqcn_config *config)
{
    return (struct dcqcn_config){
        .alpha_ns = config->alpha_ps / NETSIM_PS_PER_NS,
        .decrease_ns = config->decrease_ps / NETSIM_PS_PER_NS,
        .increase_ns = config->increase_ps / NETSIM_PS_PER_NS,
        .increase_bytes = config->increase_bytes,
        .additive_bps = config->additive_bps,
        .hyper_bps = config->hyper_bps,
        .least_bps = config->least_bps,
        .recovery_stages = config->recovery_stages,
        .gain = config->gain,
        .clamp = config->clamp,
    };
}

void netsim_pace_start(struct netsim *net, uint32_t flow)
{
    uint64_t line_bps = net->more[net->hosts[net->flows[flow].sender.source].port].rate_bps;
    uint64_t rate_bps = net->transport.rate_bps;
    if (net->rates != NULL)
        dcqcn_init(&net->rates[flow], rate_bps != 0 && rate_bps < line_bps ? rate_bps : line_bps);
}

static void wait_for(struct netsim *net, uint32_t flow, netsim_time span_ps)
{
    struct netsim_sender *sender = &net->flows[flow].sender;
    netsim_time from_ps = sender->pace_ps > net->now_ps ? sender->pace_ps : net->now_ps;
    sender->pace_ps = from_ps + span_ps;
}

/* At the line's rate nothing is to be waited for but the line. */
void netsim_pace_on_sent(struct netsim *net, uint32_t flow, uint32_t wire_bytes)
{
    assert(net->paced);
    if (net->rates != NULL) {
        struct dcqcn *dcqcn = &net->rates[flow];
        dcqcn_on_bytes(dcqcn, &net->dcqcn, net->now_ps / NETSIM_PS_PER_NS, wire_bytes);
        if (dcqcn->rate_bps != dcqcn->line_bps) {
            wait_for(net, flow, 8 * (uint64_t)wire_bytes * NETSIM_PS_PER_S / dcqcn->rate_bps);
            return;
        }
    }
    if (net->pace_ps_per_byte_q16 != 0)
        wait_for(net, flow, netsim_serialization_ps(net->pace_ps_per_byte_q16, wire_bytes));
}

void netsim_pace_on_cnp(struct netsim *net, uint32_t flow)
{
    assert(net->rates != NULL);
    dcqcn_on_cnp(&net->rates[flow], &net->dcqcn, net->now_ps / NETSIM_PS_PER_NS);
}
