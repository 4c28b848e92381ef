/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/receive.h"

#include <assert.h>
#include <string.h>

#include "netsim/fabric/endpoint.h"
#include "wire/roce.h"

/* Frees the packets that were judged and takes up to `count` more from the queue, linked by next. */
static struct sim_packet *next_batch(struct sim_endpoint *endpoint, struct sim_path *path,
                                     struct sim_packet *judged, uint32_t count)
{
    struct sim_packet *first = NULL;
    struct sim_packet **end = &first;
    sim_lock(endpoint->world);
    while (judged != NULL) {
        struct sim_packet *next = judged->next;
        packet_pool_put(&endpoint->world->pool, judged);
        judged = next;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct sim_packet *packet = sim_queue_pop(&path->arrived);
        if (packet == NULL)
            break;
        path->read_arrived_ns = packet->arrived_ns;
        *end = packet;
        end = &packet->next;
    }
    sim_unlock(endpoint->world);
    return first;
}

/* How many packets this poll may take. */
static uint32_t share_of(struct sim_endpoint *endpoint, const struct sim_path *path, uint32_t count)
{
    struct sim_world *world = endpoint->world;
    sim_lock(world);
    if (world->poll_share != NULL && path->arrived.first != NULL)
        count = world->poll_share(world->poll_share_context, endpoint->host, path->port, count);
    sim_unlock(world);
    assert(count > 0);
    return count;
}

static bool icrc_holds(struct sim_path *path, const struct sim_packet *packet)
{
    if (packet->source_port == path->peer_port)
        return sim_checksum_holds(&path->received, packet);
    /* From another port of the peer's host, which only a test sends from. */
    struct sim_checksum checksum;
    sim_checksum_init(&checksum, packet->from, packet->source_port, packet->to, packet->destination_port);
    return sim_checksum_holds(&checksum, packet);
}

/* Everything that can be said of a packet without knowing which QP it is for. Counts what is wrong. */
static bool is_sound(struct sim_endpoint *endpoint, struct sim_path *path, const struct sim_packet *packet,
                     struct roce_packet *roce)
{
    struct lh_stats *stats = endpoint->table.attr.stats;
    if (packet->from != endpoint->peer_host) {
        fabric_count(stats, bad_source, 1);
        return false;
    }
    enum roce_verdict verdict = roce_decode(packet->data, packet->bytes, roce);
    if (verdict == ROCE_BAD_HEADER)
        fabric_count(stats, bad_header, 1);
    else if (verdict == ROCE_BAD_LENGTH)
        fabric_count(stats, bad_length, 1);
    else if (!icrc_holds(path, packet))
        fabric_count(stats, bad_icrc, 1);
    else
        return true;
    return false;
}

/* The generation whose data QP on that channel has the number, or attr.generations. */
static uint32_t generation_of(const struct sim_endpoint *endpoint, uint32_t channel, uint32_t qpn)
{
    uint32_t generation = 0;
    while (generation < endpoint->table.attr.generations && endpoint->own.qpn[generation][channel] != qpn)
        generation++;
    return generation;
}

static bool receive_write(struct sim_endpoint *endpoint, uint32_t channel, const struct sim_packet *packet,
                          struct fabric_arrival *arrival)
{
    struct lh_stats *stats = endpoint->table.attr.stats;
    struct roce_packet roce;
    if (!is_sound(endpoint, sim_path_of(endpoint, channel), packet, &roce))
        return false;
    uint32_t generation = generation_of(endpoint, channel, roce.dest_qpn);
    if (generation == endpoint->table.attr.generations) {
        fabric_count(stats, bad_qpn, 1);
        return false;
    }
    if (roce.opcode != ROCE_UC_WRITE_ONLY_IMM) {
        fabric_count(stats, bad_header, 1);
        return false;
    }
    uint8_t *place = NULL;
    enum rx_verdict verdict = rx_check(&endpoint->table, &roce, channel, (uint8_t)generation, &place);
    rx_count(stats, verdict);
    if (verdict > RX_DUPLICATE)
        return false;
    uint32_t bytes = roce.payload_bytes;
    if (verdict <= RX_PIECE && bytes > 0)
        memcpy(place, roce.payload, bytes);
    if (verdict == RX_PIECE)
        bytes = rx_on_piece(&endpoint->table, &roce, channel);
    if (verdict == RX_PIECE && bytes == 0)
        return false;
    fabric_count(stats, rx_marked_packets, packet->marked);
    arrival->immediate = roce.immediate;
    arrival->bytes = (uint16_t)bytes;
    arrival->generation = (uint8_t)generation;
    return true;
}

int sim_poll(struct fabric_endpoint *base, uint32_t channel, struct fabric_arrival *arrivals,
             uint32_t count)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)base;
    assert(channel < endpoint->table.attr.channels);
    struct sim_path *path = sim_path_of(endpoint, channel);
    uint32_t got = 0;
    struct sim_packet *batch = NULL;
    count = share_of(endpoint, path, count);
    /* Ends at the latest when the queue is empty. */
    while ((batch = next_batch(endpoint, path, batch, count - got)) != NULL) {
        for (const struct sim_packet *packet = batch; packet != NULL; packet = packet->next) {
            if (packet->next != NULL)
                __builtin_prefetch(packet->next->data);
            if (receive_write(endpoint, channel, packet, &arrivals[got]))
                got++;
        }
    }
    return (int)got;
}

lh_time sim_arrived(struct fabric_endpoint *base, uint32_t channel)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)base;
    sim_lock(endpoint->world);
    lh_time arrived_ns = sim_path_of(endpoint, channel)->read_arrived_ns;
    sim_unlock(endpoint->world);
    return arrived_ns;
}

static bool receive_send(struct sim_endpoint *endpoint, const struct sim_packet *packet,
                         struct fabric_control_arrival *arrival)
{
    struct lh_stats *stats = endpoint->table.attr.stats;
    struct roce_packet roce;
    if (!is_sound(endpoint, sim_path_of(endpoint, FABRIC_CONTROL), packet, &roce))
        return false;
    if (roce.dest_qpn != endpoint->own.control_qpn) {
        fabric_count(stats, bad_qpn, 1);
        return false;
    }
    if (roce.opcode != ROCE_UC_SEND_ONLY) {
        fabric_count(stats, bad_header, 1);
        return false;
    }
    if (roce.payload_bytes > CONTROL_PROBE_MAX) {
        fabric_count(stats, bad_length, 1);
        return false;
    }
    if (roce.payload_bytes > 0)
        memcpy(arrival->data, roce.payload, roce.payload_bytes);
    arrival->bytes = roce.payload_bytes;
    return true;
}

int sim_control_poll(struct fabric_endpoint *base, struct fabric_control_arrival *arrivals, uint32_t count)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)base;
    struct sim_path *path = sim_path_of(endpoint, FABRIC_CONTROL);
    uint32_t got = 0;
    struct sim_packet *batch = NULL;
    count = share_of(endpoint, path, count);
    while ((batch = next_batch(endpoint, path, batch, count - got)) != NULL) {
        for (const struct sim_packet *packet = batch; packet != NULL; packet = packet->next) {
            if (receive_send(endpoint, packet, &arrivals[got]))
                got++;
        }
    }
    return (int)got;
}
