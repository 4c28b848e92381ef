/*
 * A message of the kernel: every packet is validated, and put where it belongs.
 *
 * What the socket's filter let pass whole (filter.h) may lie in a user's buffer already, in its
 * speculative place (placement.h). For each packet in a message, in this order: header, QPN, iCRC over the
 * bytes where they lie, rx_check(). A payload that lies elsewhere than where it belongs is moved when the
 * whole message has been validated, by way of the `aside` buffer when it lies in a user's buffer: the
 * place it took may be another packet's, and the place it belongs to may hold another packet still. So
 * nothing is overwritten before it is moved. What a bad packet leaves in a speculative place does no harm:
 * that place has not been received, and nobody reads it yet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/validate.h"

#include <assert.h>
#include <string.h>

#include "base/big_endian.h"
#include "fabric/udp/demux.h"

#define HEADER ROCE_WRITE_IMM_HEADER_BYTES

/* One packet of a message. */
struct segment {
    uint32_t offset;
    uint32_t bytes;
    uint32_t index;
    const uint8_t *header;
    struct roce_packet packet; /* its payload pointer means nothing: the payload is scattered */
    uint8_t generation;
};

static struct lh_stats *stats_of(const struct udp_channel *channel)
{
    return channel->endpoint->table.attr.stats;
}

/* The finished iCRC of a segment that would have this IP ID (on IPv6: any). */
static uint32_t icrc_of(struct udp_channel *channel, struct udp_scatter *scatter,
                        const struct segment *segment, uint32_t ip_id)
{
    struct udp_rx *rx = &channel->rx;
    uint32_t state = udp_prefix_get(&rx->prefix, &rx->flow, segment->bytes, rx->flow.source_port, ip_id);
    state = icrc_add_header(state, segment->header, HEADER);
    uint32_t offset = segment->offset + HEADER;
    uint32_t left = segment->bytes - HEADER - ROCE_ICRC_BYTES;
    while (left > 0) { /* each round takes a byte or more */
        uint32_t got;
        const uint8_t *piece = udp_scatter_piece(scatter, offset, left, &got);
        state = icrc_add(state, piece, got);
        offset += got;
        left -= got;
    }
    return icrc_finish(state);
}

