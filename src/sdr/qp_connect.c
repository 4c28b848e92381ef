/*
 * The exchange of QP information, and the connection to the peer that it describes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "base/error.h"
#include "sdr/context.h"
#include "sdr/qp.h"

static void fill_info(struct sdr_qp *qp, struct qp_info *info)
{
    *info = (struct qp_info){
        .token = qp->token,
        .mtu_bytes = qp->shape.mtu_bytes,
        .chunk_bytes = qp->shape.mtu_bytes * qp->shape.chunk_packets,
        .slots = qp->shape.slots,
        .slot_bytes = qp->shape.slot_bytes,
        .immediate_message_bits = qp->shape.split.message_bits,
        .immediate_fragment_bits = qp->shape.split.fragment_bits,
        .send_enable = qp->send_enable,
        .recv_enable = qp->recv_enable,
        .wants_feedback = rate_control_is_on(&qp->rate),
        .credits = rate_control_is_on(&qp->rate) ? credit_grant_number(qp->congestion.controller) : 0,
    };
    qp->endpoint->fabric->ops->endpoint_info(qp->endpoint, &info->endpoint);
}

int sdr_qp_info_size_get(struct sdr_qp *qp, size_t *info_size)
{
    *info_size = qp_info_bytes(qp->channel_count, qp->shape.generations);
    return SDR_SUCCESS;
}

int sdr_qp_info_get(struct sdr_qp *qp, void *info)
{
    struct qp_info mine;
    fill_info(qp, &mine);
    qp_info_encode(&mine, info);
    return SDR_SUCCESS;
}

/* Both ends must cut messages alike. */
static int check_peer(struct sdr_qp *qp, const struct qp_info *peer)
{
    const struct message_shape *mine = &qp->shape;
    uint32_t chunk_bytes = mine->mtu_bytes * mine->chunk_packets;
    if (peer->mtu_bytes != mine->mtu_bytes)
        return lh_fail(LH_EHANDSHAKE, "MTU mismatch: peer %u, this side %u (use the same on both)",
                       peer->mtu_bytes, mine->mtu_bytes);
    if (peer->chunk_bytes != chunk_bytes)
        return lh_fail(LH_EHANDSHAKE,
                       "chunk size mismatch: peer %u bytes, this side %u (use the same on both)",
                       peer->chunk_bytes, chunk_bytes);
    if (peer->immediate_message_bits != mine->split.message_bits ||
        peer->immediate_fragment_bits != mine->split.fragment_bits)
        return lh_fail(LH_EHANDSHAKE, "immediate split mismatch: peer %u and %u bits, this side %u and %u",
                       peer->immediate_message_bits, peer->immediate_fragment_bits,
                       mine->split.message_bits, mine->split.fragment_bits);
    if (peer->slots > 1u << mine->split.message_bits || peer->slot_bytes > UINT32_MAX ||
        (peer->slot_bytes + mine->mtu_bytes - 1) / mine->mtu_bytes > UINT64_C(1) << mine->split.offset_bits)
        return lh_fail(LH_EHANDSHAKE, "peer has %u slots of %llu bytes: exceeds the bits of the immediate",
                       peer->slots, (unsigned long long)peer->slot_bytes);
    if (peer->endpoint.channels != qp->channel_count || peer->endpoint.generations != mine->generations)
        return lh_fail(
            LH_EHANDSHAKE,
            "channel mismatch: peer %u of %u generations, this side %u of %u (use the same on both)",
            peer->endpoint.channels, peer->endpoint.generations, qp->channel_count, mine->generations);
    if ((qp->send_enable && !peer->recv_enable) || (qp->recv_enable && !peer->send_enable))
        return lh_fail(LH_EHANDSHAKE,
                       "peer sends %u and receives %u: one side's sending needs the other's receiving",
                       peer->send_enable, peer->recv_enable);
    return 0;
}

static struct fabric_peer_traits qp_peer_traits(const struct sdr_qp *qp,
                                                const struct qp_info_endpoint *peer)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    return ops->peer_traits ? ops->peer_traits(peer) : (struct fabric_peer_traits){0};
}

static void keep_peer(struct sdr_qp *qp, const struct qp_info *info)
{
    const struct qp_info_endpoint *endpoint = &info->endpoint;
    qp->peer = (struct qp_peer){
        .traits = qp_peer_traits(qp, endpoint),
        .family = endpoint->family,
        .control_port = endpoint->control_port,
        .receive_buffer_bytes = endpoint->receive_buffer_bytes,
        .token = info->token,
        .slots = info->slots,
        .slot_bytes = info->slot_bytes,
        .wants_feedback = info->wants_feedback,
        .credits = info->credits,
    };
    memcpy(qp->peer.address, endpoint->address, sizeof endpoint->address);
}

int lh_sdr_qp_connect(struct sdr_qp *qp, const void *remote_qp_info)
{
    struct qp_info peer;
    size_t bytes = remote_qp_info ? qp_info_peek_bytes(remote_qp_info) : 0;
    if (bytes == 0)
        return lh_fail(LH_EHANDSHAKE, "malformed QP info from the peer");
    int error = qp_info_decode(remote_qp_info, bytes, &peer);
    if (!error)
        error = check_peer(qp, &peer);
    if (error)
        return error;
    peer.endpoint.translated = qp->translated;
    memcpy(peer.endpoint.seen_address, qp->seen_address, sizeof qp->seen_address);
    peer.endpoint.proof = qp->token;
    qp_lock(qp);
    qp_gates_enter(qp);
    error = atomic_load(&qp->connected) ? lh_fail(LH_ESTATE, "QP is connected already") : 0;
    if (!error)
        error = qp->endpoint->fabric->ops->endpoint_connect(qp->endpoint, &peer.endpoint);
    if (!error) {
        keep_peer(qp, &peer);
        qp->path.ping_at = 0;
        qp_join_keepers(qp);
        atomic_store(&qp->connected, true);
    }
    qp_gates_leave(qp);
    qp_unlock(qp);
    qp_watch_again(qp);
    return error;
}

int sdr_qp_connect(struct sdr_qp *qp, void *remote_qp_info)
{
    return lh_sdr_qp_connect(qp, remote_qp_info) ? SDR_ERROR : SDR_SUCCESS;
}

uint64_t sdr_qp_secret(const struct sdr_qp *qp)
{
    return qp->endpoint->secret;
}

bool sdr_qp_peer_may_be_translated(const struct sdr_qp *qp, const struct qp_info_endpoint *peer)
{
    return qp_peer_traits(qp, peer).may_be_translated;
}

void sdr_qp_peer_seen_at(struct sdr_qp *qp, const uint8_t address[16])
{
    qp->translated = true;
    memcpy(qp->seen_address, address, sizeof qp->seen_address);
}

void sdr_qp_punch(struct sdr_qp *qp)
{
    const struct fabric_ops *ops = qp->endpoint->fabric->ops;
    qp_lock(qp);
    if (atomic_load(&qp->connected) && ops->punch && !qp_device_gone(qp))
        ops->punch(qp->endpoint, qp->peer.token);
    qp->punches = true;
    qp_unlock(qp);
}
