/* SPDX-License-Identifier: BSD-3-Clause */
#include "xp/udp/exchange.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"

/* ---- in ----------------------------------------------------------------------------------------------- */

static struct icrc_flow flow_of(const union udp_address *from, const union udp_address *to)
{
    struct icrc_flow flow = {.ipv4 = udp_address_is_ipv4(from),
                             .source_port = udp_address_port(from),
                             .destination_port = udp_address_port(to)};
    udp_address_bytes(from, flow.source);
    udp_address_bytes(to, flow.destination);
    return flow;
}

static bool is_marked(struct msghdr *message)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg))
        if (udp_cmsg_is_marked(cmsg))
            return true;
    return false;
}

/* Who is no peer is not looked at any further. */
static void take(struct lh_xp *xp, const uint8_t *data, uint32_t bytes, struct msghdr *message, lh_time now)
{
    const union udp_address *from = message->msg_name;
    uint32_t peer = xp_udp_peers_find(&xp->peers, from);
    struct icrc_flow flow = flow_of(from, &xp->local);
    struct xp_packet packet;
    if (peer == XP_PEER_NONE || message->msg_flags & MSG_TRUNC ||
        xp_decode(data, bytes, &packet) != ROCE_OK || !icrc_check(&flow, data, bytes, 0)) {
        xp->bad_packets++;
        return;
    }
    xp_nic_arrive(&xp->nic, peer, &packet, is_marked(message), now);
}

int xp_udp_receive(struct lh_xp *xp, lh_time now)
{
    struct mmsghdr messages[XP_BATCH];
    struct iovec parts[XP_BATCH];
    union udp_address from[XP_BATCH];
    _Alignas(struct cmsghdr) uint8_t control[XP_BATCH][UDP_ECN_CONTROL_BYTES];
    for (unsigned i = 0; i < XP_BATCH; i++) {
        parts[i] = (struct iovec){xp->received[i], sizeof xp->received[i]};
        messages[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
                                              .msg_namelen = sizeof from[i],
                                              .msg_iov = &parts[i],
                                              .msg_iovlen = 1,
                                              .msg_control = control[i],
                                              .msg_controllen = sizeof control[i]};
    }
    int got = recvmmsg(xp->socket.fd, messages, XP_BATCH, MSG_DONTWAIT, NULL);
    if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED))
        return 0;
    if (got < 0)
        return lh_fail(LH_ESYSTEM, "cannot receive packets: %s", strerror(errno));
    for (int i = 0; i < got; i++)
        take(xp, xp->received[i], messages[i].msg_len, &messages[i].msg_hdr, now);
    return got > 0;
}

/* ---- out ---------------------------------------------------------------------------------------------- */

static void finish(struct lh_xp *xp, struct xp_udp_outgoing *out, const struct xp_departure *departure)
{
    const struct xp_packet *packet = &departure->packet;
    uint32_t pad = roce_pad_bytes(packet->payload_bytes);
    uint32_t bytes = XP_OVERHEAD + packet->payload_bytes + pad;
    struct icrc_flow flow = flow_of(&xp->local, &xp->peers.addresses[departure->peer]);
    xp_encode_header(packet, out->header);
    memset(out->trailer, 0, sizeof out->trailer);
    uint32_t state = icrc_begin(&flow, bytes, 0, true);
    state = icrc_add_header(state, out->header, sizeof out->header);
    state = icrc_add(state, packet->payload, packet->payload_bytes);
    state = icrc_add(state, out->trailer, pad);
    icrc_store(state, out->trailer + pad);
    out->parts[0] = (struct iovec){out->header, sizeof out->header};
    out->parts[1] = (struct iovec){(void *)(uintptr_t)packet->payload, packet->payload_bytes};
    out->parts[2] = (struct iovec){out->trailer, pad + ROCE_ICRC_BYTES};
    out->peer = departure->peer;
}

static void fill_batch(struct lh_xp *xp, lh_time now)
{
    struct xp_departure departure;
    xp->outgoing_first = 0;
    while (xp->outgoing < XP_BATCH && xp_nic_transmit(&xp->nic, now, &departure))
        finish(xp, &xp->batch[xp->outgoing++], &departure);
}

/* What has waited stays: its payload is read only now. */
static int send_batch(struct lh_xp *xp)
{
    struct mmsghdr messages[XP_BATCH];
    for (uint32_t i = 0; i < xp->outgoing; i++) {
        struct xp_udp_outgoing *out = &xp->batch[xp->outgoing_first + i];
        union udp_address *to = &xp->peers.addresses[out->peer];
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = to, .msg_namelen = udp_address_size(to), .msg_iov = out->parts, .msg_iovlen = 3};
    }
    return sendmmsg(xp->socket.fd, messages, xp->outgoing, MSG_DONTWAIT);
}

bool xp_udp_awaits(const void *of, uint32_t peer)
{
    const struct lh_xp *xp = of;
    for (uint32_t i = 0; i < xp->outgoing; i++)
        if (xp->batch[xp->outgoing_first + i].peer == peer)
            return true;
    return false;
}

/* What stays moves: it points into itself. */
static void move(struct xp_udp_outgoing *to, const struct xp_udp_outgoing *from)
{
    *to = *from;
    to->parts[0].iov_base = to->header;
    to->parts[2].iov_base = to->trailer;
}

void xp_udp_forget(struct lh_xp *xp, const uint8_t *from, uint64_t bytes)
{
    struct xp_udp_outgoing *batch = &xp->batch[xp->outgoing_first];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < xp->outgoing; i++) {
        uintptr_t payload = (uintptr_t)batch[i].parts[1].iov_base;
        if (payload - (uintptr_t)from >= bytes && kept++ != i)
            move(&batch[kept - 1], &batch[i]);
    }
    xp->outgoing = kept;
}

int xp_udp_transmit(struct lh_xp *xp, lh_time now)
{
    if (xp->outgoing == 0)
        fill_batch(xp, now);
    if (xp->outgoing == 0)
        return 0;
    int sent = send_batch(xp);
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
        return 0;
    if (sent < 0 && (errno == EBADF || errno == ENOTSOCK || errno == EINVAL))
        return lh_fail(LH_ESYSTEM, "cannot send packets: %s", strerror(errno));
    if (sent <= 0)
        sent = 1; /* no way for this one (unreachable, filtered, too large): lost, as on the way */
    xp->outgoing_first += (uint32_t)sent;
    xp->outgoing -= (uint32_t)sent;
    return 1;
}
