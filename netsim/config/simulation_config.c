/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/config/config_keys.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/flowcontrol.h>
#include <longhaul/netsim.h>

#include "base/error.h"
#include "netsim/base/netsim_config.h"
#include "netsim/engine/disturbance.h"
#include "netsim/engine/netsim_port.h"
#include "netsim/flowcontrol/link_rules.h"
#include "netsim/transport/flow_controller.h"

/* ---- key use --------------------------------------------------------------------------------------- */

/* A key that is not in the table below is read always. */

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

/* ---- simulation config ----------------------------------------------------------------------------- */

/* The texts in it are its own. */
struct lh_netsim_config {
    struct netsim_config config;
};

/* A list of 16 million flows is shorter. */
#define TEXT_BYTES_MAX ((size_t)1 << 30)

static struct netsim_text *text_of(struct lh_netsim_config *config, const struct netsim_value_rule *rule)
{
    return (struct netsim_text *)(void *)((unsigned char *)&config->config + rule->offset);
}

const struct netsim_config *netsim_config_values(const struct lh_netsim_config *config)
{
    return &config->config;
}

int lh_netsim_config_create(struct lh_netsim_config **config)
{
    struct lh_netsim_config *made = malloc(sizeof *made);
    if (made == NULL)
        return lh_fail(LH_ENOMEM, "no memory for the configuration of a simulation");
    netsim_config_init(&made->config);
    *config = made;
    return 0;
}

static void forget_text(struct netsim_text *text)
{
    /* Both are ours, made by keep_text(); const only for those who read them. */
    free((void *)(uintptr_t)text->data);
    free((void *)(uintptr_t)text->name);
    *text = (struct netsim_text){0};
}

void lh_netsim_config_destroy(struct lh_netsim_config *config)
{
    size_t count = 0;
    lh_netsim_keys(&count);
    if (config == NULL)
        return;
    for (size_t i = 0; i < count; i++)
        if (netsim_key_rule((int)i)->kind == NETSIM_VALUE_FILE)
            forget_text(text_of(config, netsim_key_rule((int)i)));
    free(config);
}

static int keep_text(struct netsim_text *kept, const char *name, const char *text, size_t bytes)
{
    char *data = malloc(bytes + 1);
    char *own_name = strdup(name);
    if (data == NULL || own_name == NULL) {
        free(data);
        free(own_name);
        return lh_fail(LH_ENOMEM, "%.64s: no memory for a copy of its %zu bytes", name, bytes);
    }
    if (bytes > 0)
        memcpy(data, text, bytes);
    data[bytes] = '\0';
    forget_text(kept);
    *kept = (struct netsim_text){.data = data, .bytes = bytes, .name = own_name};
    return 0;
}

int lh_netsim_config_text(struct lh_netsim_config *config, const char *key, const char *name,
                          const char *text, size_t bytes)
{
    int place = netsim_key_find(key);
    if (place < 0)
        return place;
    if (name == NULL)
        name = key;
    if (netsim_key_rule(place)->kind != NETSIM_VALUE_FILE)
        return lh_fail(LH_EINVAL, "%s is not a file but a %s (use lh_netsim_config_set())", key,
                       lh_netsim_keys(&(size_t){0})[place].kind);
    if (text == NULL && bytes > 0)
        return lh_fail(LH_EINVAL, "%s: %.64s has %zu bytes and no text (give it)", key, name, bytes);
    if (bytes > TEXT_BYTES_MAX)
        return lh_fail(LH_EINVAL, "%s: %.64s has %zu bytes, at most %zu are read", key, name, bytes,
                       TEXT_BYTES_MAX);
    return keep_text(text_of(config, netsim_key_rule(place)), name, text, bytes);
}

int lh_netsim_config_set(struct lh_netsim_config *config, const char *key, const char *value)
{
    int place = netsim_key_find(key);
    if (place >= 0 && netsim_key_rule(place)->kind == NETSIM_VALUE_FILE)
        return lh_netsim_config_text(config, key, key, value, strlen(value));
    return netsim_key_set(&config->config, key, value);
}

const char *lh_netsim_config_unread(const struct lh_netsim_config *config, const char *key)
{
    return netsim_key_unread(&config->config, key);
}

/* ---- config check ---------------------------------------------------------------------------------- */

/* Of a frame, so that its time on a wire and its length on it fit where they are kept. */
#define FRAME_MAX 65535u

