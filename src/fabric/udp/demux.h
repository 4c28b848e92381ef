/*
 * demux.h - the sockets that several endpoints share: the front, with control messages and the data packets
 * of RoCE hardware, and the shared data sockets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_DEMUX_H
#define LH_FABRIC_UDP_DEMUX_H

#include "fabric/udp/udp.h"

int udp_demux_open(struct udp_fabric *fabric);
void udp_demux_close(struct udp_fabric *fabric);
int udp_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                     uint32_t count);
void udp_control_proven(struct fabric_endpoint *endpoint, const struct fabric_control_arrival *arrival);
/* Reads the front socket if no other thread does, on behalf of a channel with a hardware peer. */
void udp_demux_try(struct udp_endpoint *endpoint);

/* What a reader left in the socket. */
enum udp_left {
    UDP_LEFT_NOTHING,
    UDP_LEFT_MORE,
    UDP_LEFT_UNKNOWN, /* another thread reads */
};
/* Reads the shared socket of the channel on behalf of it; *messages: the number that it read. */
enum udp_left udp_demux_shared(struct udp_channel *channel, uint32_t *messages);
/* Sorts what waits in a direct socket of a channel index that has no owner. Under the lock. */
void udp_demux_drain(struct udp_fabric *fabric, int fd, uint32_t index);
/* Sorts a packet that came to a channel's direct socket, and is another's: the kernel had joined it with one
 * for this channel. */
void udp_demux_forward(struct udp_channel *channel, const struct udp_part *part);
/* What came for an endpoint that is not connected: it connects now, or ends. Under the lock. */
void udp_demux_forget_early(struct udp_endpoint *endpoint);
/* See fabric_ops. */
bool udp_shared_poll(struct fabric *fabric);
/* Moves to these counters what was found without an owner and stands in nobody's. */
void udp_count_strays(struct udp_fabric *fabric, struct lh_stats *stats);

/* Whether a packet from there can be the peer's. Hardware chooses source ports as it likes, and so does
 * NAT. */
static inline bool udp_source_is_peer(const struct udp_endpoint *endpoint, uint32_t channel,
                                      const union udp_address *from)
{
    const struct udp_peer *peer = &endpoint->peer;
    if (peer->translated && udp_address_same_host(from, &endpoint->seen_address))
        return true;
    return udp_address_same_host(from, &endpoint->peer_address) &&
           (peer->fabric != QP_INFO_UDP ||
            udp_address_port(from) == endpoint->channels[channel]->peer_port);
}

#endif
