/*
 * needs.c - how much buffer each way of flow control needs for a link.
 *
 * A signal takes a delay to the upstream, and what it stops or starts another delay back: a BDP of the
 * round trip passes between. Besides, the signal may wait behind a packet on the way back, and a packet
 * that has begun is sent to its end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <inttypes.h>

#include "base/error.h"
#include "netsim/flowcontrol/link_bytes.h"

static int check(const struct lh_flow_link *link)
{
    if (link->rate_bps < FLOW_RATE_MIN || link->rate_bps > FLOW_RATE_MAX)
        return lh_fail(LH_ERANGE, "link rate of %" PRIu64 " bit/s: out of range (1e6 to 1e14)",
                       link->rate_bps);
    if (link->delay_ns > FLOW_SPAN_MAX / 2)
        return lh_fail(LH_ERANGE, "link delay of %" PRIu64 " ns: out of range (at most a second, one way)",
                       link->delay_ns);
    if (link->slot_ns == 0 || link->slot_ns > LH_NS_PER_S)
        return lh_fail(LH_ERANGE, "a slot of %" PRIu64 " ns: out of range (1 ns to a second)",
                       link->slot_ns);
    if (link->mtu_bytes == 0 || link->leak_slots == 0)
        return lh_fail(LH_ERANGE, "packets of %u bytes, %u slots that leak: both are at least 1",
                       link->mtu_bytes, link->leak_slots);
    return 0;
}

/* Credits count blocks, of which each packet takes whole ones. */
static void cbfc_needs(const struct lh_flow_link *link, struct lh_flow_needs *needs)
{
    uint64_t packets = (needs->bdp_bytes + LH_PFC_FRAME_BYTES) / link->mtu_bytes + 4;
    uint64_t blocks = packets * lh_cbfc_blocks(link->mtu_bytes);
    uint64_t bits = (uint64_t)LH_CBFC_BLOCKS_12BIT * LH_CBFC_BLOCK_BYTES * 8;
    needs->cbfc_buffer_bytes = blocks * LH_CBFC_BLOCK_BYTES;
    needs->cbfc_fits_12_bits = blocks <= LH_CBFC_BLOCKS_12BIT;
    needs->cbfc_reach_ns = bits * LH_NS_PER_S / link->rate_bps / 2;
}

/* H, and what slips past pauses: each slot's may let a packet through, which is known when it has come; k
 * more; and a pause is late by what it waits behind. */
static void bifrost_needs(const struct lh_flow_link *link, struct lh_flow_needs *needs)
{
    uint64_t slot = flow_bytes_in(link->rate_bps, link->slot_ns);
    uint64_t late = (uint64_t)link->mtu_bytes + LH_PFC_FRAME_BYTES;
    uint64_t slots = (needs->bdp_bytes + late) / slot + 4; /* as lh_bifrost_grants(), and two that begin */
    needs->bifrost_h_bytes = needs->bdp_bytes + 2 * slot + LH_PFC_QUANTUM_BYTES;
    needs->bifrost_headroom_bytes = late + (slots + link->leak_slots) * link->mtu_bytes;
    needs->bifrost_buffer_bytes = needs->bifrost_h_bytes + needs->bifrost_headroom_bytes;
    needs->bifrost_pause_share = (double)LH_PFC_FRAME_BYTES / (double)slot;
}

int lh_flow_needs(const struct lh_flow_link *link, struct lh_flow_needs *needs)
{
    int rc = check(link);
    if (rc != 0)
        return rc;
    uint64_t bdp = flow_bytes_in(link->rate_bps, 2 * link->delay_ns);
    uint64_t packets = 2 * (uint64_t)link->mtu_bytes;
    *needs = (struct lh_flow_needs){
        .bdp_bytes = bdp,
        .pfc_headroom_bytes = bdp + packets + LH_PFC_FRAME_BYTES,
        .pfc_xoff_bytes = bdp + packets,
        .swing_relay_bytes = bdp + packets + LH_PFC_FRAME_BYTES,
    };
    needs->pfc_buffer_bytes = needs->pfc_headroom_bytes + needs->pfc_xoff_bytes;
    bifrost_needs(link, needs);
    cbfc_needs(link, needs);
    return 0;
}
