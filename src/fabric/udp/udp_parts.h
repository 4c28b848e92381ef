/*
 * udp_parts.h - the parts of the udp fabric: ports with their sockets, connecting, sending, CNPs, punching,
 * receiving.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LH_FABRIC_UDP_UDP_PARTS_H
#define LH_FABRIC_UDP_UDP_PARTS_H

#include "fabric/udp/udp_state.h"

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
/* Sorts a packet that came by the bypass, to that port: it is not the channel's that read it. */
void udp_demux_bypassed(struct udp_channel *reader, uint16_t port, const struct udp_part *part);
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

/* In the BTH of an encrypted control packet: the lowest byte of the newest epoch that its sender has
 * received. In clear packets this is FECN and BECN. */
#define UDP_EPOCH_OFFSET 4u

/* Reads what was in a sealed packet: it has a header and a payload, neither pad nor iCRC. */
static inline bool udp_sealed_decode(const uint8_t *plain, uint32_t bytes, struct roce_packet *packet)
{
    const uint32_t pad = (plain[1] >> 4) & 3u;
    return bytes >= ROCE_BTH_BYTES && roce_decode(plain, bytes + pad + ROCE_ICRC_BYTES, packet) == ROCE_OK;
}

/* ---- validate -------------------------------------------------------------------------------------- */

/* Validates the packets of a received message. */

struct udp_received {
    uint32_t bytes;
    uint32_t segment_bytes; /* of each packet in it, but for a shorter last one */
    uint32_t first;         /* the place of its first packet in the message that the kernel had */
};

/* Validates all packets of a message, puts payloads where they belong, and good packets into rx.arrivals.
 * rx.proven: the number of those that are the peer's, late ones too. */
void udp_take_message(struct udp_channel *channel, const uint8_t *data, const struct udp_received *message);

/* ---- udp port -------------------------------------------------------------------------------------- */

/* The sockets of a channel index: the shared one, and direct ones that channels have for a while. */

/* Opens the ports of that many channels, those that are not yet. Under the fabric's lock. */
int udp_ports_open(struct udp_fabric *fabric, uint32_t channels);
void udp_ports_close(struct udp_fabric *fabric);

/* Gives a connected channel a direct socket, if one is to be had; else asks whoever has been quiet longest to
 * leave his. Nothing depends on it but speed. By the owner of the channel (nothing waits to be returned),
 * under the lock. */
void udp_port_promote(struct udp_channel *channel);
/* From now on the channel's packets come to the shared socket; false: the kernel refuses. By the owner. */
bool udp_port_begin_leave(struct udp_channel *channel);
/* Gives the direct socket, which is empty, to whoever wants it. By the owner, under the lock. */
void udp_port_leave(struct udp_channel *channel);

/* ---- connect --------------------------------------------------------------------------------------- */

/* Connects the channels of an endpoint to those of the peer. */

int udp_endpoint_connect(struct fabric_endpoint *endpoint, const struct qp_info_endpoint *peer);

/* ---- udp tx ---------------------------------------------------------------------------------------- */

/* Sends data packets and control datagrams. */

int udp_post_writes(struct fabric_endpoint *endpoint, uint32_t channel, const struct fabric_write *writes,
                    uint32_t count);
int udp_control_send(struct fabric_endpoint *endpoint, const struct fabric_datagram *datagrams,
                     uint32_t count);
/* See fabric_ops.pace. Any channel may have all of the rate for a moment, since messages are striped. */
void udp_pace(struct fabric_endpoint *endpoint, uint64_t rate_bps);
/* Whether a send that failed so only lost its packet, as any network may. */
bool udp_send_error_is_loss(int error);

/* ---- cnp ------------------------------------------------------------------------------------------- */

/*
 * Congestion notification packets (CNP) to RoCE hardware whose packets arrive marked.
 *
 * A peer of our kind needs none: it learns of marks from its own control messages. Hardware with DCQCN lowers
 * its rate when it gets one, and knows no other way (RoCEv2, Annex A17.9.3).
 */

/* Least time between two notifications of one queue pair (DCQCN, SIGCOMM 2015, section 5.1: the notification
 * point's timer, N). */
#define UDP_CNP_INTERVAL_NS (50 * LH_NS_PER_US)

/* A packet of the peer, which is hardware, arrived marked: notifies the queue pair that sent it, unless that
 * was done less than UDP_CNP_INTERVAL_NS ago. It may be lost like any packet. */
void udp_cnp_on_marked(struct udp_channel *channel, uint8_t generation);

/* ---- punch ----------------------------------------------------------------------------------------- */

/*
 * NAT on the path: packets that show the peer where each channel's data comes from.
 *
 * A peer that is not behind NAT answers to where packets come from. What it sends passes only where something
 * has left by the same socket before, and NAT forgets that after some time: control packets leave each
 * second (pings), data may not. So a punch, an RDMA write of no byte with key 0, leaves each data socket
 * with control packets. Its immediate is what only the peer knows: the token of control messages.
 *
 * Timers: punch_at, from PUNCH_FIRST_NS on at doubling intervals, up to PUNCH_LAST_NS. Its packets leave with
 * the control packet after it.
 */

/* See fabric.h. */
void udp_punch(struct fabric_endpoint *endpoint, uint32_t proof);

/* ---- udp rx ---------------------------------------------------------------------------------------- */

/* Receives data packets. */

int udp_poll(struct fabric_endpoint *endpoint, uint32_t channel, struct fabric_arrival *arrivals,
             uint32_t count);
void udp_count_drops(struct fabric_endpoint *endpoint);
/* Takes back arrivals of a slot that were not returned yet. */
void udp_rx_forget(struct udp_channel *channel, uint32_t slot);

#endif
