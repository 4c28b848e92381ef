/*
 * key_use.c - see key_use.h.
 *
 * A key that is not in the table below is read always.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/config/key_use.h"

#include <string.h>

#define ONLY(kind) (1u << (kind))

#define FLAT   (ONLY(NETSIM_DUMBBELL) | ONLY(NETSIM_LEAF_SPINE))
#define SITES  (ONLY(NETSIM_TWO_DATACENTERS) | ONLY(NETSIM_DATACENTERS))
#define TREES  (ONLY(NETSIM_FAT_TREE) | SITES)
#define ROUNDS (ONLY(NETSIM_PERMUTATION) | ONLY(NETSIM_INCAST) | ONLY(NETSIM_ALL_TO_ALL))
#define GROUP  ONLY(NETSIM_COLLECTIVE)

static bool has_switches(const struct netsim_config *config)
{
    return config->topology.kind != NETSIM_TWO_HOSTS;
}

static bool changes_rate(const struct netsim_config *config)
{
    return config->topology.change_rate_bps != 0;
}

static bool has_pfc(const struct netsim_config *config)
{
    return config->switches.pfc;
}

static bool has_sites(const struct netsim_config *config)
{
    return ((SITES | ONLY(NETSIM_TOPOLOGY_FILE)) >> config->topology.kind & 1) != 0;
}

static bool has_long_rules(const struct netsim_config *config)
{
    return config->longs.control != NETSIM_LONG_SAME;
}

static bool drifts(const struct netsim_config *config)
{
    return config->longs.drift_ps != 0;
}

static bool has_long_threshold(const struct netsim_config *config)
{
    return config->longs.control == NETSIM_LONG_PFC || config->longs.control == NETSIM_LONG_SWING;
}

static bool has_bifrost(const struct netsim_config *config)
{
    return config->longs.control == NETSIM_LONG_BIFROST;
}

static bool shares_out(const struct netsim_config *config)
{
    return config->longs.control == NETSIM_LONG_BIFROST || config->longs.control == NETSIM_LONG_CBFC;
}

static bool has_long_credits(const struct netsim_config *config)
{
    return config->longs.control == NETSIM_LONG_CBFC;
}

static bool has_long_signals(const struct netsim_config *config)
{
    bool inside = config->switches.pfc || config->switches.credit_bytes != 0;
    return config->longs.control == NETSIM_LONG_SAME ? inside : config->longs.control != NETSIM_LONG_NONE;
}

static bool loses_signals(const struct netsim_config *config)
{
    return config->longs.signal_loss > 0;
}

static bool mutes(const struct netsim_config *config)
{
    return config->longs.mute_for_ps != 0;
}

static bool pauses(const struct netsim_config *config)
{
    return config->disturb.stragglers > 0;
}

static bool has_bursts(const struct netsim_config *config)
{
    return config->disturb.burst_bytes != 0;
}

static bool flaps(const struct netsim_config *config)
{
    return config->disturb.flap_ps != 0;
}

static bool has_credits(const struct netsim_config *config)
{
    return config->switches.credit_bytes != 0;
}

static bool has_relays(const struct netsim_config *config)
{
    return config->longs.control == NETSIM_LONG_SWING;
}

static bool marks(const struct netsim_config *config)
{
    return config->switches.ecn_max_bytes != 0;
}

static bool acknowledges(const struct netsim_config *config)
{
    return config->transport.ack_bytes != 0;
}

static bool goes_back(const struct netsim_config *config)
{
    return acknowledges(config) && config->transport.kind == NETSIM_GBN;
}

static bool is_irn(const struct netsim_config *config)
{
    return acknowledges(config) && config->transport.kind == NETSIM_IRN;
}

static bool is_sr(const struct netsim_config *config)
{
    return config->transport.kind == NETSIM_SR;
}

static bool is_longhaul(const struct netsim_config *config)
{
    return config->transport.kind == NETSIM_LONGHAUL;
}

static bool is_model(const struct netsim_config *config)
{
    return !is_longhaul(config);
}

static bool is_xp(const struct netsim_config *config)
{
    return config->transport.kind == NETSIM_XP;
}

/* Unless transport.ack is 0. */
static bool has_acks(const struct netsim_config *config)
{
    return is_model(config) && !is_xp(config);
}

static bool has_window(const struct netsim_config *config)
{
    return !is_xp(config);
}

static bool measures(const struct netsim_config *config)
{
    return config->transport.kind != NETSIM_IRN && has_acks(config);
}

