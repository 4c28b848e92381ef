/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/send.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "netsim/fabric/endpoint.h"
#include "wire/roce.h"

#define IPV6_AND_UDP_BYTES 48u
/* When to look again for room in the packet pool: packets come back one by one, and everybody waits for
 * them. */
#define POOL_RETRY_NS (16 * LH_NS_PER_US)

_Static_assert(ROCE_WRITE_IMM_HEADER_BYTES + ROCE_MTU_MAX + ROCE_ICRC_BYTES <= SIM_DATAGRAM_MAX, "fits");

/* Header, payload, pad and iCRC. packet->bytes is their sum. */
static void encode(struct sim_path *path, struct sim_packet *packet, const struct roce_packet *roce)
{
    size_t at = roce_encode_header(roce, packet->data);
    if (roce->payload_bytes > 0)
        memcpy(packet->data + at, roce->payload, roce->payload_bytes);
    at += roce->payload_bytes;
    uint32_t pad_bytes = roce_pad_bytes(roce->payload_bytes);
    memset(packet->data + at, 0, pad_bytes);
    assert(at + pad_bytes + ROCE_ICRC_BYTES == packet->bytes);
    sim_checksum_seal(&path->sent, packet);
}

/* False: the tap wants it dropped. */
static bool tap_passes(struct sim_world *world, struct sim_packet *packet, bool control)
{
    if (world->tap == NULL)
        return true;
    struct sim_datagram datagram = sim_packet_view(packet, sim_now(world));
    datagram.control = control;
    if (!world->tap(world->tap_context, &datagram))
        return false;
    assert(datagram.bytes <= SIM_DATAGRAM_MAX);
    packet->bytes = datagram.bytes;
    return true;
}

/* Sends a second copy. When there is no room for it, there is none. */
static void duplicate(struct sim_world *world, const struct sim_packet *packet, lh_time arrive_ns)
{
    struct sim_packet *copy = packet_pool_get(&world->pool);
    if (copy == NULL)
        return;
    memcpy(copy, packet, offsetof(struct sim_packet, data) + packet->bytes);
    if (!sim_transit_start(world, copy, arrive_ns))
        packet_pool_put(&world->pool, copy);
}

/* Puts a packet that the link does not lose on its way. False: memory ran out. */
static bool depart(struct sim_endpoint *endpoint, struct sim_packet *packet,
                   const struct lh_link_fate *fate)
{
    struct lh_stats *stats = endpoint->table.attr.stats;
    if (fate->corrupted) {
        sim_packet_flip(packet, fate->corrupt_bit);
        fabric_count(stats, link_corrupted, 1);
    }
    if (!sim_transit_start(endpoint->world, packet, fate->arrive_ns[0]))
        return false;
    endpoint->world->counts.sent++;
    if (fate->reordered)
        fabric_count(stats, link_reordered, 1);
    if (fate->copies == 2) {
        fabric_count(stats, link_duplicated, 1);
        duplicate(endpoint->world, packet, fate->arrive_ns[1]);
    }
    return true;
}

/* Whether an encoded packet ends before it has left: tapped away, cut off or lost. */
static bool vanishes(struct sim_endpoint *endpoint, struct sim_packet *packet, bool control, bool lost)
{
    struct sim_world *world = endpoint->world;
    if (!tap_passes(world, packet, control)) {
        world->counts.tapped++;
        return true;
    }
    if (sim_direction(world, packet->from, packet->to)->cut) {
        world->counts.cut++;
        return true;
    }
    if (lost) {
        world->counts.sent++;
        world->counts.lost++;
        fabric_count(endpoint->table.attr.stats, link_dropped, 1);
    }
    return lost;
}

/* One packet to the peer's end of the path, with the world's lock held. Only what the link (or memory) has
 * no room for is not taken. */
static enum sim_refusal send_one(struct sim_endpoint *endpoint, struct sim_path *path,
                                 const struct roce_packet *roce, uint32_t corrupt_bit)
{
    struct sim_world *world = endpoint->world;
    struct sim_packet *packet = packet_pool_get(&world->pool);
    if (packet == NULL)
        return SIM_REFUSED_BY_POOL;
    packet->from = (uint8_t)endpoint->host;
    packet->to = (uint8_t)endpoint->peer_host;
    packet->ecn_capable = endpoint->table.attr.ecn_capable && path != sim_path_of(endpoint, FABRIC_CONTROL);
    packet->marked = false;
    packet->crosses_network = endpoint->world->network != NULL && packet->from != packet->to;
    packet->source_port = path->port;
    packet->destination_port = path->peer_port;
    packet->bytes = (uint32_t)roce_header_bytes((uint8_t)roce->opcode) + roce->payload_bytes +
                    roce_pad_bytes(roce->payload_bytes) + ROCE_ICRC_BYTES;
    uint32_t wire_bytes = IPV6_AND_UDP_BYTES + packet->bytes;
    struct lh_link_state *link = &sim_direction(world, packet->from, packet->to)->link;
    bool control = path == sim_path_of(endpoint, FABRIC_CONTROL);
    struct lh_link_fate fate = control ? lh_link_decide_control(link, sim_now(world), wire_bytes)
                                       : lh_link_decide(link, sim_now(world), wire_bytes);
    if (!fate.accepted) {
        packet_pool_put(&world->pool, packet);
        return SIM_REFUSED_BY_LINK;
    }
    if (!fate.dropped || world->tap != NULL) {
        encode(path, packet, roce);
        if (corrupt_bit != 0)
            sim_packet_flip(packet, corrupt_bit - 1);
    }
    if (!control)
        fabric_count(endpoint->table.attr.stats, tx_wire_bytes, wire_bytes);
    bool gone = vanishes(endpoint, packet, control, fate.dropped);
    if (gone || !depart(endpoint, packet, &fate))
        packet_pool_put(&world->pool, packet);
    return SIM_REFUSED_NOT;
}

