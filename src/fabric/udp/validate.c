/*
 * A message of the kernel: every packet is validated, and put where it belongs.
 *
 * For each packet in a message, in this order: header, QPN, rx_check(), iCRC. Then its payload is copied to
 * its place, which was fetched into the caches while the iCRC was computed. So nothing but a valid packet
 * changes a byte of a receive's buffer.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/validate.h"

#include <assert.h>
#include <string.h>

#include "base/big_endian.h"
#include "base/copy.h"
#include "fabric/udp/demux.h"

#define HEADER ROCE_WRITE_IMM_HEADER_BYTES

/* One packet of a message. */
struct segment {
    uint32_t bytes;
    uint32_t index; /* in the message of the kernel */
    const uint8_t *data;
    struct roce_packet packet;
    uint8_t generation;
};

static struct lh_stats *stats_of(const struct udp_channel *channel)
{
    return channel->endpoint->table.attr.stats;
}

/* The finished iCRC of a segment that would have this IP ID (on IPv6: any). Its payload will go to place. */
static uint32_t icrc_of(struct udp_channel *channel, const struct segment *segment, uint32_t ip_id,
                        const uint8_t *place)
{
    struct udp_rx *rx = &channel->rx;
    uint32_t state = udp_prefix_get(&rx->prefix, &rx->flow, segment->bytes, rx->flow.source_port, ip_id);
    state = icrc_add_header(state, segment->data, HEADER);
    return icrc_finish(
        icrc_add_ahead(state, segment->data + HEADER, segment->bytes - HEADER - ROCE_ICRC_BYTES, place));
}

static bool icrc_holds(struct udp_channel *channel, const struct segment *segment, const uint8_t *place)
{
    uint32_t wanted = icrc_load(segment->data + segment->bytes - ROCE_ICRC_BYTES);
    bool ours = channel->endpoint->peer.fabric == QP_INFO_UDP;
    /* A peer of our kind sends GSO bursts with IDs 0, 1, 2 …, and the kernel most often joins them as they
     * were. */
    uint32_t ip_id = ours ? segment->index : 0;
    uint32_t found = icrc_of(channel, segment, ip_id, place);
    if (found == wanted)
        return true;
    /* A plain IPv4 socket does not see the ID. The iCRC is affine in it, so the difference can be solved
     * for. */
    uint16_t difference;
    if (!channel->rx.flow.ipv4 || !icrc_solve_ip_id(found, wanted, segment->bytes, &difference))
        return false;
    /* Hardware may have any ID; ours are small, which leaves 25 bits of the check instead of 16. */
    return !ours || (ip_id ^ difference) <= UDP_IP_ID_MAX;
}

static bool find_generation(const struct udp_channel *channel, uint32_t qpn, uint8_t *generation)
{
    for (uint32_t i = 0; i < channel->endpoint->table.attr.generations; i++) {
        if (channel->generations[i].qpn == qpn) {
            *generation = (uint8_t)i;
            return true;
        }
    }
    return false;
}

/* Names what the socket's filter cut down to its header. A burst that the kernel joined counts as one. */
static void count_cut(const struct udp_channel *channel, const uint8_t header[HEADER])
{
    uint8_t generation;
    if (header[0] != ROCE_UC_WRITE_ONLY_IMM)
        fabric_count(stats_of(channel), bad_header, 1);
    else if (!find_generation(channel, lh_get_be24(header + ROCE_QPN_OFFSET), &generation))
        fabric_count(stats_of(channel), bad_qpn, 1);
    else
        fabric_count(stats_of(channel), bad_length, 1);
}

/* Of the same peer host and port, which may have other connections to this fabric: the kernel joined their
 * packets. What is nobody's is counted there. */
static void forward(struct udp_channel *channel, const struct segment *segment)
{
    const struct udp_part part = {.from = &channel->rx.from,
                                  .data = segment->data,
                                  .bytes = segment->bytes,
                                  .place = segment->index,
                                  .marked = channel->rx.marked};
    udp_demux_forward(channel, &part);
}

