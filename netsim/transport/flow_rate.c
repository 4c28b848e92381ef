/*
 * flow_rate.c - see flow_rate.h.
 *
 * DCQCN is asked when a packet leaves, and catches up then. So a higher rate is felt from the next packet on:
 * at most a packet's time at the lower one later, and no event is needed for it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/transport/flow_rate.h"

#include "netsim/transport/controller.h"

struct dcqcn_config netsim_flow_rate_dcqcn(const struct netsim_dcqcn_config *config)
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

void netsim_flow_rate_setup(struct netsim_transport *transport)
{
    const struct netsim_transport_config *config = &transport->config;
    transport->paced = config->rate_bps != 0 || config->congestion.kind != NETSIM_CONGESTION_NONE;
    if (config->rate_bps != 0)
        transport->pace_ps_per_byte_q16 = netsim_ps_per_byte_q16(config->rate_bps);
    transport->dcqcn = netsim_flow_rate_dcqcn(&config->dcqcn);
}

void netsim_flow_rate_start(struct netsim_transport *transport, uint32_t flow)
{
    uint32_t source = transport->flows[flow].sender.source;
    uint64_t line_bps = transport->network->more[netsim_host_port(source)].rate_bps;
    uint64_t rate_bps = transport->config.rate_bps;
    if (netsim_is_controlled(transport))
        netsim_controller_start(transport, flow);
    if (transport->rates != NULL)
        dcqcn_init(&transport->rates[flow], rate_bps != 0 && rate_bps < line_bps ? rate_bps : line_bps);
}

static void wait_for(struct netsim_transport *transport, uint32_t flow, netsim_time span_ps)
{
    struct netsim_sender *sender = &transport->flows[flow].sender;
    netsim_time from_ps =
        sender->pace_ps > transport->network->now_ps ? sender->pace_ps : transport->network->now_ps;
    sender->pace_ps = from_ps + span_ps;
}

/* At the line's rate nothing is to be waited for but the line. */
void netsim_flow_rate_on_sent(struct netsim_transport *transport, uint32_t flow, uint32_t wire_bytes)
{
    assert(transport->paced && !netsim_is_controlled(transport));
    if (transport->rates != NULL) {
        struct dcqcn *dcqcn = &transport->rates[flow];
        dcqcn_on_bytes(dcqcn, &transport->dcqcn, transport->network->now_ps / NETSIM_PS_PER_NS, wire_bytes);
        if (dcqcn->rate_bps != dcqcn->line_bps) {
            wait_for(transport, flow, 8 * (uint64_t)wire_bytes * NETSIM_PS_PER_S / dcqcn->rate_bps);
            return;
        }
    }
    if (transport->pace_ps_per_byte_q16 != 0)
        wait_for(transport, flow, netsim_serialization_ps(transport->pace_ps_per_byte_q16, wire_bytes));
}

void netsim_flow_rate_on_cnp(struct netsim_transport *transport, uint32_t flow)
{
    assert(transport->rates != NULL);
    dcqcn_on_cnp(&transport->rates[flow], &transport->dcqcn, transport->network->now_ps / NETSIM_PS_PER_NS);
}
