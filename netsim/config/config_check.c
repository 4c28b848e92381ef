/*
 * config_check.c - see config_check.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/config/config_check.h"

#include <inttypes.h>

#include <longhaul/flowcontrol.h>

#include "base/error.h"
#include "netsim/flowcontrol/link_rules.h"
#include "netsim/engine/disturbance.h"
#include "netsim/engine/drift.h"
#include "netsim/transport/flow_rate.h"
#include "netsim/engine/signal_loss.h"

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
            "switch.ecn_min is set and switch.ecn_max is not, so nothing would be marked (set both)");
    if (switches->pfc && switches->pfc_xon_bytes > switches->pfc_xoff_bytes)
        return lh_fail(LH_EINVAL,
                       "switch.xon (%" PRIu64 ") is above switch.xoff (%" PRIu64
                       "): it would resume before it pauses (lower xon)",
                       switches->pfc_xon_bytes, switches->pfc_xoff_bytes);
    if (switches->pfc && switches->credit_bytes != 0)
        return lh_fail(LH_EINVAL, "switch.pfc is on and switch.credits is set: one of them is enough");
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
        return lh_fail(LH_EINVAL,
                       "transport.congestion is set and transport.kind is xp, which acknowledges "
                       "nothing (set transport.rate instead)");
    if (transport->ack_bytes == 0)
        return lh_fail(LH_EINVAL, "transport.congestion is set and transport.ack is 0: nothing would tell "
                                  "the sender (set transport.ack)");
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
        return lh_fail(LH_EINVAL, "transport.queue_pair = peer and transport.congestion is set, which each "
                                  "flow has for itself (set transport.rate instead)");
    return 0;
}

static int check_texts(const struct netsim_config *config)
{
    const struct netsim_workload_config *workload = &config->workload;
    if (config->topology.kind == NETSIM_TOPOLOGY_FILE && config->topology.file.data == NULL)
        return lh_fail(LH_EINVAL, "topology.kind is \"file\" and topology.file is not given (give it)");
    if (config->topology.kind != NETSIM_TOPOLOGY_FILE && config->topology.file.data != NULL)
        return lh_fail(LH_EINVAL, "topology.file is given and not used (set topology.kind to \"file\")");
    if (workload->kind == NETSIM_FLOWS_FILE && workload->flows.data == NULL)
        return lh_fail(LH_EINVAL, "workload.kind is \"flows\" and workload.flows is not given (give it)");
    if (workload->kind != NETSIM_FLOWS_FILE && workload->flows.data != NULL)
        return lh_fail(LH_EINVAL, "workload.flows is given and not used (set workload.kind to \"flows\")");
    if (workload->kind != NETSIM_POISSON && workload->sizes.data != NULL)
        return lh_fail(LH_EINVAL,
                       "workload.sizes is given and not used (set workload.kind to \"poisson\")");
    return 0;
}

static int check_workload(const struct netsim_workload_config *workload)
{
    if (workload->kind == NETSIM_POISSON && !(workload->load > 0))
        return lh_fail(LH_ERANGE, "workload.load 0: no flow would ever begin (raise it)");
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
                   "transport.ack_priority %u, that of the data: acknowledgements have no credits, and "
                   "would use up the buffer of the data (set another)",
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