static bool icrc_holds(struct udp_channel *channel, struct udp_scatter *scatter,
                       const struct segment *segment)
{
    uint8_t trailer[ROCE_ICRC_BYTES];
    udp_scatter_gather(scatter, segment->offset + segment->bytes - ROCE_ICRC_BYTES, ROCE_ICRC_BYTES,
                       trailer);
    uint32_t wanted = icrc_load(trailer);
    bool ours = channel->endpoint->peer.fabric == QP_INFO_UDP;
    /* A peer of our kind sends GSO bursts with IDs 0, 1, 2 …, and the kernel most often joins them as they
     * were. */
    uint32_t ip_id = ours ? segment->index : 0;
    uint32_t found = icrc_of(channel, scatter, segment, ip_id);
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
static void forward(struct udp_channel *channel, struct udp_scatter *scatter, const struct segment *segment)
{
    uint8_t copy[UDP_INBOX_PACKET_BYTES];
    const struct udp_part part = {.from = &channel->rx.from,
                                  .data = copy,
                                  .bytes = segment->bytes,
                                  .place = segment->index,
                                  .marked = channel->rx.marked};
    assert(segment->bytes <= sizeof copy); /* it was decoded */
    udp_scatter_gather(scatter, segment->offset, segment->bytes, copy);
    udp_demux_forward(channel, &part);
}

/* Header, QPN and iCRC; counts what is wrong. */
static bool read_segment(struct udp_channel *channel, struct udp_scatter *scatter, struct segment *segment)
{
    uint32_t want = segment->bytes < HEADER ? segment->bytes : HEADER;
    uint32_t got;
    segment->header = udp_scatter_piece(scatter, segment->offset, want, &got);
    if (got < want) {
        udp_scatter_gather(scatter, segment->offset, want, channel->rx.header);
        segment->header = channel->rx.header;
    }
    if (segment->bytes == HEADER) {
        count_cut(channel, segment->header);
        return false;
    }
    switch (roce_decode(segment->header, segment->bytes, &segment->packet)) {
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
        forward(channel, scatter, segment);
        return false;
    }
    if (!icrc_holds(channel, scatter, segment)) {
        fabric_count(stats_of(channel), bad_icrc, 1);
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

/* The payload is in place (true), or put on the list of moves. */
static bool settle_payload(struct udp_rx *rx, struct udp_scatter *scatter, const struct segment *segment,
                           uint8_t *place)
{
    uint32_t offset = segment->offset + HEADER;
    uint32_t bytes = segment->packet.payload_bytes;
    uint32_t got;
    const uint8_t *where = udp_scatter_piece(scatter, offset, bytes, &got);
    if (where == place && got == bytes)
        return true;
    if (udp_scatter_is_placed(scatter, offset)) {
        assert(rx->taken.aside != NULL && rx->aside_bytes + bytes <= UDP_MESSAGE_MAX);
        uint8_t *aside = rx->taken.aside + rx->aside_bytes;
        udp_scatter_gather(scatter, offset, bytes, aside);
        rx->aside_bytes += bytes;
        where = aside;
    }
    assert(rx->move_count < rx->taken.room);
    rx->taken.moves[rx->move_count++] = (struct udp_move){place, where, bytes};
    return false;
}

/* True: the packet is taken, and lies in its speculative place. */
static bool validate_segment(struct udp_channel *channel, struct udp_scatter *scatter,
                             struct segment *segment)
{
    struct udp_rx *rx = &channel->rx;
    const struct rx_table *table = &channel->endpoint->table;
    if (!read_segment(channel, scatter, segment))
        return false;
    const struct roce_packet *packet = &segment->packet;
    if (is_punch(channel, packet)) {
        note_source(channel);
        return false;
    }
    uint8_t *place;
    enum rx_verdict verdict = rx_check(table, packet, channel->index, segment->generation, &place);
    rx_count(table->attr.stats, verdict);
    if (verdict == RX_LATE)
        rx->late++;
    if (verdict != RX_TAKE && verdict != RX_DUPLICATE)
        return false;
    if (channel->endpoint->peer.translated)
        note_source(channel);
    assert(rx->ready_count < rx->taken.room);
    rx->taken.ready[rx->ready_count++] =
        (struct fabric_arrival){packet->immediate, (uint16_t)packet->payload_bytes, segment->generation};
    if (verdict == RX_DUPLICATE || packet->payload_bytes == 0)
        return false;
    struct immediate_fields fields = immediate_part(table->attr.split, packet->immediate);
    placement_on_packet(&rx->placement, table, fields.message, fields.packet);
    return settle_payload(rx, scatter, segment, place);
}

bool udp_take_message(struct udp_channel *channel, struct udp_scatter *scatter,
                      const struct udp_received *message)
{
    struct udp_rx *rx = &channel->rx;
    uint32_t hits = 0;
    uint32_t count = 0;
    uint32_t ready_before = rx->ready_count;
    rx->move_count = 0;
    rx->aside_bytes = 0;
    rx->late = 0;
    for (uint32_t offset = 0; offset < message->bytes; offset += message->segment_bytes, count++) {
        uint32_t left = message->bytes - offset;
        struct segment segment = {
            .offset = offset,
            .bytes = left < message->segment_bytes ? left : message->segment_bytes,
            .index = message->first + count,
        };
        if (validate_segment(channel, scatter, &segment))
            hits++;
    }
    rx->proven = rx->ready_count - ready_before + rx->late;
    for (uint32_t i = 0; i < rx->move_count; i++)
        memcpy(rx->taken.moves[i].place, rx->taken.moves[i].bytes, rx->taken.moves[i].count);
    if (hits > 0)
        fabric_count(stats_of(channel), rx_guess_hits, hits);
    if (rx->move_count > 0)
        fabric_count(stats_of(channel), rx_guess_misses, rx->move_count);
    return hits == count;
}