static bool has_dcqcn(const struct netsim_config *config)
{
    return acknowledges(config) && has_acks(config) &&
           config->transport.congestion.kind == NETSIM_CONGESTION_DCQCN;
}

static bool has_no_pairs(const struct netsim_config *config)
{
    return config->workload.kind != NETSIM_POISSON || !config->workload.pairs.any;
}

static bool has_one_size(const struct netsim_config *config)
{
    return config->workload.sizes.data == NULL;
}

static const struct use {
    const char *key;     /* or a section, with its dot; or the beginning of several, with a star */
    const char *because; /* the key that decides */
    unsigned kinds;      /* of topology or workload which read it, whichever decides; 0: see reads */
    bool (*reads)(const struct netsim_config *config);
} uses[] = {
    {"topology.hosts", "topology.kind", FLAT | SITES, NULL},
    {"topology.leaves", "topology.kind", ONLY(NETSIM_LEAF_SPINE), NULL},
    {"topology.spines", "topology.kind", ONLY(NETSIM_LEAF_SPINE), NULL},
    {"topology.k", "topology.kind", TREES, NULL},
    {"topology.sites", "topology.kind", ONLY(NETSIM_DATACENTERS), NULL},
    {"topology.core_rate", "topology.kind", FLAT, NULL},
    {"topology.core_delay", "topology.kind", FLAT, NULL},
    {"topology.long_rate", "topology.kind", SITES, NULL},
    {"topology.long_delay", "topology.kind", SITES, NULL},
    {"topology.link", "topology.kind", ~ONLY(NETSIM_TOPOLOGY_FILE), NULL},
    {"topology.change_*", "topology.kind", ~ONLY(NETSIM_TOPOLOGY_FILE), NULL},
    {"topology.change_from", "topology.change_rate", 0, changes_rate},
    {"topology.change_for", "topology.change_rate", 0, changes_rate},
    {"topology.file", "topology.kind", ONLY(NETSIM_TOPOLOGY_FILE), NULL},
    {"switch.", "topology.kind", 0, has_switches},
    {"switch.xoff", "switch.pfc", 0, has_pfc},
    {"switch.xon", "switch.pfc", 0, has_pfc},
    {"switch.pfc_alpha", "switch.pfc", 0, has_pfc},
    {"switch.pfc_refresh", "switch.pfc", 0, has_pfc},
    {"switch.credit_step", "switch.credits", 0, has_credits},
    {"switch.ecn_probability", "switch.ecn_max", 0, marks},
    {"switch.ecn_rate", "switch.ecn_max", 0, marks},
    {"long.", "topology.kind", 0, has_sites},
    {"long.buffer", "long.flow_control", 0, has_long_rules},
    {"long.port_buffer", "long.flow_control", 0, has_long_rules},
    {"long.xoff", "long.flow_control", 0, has_long_threshold},
    {"long.xon", "long.flow_control", 0, has_long_threshold},
    {"long.overbook", "long.flow_control", 0, shares_out},
    {"long.drift_period", "long.drift", 0, drifts},
    {"long.slot", "long.flow_control", 0, has_bifrost},
    {"long.delta", "long.flow_control", 0, has_bifrost},
    {"long.leak_slots", "long.flow_control", 0, has_bifrost},
    {"long.guard", "long.flow_control", 0, has_bifrost},
    {"long.incoming", "long.flow_control", 0, has_bifrost},
    {"long.grants", "long.flow_control", 0, has_bifrost},
    {"long.credits", "long.flow_control", 0, has_long_credits},
    {"long.credit_step", "long.flow_control", 0, has_long_credits},
    {"long.relay", "long.flow_control", 0, has_relays},
    {"long.pfc_refresh", "long.flow_control", 0, has_long_threshold},
    {"long.credit_refresh", "long.flow_control", 0, has_long_credits},
    {"long.signal_*", "long.flow_control", 0, has_long_signals},
    {"long.mute_*", "long.flow_control", 0, has_long_signals},
    {"long.signal_burst", "long.signal_loss", 0, loses_signals},
    {"long.mute_from", "long.mute_for", 0, mutes},
    {"transport.schemes", "transport.kind", 0, is_longhaul},
    {"transport.header", "transport.kind", 0, is_model},
    {"transport.ack", "transport.kind", 0, has_acks},
    {"transport.retries", "transport.kind", 0, has_acks},
    {"transport.ack_priority", "transport.kind", 0, has_acks},
    {"transport.window", "transport.kind", 0, has_window},
    {"transport.queue_pair", "transport.kind", 0, has_acks},
    {"transport.congestion", "transport.kind", 0, has_window},
    {"transport.deadline", "transport.kind", 0, is_xp},
    {"transport.kind", "transport.ack", 0, acknowledges},
    {"transport.congestion", "transport.ack", 0, acknowledges},
    {"transport.dcqcn_*", "transport.congestion", 0, has_dcqcn},
    {"transport.cnp", "transport.congestion", 0, has_dcqcn},
    {"transport.nack", "transport.kind", 0, goes_back},
    {"transport.rto_low", "transport.kind", 0, is_irn},
    {"transport.rto_high", "transport.kind", 0, is_irn},
    {"transport.rto_low_packets", "transport.kind", 0, is_irn},
    {"transport.reorder", "transport.kind", 0, is_sr},
    {"transport.rto", "transport.kind", 0, measures},
    {"transport.rto_min", "transport.kind", 0, measures},
    {"transport.ack_priority", "transport.ack", 0, acknowledges},
    {"transport.reorder", "transport.ack", 0, acknowledges},
    {"transport.retries", "transport.ack", 0, acknowledges},
    {"transport.rto", "transport.ack", 0, acknowledges},
    {"transport.rto_min", "transport.ack", 0, acknowledges},
    {"transport.window", "transport.ack", 0, acknowledges},
    {"disturb.pause", "disturb.stragglers", 0, pauses},
    {"disturb.pause_every", "disturb.stragglers", 0, pauses},
    {"disturb.burst_every", "disturb.burst", 0, has_bursts},
    {"disturb.flap", "topology.kind", 0, has_switches},
    {"disturb.flap_every", "disturb.flap", 0, flaps},
    {"workload.matrix", "workload.kind", ONLY(NETSIM_PERMUTATION) | ONLY(NETSIM_POISSON), NULL},
    {"workload.matrix", "workload.pairs", 0, has_no_pairs},
    {"workload.pairs", "workload.kind", ONLY(NETSIM_POISSON), NULL},
    {"workload.bytes", "workload.kind", ~ONLY(NETSIM_FLOWS_FILE), NULL},
    {"workload.bytes", "workload.sizes", 0, has_one_size},
    {"workload.senders", "workload.kind", ONLY(NETSIM_INCAST), NULL},
    {"workload.receiver", "workload.kind", ONLY(NETSIM_INCAST), NULL},
    {"workload.rounds", "workload.kind", ROUNDS | GROUP, NULL},
    {"workload.gap", "workload.kind", ROUNDS, NULL},
    {"workload.jitter", "workload.kind", ROUNDS, NULL},
    {"workload.load", "workload.kind", ONLY(NETSIM_POISSON), NULL},
    {"workload.load_base", "workload.kind", ONLY(NETSIM_POISSON), NULL},
    {"workload.duration", "workload.kind", ONLY(NETSIM_POISSON), NULL},
    {"workload.sizes", "workload.kind", ONLY(NETSIM_POISSON), NULL},
    {"workload.flows", "workload.kind", ONLY(NETSIM_FLOWS_FILE), NULL},
    {"workload.collective", "workload.kind", GROUP, NULL},
    {"workload.schedule", "workload.kind", GROUP, NULL},
    {"workload.block", "workload.kind", GROUP, NULL},
    {"workload.wait", "workload.kind", GROUP, NULL},
    {"workload.members", "workload.kind", GROUP, NULL},
    {"workload.compute", "workload.kind", GROUP, NULL},
};

static bool is_about(const struct use *use, const char *key)
{
    size_t length = strlen(use->key);
    if (use->key[length - 1] == '*')
        return strncmp(use->key, key, length - 1) == 0;
    return use->key[length - 1] == '.' ? strncmp(use->key, key, length) == 0 : strcmp(use->key, key) == 0;
}

static bool is_read(const struct use *use, const struct netsim_config *config)
{
    unsigned kind = strcmp(use->because, "topology.kind") == 0 ? (unsigned)config->topology.kind
                                                               : (unsigned)config->workload.kind;
    return use->reads != NULL ? use->reads(config) : (use->kinds >> kind & 1) != 0;
}

const char *netsim_key_unread(const struct netsim_config *config, const char *key)
{
    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        if (is_about(&uses[i], key) && !is_read(&uses[i], config))
            return uses[i].because;
    return NULL;
}