static void note_refusal(struct sim_endpoint *endpoint, struct sim_path *path, enum sim_refusal refused)
{
    path->refused = refused;
    if (refused != SIM_REFUSED_NOT)
        fabric_count(endpoint->table.attr.stats, tx_backpressure, 1);
}

static int not_connected(void)
{
    return lh_fail(LH_ESTATE, "simulated endpoint is not connected");
}

int sim_post_writes(struct fabric_endpoint *base, uint32_t channel, const struct fabric_write *writes,
                    uint32_t count)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)base;
    const struct fabric_endpoint_attr *attr = &endpoint->table.attr;
    assert(channel < attr->channels && count <= FABRIC_BATCH_MAX);
    if (endpoint->peer_host == SIM_HOSTS_MAX)
        return not_connected();
    struct sim_path *path = sim_path_of(endpoint, channel);
    enum sim_refusal refused = SIM_REFUSED_NOT;
    uint32_t taken = 0;
    sim_lock(endpoint->world);
    for (; taken < count; taken++) {
        const struct fabric_write *write = &writes[taken];
        assert(write->generation < attr->generations && write->bytes <= attr->mtu_bytes);
        uint32_t *psn = &path->psn[write->generation];
        struct roce_packet roce = {
            .opcode = ROCE_UC_WRITE_ONLY_IMM,
            .dest_qpn = endpoint->peer.qpn[write->generation][channel] & ROCE_QPN_MASK,
            .psn = *psn,
            .va = write->va,
            .rkey = write->rkey,
            .immediate = write->immediate,
            .payload = write->payload,
            .payload_bytes = write->bytes,
        };
        refused = send_one(endpoint, path, &roce, write->corrupt_bit);
        if (refused != SIM_REFUSED_NOT)
            break;
        *psn = (*psn + 1) & ROCE_PSN_MASK;
    }
    sim_unlock(endpoint->world);
    note_refusal(endpoint, path, refused);
    return (int)taken;
}

int sim_control_send(struct fabric_endpoint *base, const struct fabric_datagram *datagrams, uint32_t count)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)base;
    if (endpoint->peer_host == SIM_HOSTS_MAX)
        return not_connected();
    struct sim_path *path = sim_path_of(endpoint, FABRIC_CONTROL);
    enum sim_refusal refused = SIM_REFUSED_NOT;
    uint32_t taken = 0;
    sim_lock(endpoint->world);
    for (; taken < count; taken++) {
        assert(datagrams[taken].bytes <= CONTROL_PROBE_MAX);
        struct roce_packet roce = {
            .opcode = ROCE_UC_SEND_ONLY,
            .dest_qpn = endpoint->peer.control_qpn & ROCE_QPN_MASK,
            .psn = path->psn[0],
            .payload = datagrams[taken].data,
            .payload_bytes = datagrams[taken].bytes,
        };
        refused = send_one(endpoint, path, &roce, datagrams[taken].corrupt_bit);
        if (refused != SIM_REFUSED_NOT)
            break;
        path->psn[0] = (path->psn[0] + 1) & ROCE_PSN_MASK;
    }
    sim_unlock(endpoint->world);
    note_refusal(endpoint, path, refused);
    return (int)taken;
}

/* When what refused the last send of the path will take more, in the world's time. While the pool is empty
 * that is not now, though packets may arrive now: the world has to go on before one is given back. */
static lh_time refusal_ends_ns(struct sim_endpoint *endpoint, enum sim_refusal refused)
{
    struct sim_world *world = endpoint->world;
    lh_time now = sim_now(world);
    if (refused == SIM_REFUSED_BY_LINK)
        return lh_link_ready_ns(&sim_direction(world, endpoint->host, endpoint->peer_host)->link, now);
    return packet_pool_has_room(&world->pool) ? now : now + POOL_RETRY_NS;
}

lh_time sim_pump(struct fabric_endpoint *base, uint32_t channel, lh_time now)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)base;
    struct sim_path *path = sim_path_of(endpoint, channel);
    if (path->refused == SIM_REFUSED_NOT)
        return LH_TIME_NEVER;
    sim_lock(endpoint->world);
    lh_time ready_ns = refusal_ends_ns(endpoint, path->refused);
    bool over = ready_ns <= sim_now(endpoint->world);
    lh_time shown_ns = sim_host_shows(&endpoint->world->hosts[endpoint->host], ready_ns);
    sim_unlock(endpoint->world);
    /* Said once when it is over: a caller that does not want to send any more is not asked for ever. */
    if (over) {
        path->refused = SIM_REFUSED_NOT;
        return now;
    }
    /* A slow clock may show the same for two moments. */
    return shown_ns > now ? shown_ns : now + 1;
}
