/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/endpoint_check.h"

#include "base/error.h"
#include "wire/roce.h"

int endpoint_check_shape(const struct fabric_endpoint_attr *attr)
{
    if (attr->channels < 1 || attr->channels > QP_INFO_CHANNELS_MAX)
        return lh_fail(LH_ERANGE, "%u channels: out of range (1 to %u)", attr->channels,
                       QP_INFO_CHANNELS_MAX);
    if (attr->generations < 1 || attr->generations > QP_INFO_GENERATIONS_MAX)
        return lh_fail(LH_ERANGE, "%u generations: out of range (1 to %u)", attr->generations,
                       QP_INFO_GENERATIONS_MAX);
    if (attr->stripe_packets < 1)
        return lh_fail(LH_EINVAL, "stripe of 0 packets: out of range (at least 1)");
    if (attr->stats == NULL)
        return lh_fail(LH_EINVAL, "endpoint without counters");
    return 0;
}

int endpoint_check_table(const struct fabric_endpoint_attr *attr)
{
    const struct immediate_split *split = &attr->split;
    if (split->message_bits + split->offset_bits + split->fragment_bits != 32 || split->message_bits > 16 ||
        split->offset_bits > 31 || split->fragment_bits == 0)
        return lh_fail(LH_EINVAL, "immediate split %u+%u+%u: invalid (the bits must add up to 32)",
                       split->message_bits, split->offset_bits, split->fragment_bits);
    if (attr->slots < 1 || attr->slots > 1u << split->message_bits)
        return lh_fail(LH_ERANGE, "%u message slots: out of range for %u bits of the immediate (1 to %u)",
                       attr->slots, split->message_bits, 1u << split->message_bits);
    uint64_t longest = (uint64_t)attr->mtu_bytes << split->offset_bits;
    if (attr->slot_bytes < 1 || attr->slot_bytes > longest)
        return lh_fail(
            LH_ERANGE, "messages of %llu bytes: out of range for %u bits of the immediate (1 to %llu)",
            (unsigned long long)attr->slot_bytes, split->offset_bits, (unsigned long long)longest);
    return 0;
}

int endpoint_check_peer(const struct fabric_endpoint_attr *attr, const struct qp_info_endpoint *peer)
{
    if (peer->channels != attr->channels)
        return lh_fail(LH_EHANDSHAKE,
                       "channel count mismatch: peer %u, this side %u (use the same on both)",
                       peer->channels, attr->channels);
    if (peer->generations != attr->generations)
        return lh_fail(LH_EHANDSHAKE,
                       "generation count mismatch: peer %u, this side %u (use the same on both)",
                       peer->generations, attr->generations);
    return 0;
}

struct fabric_peer_traits endpoint_peer_traits(const struct qp_info_endpoint *peer)
{
    bool sockets = peer->fabric == QP_INFO_UDP;
    return (struct fabric_peer_traits){
        .may_be_translated = sockets, .shares_control_port = sockets, .drops_unread = sockets};
}

static bool qpn_is_valid(uint32_t qpn)
{
    return qpn != 0 && qpn <= ROCE_QPN_MASK;
}

bool endpoint_check_qpns(const struct qp_info_endpoint *peer)
{
    bool valid = qpn_is_valid(peer->control_qpn);
    for (uint32_t channel = 0; channel < peer->channels; channel++)
        for (uint32_t generation = 0; generation < peer->generations; generation++)
            valid = valid && qpn_is_valid(peer->qpn[generation][channel]);
    return valid;
}