static int check_credits(const struct netsim_config *config)
{
    const struct netsim_switch_config *switches = &config->switches;
    uint32_t frame = netsim_frame_bytes(config);
    if (switches->credit_bytes < (uint64_t)frame + LH_CBFC_BLOCK_BYTES)
        return lh_fail(LH_ERANGE,
                       "switch.credits %" PRIu64 " bytes: not one packet of %" PRIu32
                       " (transport.payload and transport.header) fits (raise it)",
                       switches->credit_bytes, frame);
    return netsim_credit_step_check("switch.credit_step", switches->credit_step_bytes,
                                    switches->credit_bytes, true, frame);
}

static int check_switches(const struct netsim_config *config)
{
    const struct netsim_switch_config *switches = &config->switches;
    uint64_t frame = (uint64_t)config->transport.payload_bytes + config->transport.header_bytes;
    if (switches->buffer_bytes < frame)
        return lh_fail(LH_ERANGE,
                       "switch.buffer %" PRIu64 " bytes: not one packet of %" PRIu64
                       " (transport.payload and transport.header) fits (raise it)",
                       switches->buffer_bytes, frame);
    if (switches->queue_bytes != 0 && switches->queue_bytes < frame)
        return lh_fail(LH_ERANGE,
                       "switch.queue %" PRIu64 " bytes: not one packet of %" PRIu64
                       " (transport.payload and transport.header) fits (raise it)",
                       switches->queue_bytes, frame);
    if (switches->ecn_max_bytes != 0 && switches->ecn_min_bytes > switches->ecn_max_bytes)
        return lh_fail(LH_EINVAL,
                       "switch.ecn_min (%" PRIu64 ") is above switch.ecn_max (%" PRIu64 ") (swap them)",
                       switches->ecn_min_bytes, switches->ecn_max_bytes);
    if (switches->ecn_max_bytes == 0 && switches->ecn_min_bytes != 0)
        return lh_fail(
            LH_EINVAL,
            "switch.ecn_min is set without switch.ecn_max: no packet would be marked (set both)");
    if (switches->pfc && switches->pfc_xon_bytes > switches->pfc_xoff_bytes)
        return lh_fail(LH_EINVAL,
                       "switch.xon (%" PRIu64 ") is above switch.xoff (%" PRIu64
                       "): it would resume before it pauses (lower xon)",
                       switches->pfc_xon_bytes, switches->pfc_xoff_bytes);
    if (switches->pfc && switches->credit_bytes != 0)
        return lh_fail(LH_EINVAL,
                       "switch.pfc is on and switch.credits is set: mutually exclusive (set one)");
    if (switches->credit_bytes != 0) {
        int rc = check_credits(config);
        if (rc != 0)
            return rc;
    }
    if (config->longs.port_bytes != 0 && config->longs.port_bytes < frame)
        return lh_fail(LH_ERANGE,
                       "long.port_buffer %" PRIu64 " bytes: not one packet of %" PRIu64
                       " (transport.payload and transport.header) fits (raise it)",
                       config->longs.port_bytes, frame);
    if (switches->pfc && config->longs.port_bytes != 0 &&
        switches->pfc_xoff_bytes > config->longs.port_bytes)
        return lh_fail(LH_EINVAL,
                       "switch.xoff (%" PRIu64 ") is above long.port_buffer (%" PRIu64
                       "): it would drop before it pauses (lower xoff)",
                       switches->pfc_xoff_bytes, config->longs.port_bytes);
    if (switches->pfc && switches->pfc_xoff_bytes > switches->buffer_bytes)
        return lh_fail(LH_EINVAL,
                       "switch.xoff (%" PRIu64 ") is above switch.buffer (%" PRIu64
                       "): it would drop before it pauses (lower xoff)",
                       switches->pfc_xoff_bytes, switches->buffer_bytes);
    return 0;
}

static int check_transport(const struct netsim_transport_config *transport)
{
    if (transport->payload_bytes + transport->header_bytes > FRAME_MAX)
        return lh_fail(
            LH_ERANGE,
            "transport.payload (%u) and transport.header (%u) make a packet of over %u bytes (lower one)",
            transport->payload_bytes, transport->header_bytes, FRAME_MAX);
    bool given = transport->rto_low_ps != NETSIM_NEVER && transport->rto_high_ps != NETSIM_NEVER;
    if (transport->kind == NETSIM_IRN && given && transport->rto_low_ps > transport->rto_high_ps)
        return lh_fail(LH_EINVAL,
                       "transport.rto_low (%" PRIu64 " ps) is above transport.rto_high (%" PRIu64
                       " ps) (swap them)",
                       transport->rto_low_ps, transport->rto_high_ps);
    return 0;
}