/* Header and QPN; counts what is wrong. */
static bool read_segment(struct udp_channel *channel, struct segment *segment)
{
    if (segment->bytes == HEADER) {
        count_cut(channel, segment->data);
        return false;
    }
    switch (roce_decode(segment->data, segment->bytes, &segment->packet)) {
    case ROCE_OK:
        break;
    case ROCE_BAD_HEADER:
        fabric_count(stats_of(channel), bad_header, 1);
        return false;
    case ROCE_BAD_LENGTH:
        fabric_count(stats_of(channel), bad_length, 1);
        return false;
    }
    if (segment->packet.opcode != ROCE_UC_WRITE_ONLY_IMM) {
        fabric_count(stats_of(channel), bad_header, 1);
        return false;
    }
    if (!find_generation(channel, segment->packet.dest_qpn, &segment->generation)) {
        forward(channel, segment);
        return false;
    }
    return true;
}

/* Of a peer behind NAT. The packet is the peer's: it has the key of a receive, or the proof of a punch. So
 * answers to where it came from reach the peer, also if that has changed. */
static void note_source(struct udp_channel *channel)
{
    const struct udp_endpoint *endpoint = channel->endpoint;
    struct udp_tx *tx = &channel->tx;
    const union udp_address *from = &channel->rx.from;
    if (udp_address_port(from) == udp_address_port(&tx->to) && udp_address_same_host(from, &tx->to))
        return;
    uint16_t port = udp_address_port(from);
    bool seen = udp_address_same_host(from, &endpoint->seen_address);
    if (!seen && atomic_load_explicit(&endpoint->seen_port, memory_order_relaxed) != 0)
        return; /* not from the host that was proven */
    tx->to = seen ? endpoint->seen_address : endpoint->peer_address;
    udp_address_set_port(&tx->to, port);
}

/* It is sent only to show where it comes from. */
static bool is_punch(const struct udp_channel *channel, const struct roce_packet *packet)
{
    const struct udp_peer *peer = &channel->endpoint->peer;
    return peer->translated && packet->payload_bytes == 0 && packet->rkey == 0 && packet->va == 0 &&
           packet->immediate == peer->proof;
}

static void validate_segment(struct udp_channel *channel, struct segment *segment)
{
    struct udp_rx *rx = &channel->rx;
    const struct rx_table *table = &channel->endpoint->table;
    const struct roce_packet *packet = &segment->packet;
    uint8_t *place = NULL;
    if (!read_segment(channel, segment))
        return;
    enum rx_verdict verdict = rx_check(table, packet, channel->index, segment->generation, &place);
    if (verdict > RX_PIECE || packet->payload_bytes == 0)
        place = NULL;
    if (!icrc_holds(channel, segment, place)) {
        fabric_count(stats_of(channel), bad_icrc, 1);
        return;
    }
    if (is_punch(channel, packet)) {
        note_source(channel);
        return;
    }
    rx_count(table->attr.stats, verdict);
    if (verdict == RX_LATE)
        rx->proven++;
    if (verdict > RX_DUPLICATE)
        return;
    if (channel->endpoint->peer.translated)
        note_source(channel);
    if (place != NULL)
        lh_copy(place, segment->data + HEADER, packet->payload_bytes);
    uint32_t bytes = packet->payload_bytes;
    if (verdict == RX_PIECE)
        bytes = rx_on_piece(&channel->endpoint->table, packet, channel->index);
    if (verdict == RX_PIECE && bytes == 0)
        return;
    rx->proven++;
    const struct fabric_arrival arrival = {packet->immediate, (uint16_t)bytes, segment->generation};
    udp_arrivals_add(&rx->arrivals, &arrival);
}

void udp_take_message(struct udp_channel *channel, const uint8_t *data, const struct udp_received *message)
{
    uint32_t index = message->first;
    channel->rx.proven = 0;
    for (uint32_t offset = 0; offset < message->bytes; offset += message->segment_bytes) {
        uint32_t left = message->bytes - offset;
        struct segment segment = {
            .data = data + offset,
            .bytes = left < message->segment_bytes ? left : message->segment_bytes,
            .index = index++,
        };
        validate_segment(channel, &segment);
    }
}