static int check_congestion(const struct netsim_config *config)
{
    const struct netsim_transport_config *transport = &config->transport;
    if (transport->congestion.kind == NETSIM_CONGESTION_NONE)
        return 0;
    if (transport->kind == NETSIM_XP)
        return lh_fail(LH_EINVAL, "transport.congestion is set, but transport.kind = xp has no "
                                  "acknowledgements (set transport.rate instead)");
    if (transport->ack_bytes == 0)
        return lh_fail(LH_EINVAL, "transport.congestion is set, but transport.ack is 0: the sender gets no "
                                  "feedback (set transport.ack)");
    if (transport->congestion.kind == NETSIM_CONGESTION_CONTROLLER)
        return 0;
    if (!(transport->dcqcn.gain > 0))
        return lh_fail(LH_ERANGE,
                       "transport.dcqcn_gain 0: out of range (above 0 to 1, such as 0.00390625)");
    const struct dcqcn_config dcqcn = netsim_flow_rate_dcqcn(&transport->dcqcn);
    return dcqcn_check(&dcqcn);
}

/* A later message would be the only sign of a loss, and a controller has one flow. */
static int check_queue_pair(const struct netsim_transport_config *transport)
{
    bool applies = transport->kind != NETSIM_XP && transport->kind != NETSIM_LONGHAUL;
    if (!transport->one_queue_pair || !applies)
        return 0;
    if (transport->ack_bytes == 0)
        return lh_fail(LH_EINVAL, "transport.queue_pair = peer and transport.ack is 0 (set transport.ack)");
    if (transport->congestion.kind != NETSIM_CONGESTION_NONE)
        return lh_fail(LH_EINVAL, "transport.queue_pair = peer excludes transport.congestion, which is per "
                                  "flow (set transport.rate instead)");
    return 0;
}

static int check_texts(const struct netsim_config *config)
{
    const struct netsim_workload_config *workload = &config->workload;
    if (config->topology.kind == NETSIM_TOPOLOGY_FILE && config->topology.file.data == NULL)
        return lh_fail(LH_EINVAL, "topology.kind is \"file\", but topology.file is missing (set it)");
    if (config->topology.kind != NETSIM_TOPOLOGY_FILE && config->topology.file.data != NULL)
        return lh_fail(LH_EINVAL, "topology.file is set, but unused (set topology.kind to \"file\")");
    if (workload->kind == NETSIM_FLOWS_FILE && workload->flows.data == NULL)
        return lh_fail(LH_EINVAL, "workload.kind is \"flows\", but workload.flows is missing (set it)");
    if (workload->kind != NETSIM_FLOWS_FILE && workload->flows.data != NULL)
        return lh_fail(LH_EINVAL, "workload.flows is set, but unused (set workload.kind to \"flows\")");
    if (workload->kind != NETSIM_POISSON && workload->sizes.data != NULL)
        return lh_fail(LH_EINVAL, "workload.sizes is set, but unused (set workload.kind to \"poisson\")");
    return 0;
}

static int check_workload(const struct netsim_workload_config *workload)
{
    if (workload->kind == NETSIM_POISSON && !(workload->load > 0))
        return lh_fail(LH_ERANGE, "workload.load 0: no flow would begin (raise it)");
    return 0;
}

static int check_priorities(const struct netsim_config *config)
{
    const struct netsim_transport_config *transport = &config->transport;
    bool credits = config->switches.credit_bytes != 0 || config->longs.control == NETSIM_LONG_CBFC;
    if (!credits || transport->ack_bytes == 0 || transport->kind == NETSIM_XP ||
        transport->ack_priority != transport->data_priority)
        return 0;
    return lh_fail(LH_EINVAL,
                   "transport.ack_priority %u, equal to the data's: acknowledgements have no credits, and "
                   "would fill the data's buffer (set another)",
                   transport->ack_priority);
}

int netsim_config_check(const struct netsim_config *config)
{
    int rc = check_transport(&config->transport);
    if (rc == 0)
        rc = check_congestion(config);
    if (rc == 0)
        rc = check_queue_pair(&config->transport);
    if (rc == 0)
        rc = check_switches(config);
    if (rc == 0)
        rc = check_priorities(config);
    if (rc == 0)
        rc = netsim_drift_check(config->longs.drift_ps, config->longs.drift_period_ps);
    if (rc == 0)
        rc = netsim_signal_loss_check(&config->longs);
    if (rc == 0)
        rc = netsim_disturbance_check(config);
    if (rc == 0)
        rc = check_texts(config);
    if (rc == 0)
        rc = check_workload(&config->workload);
    return rc;
}
