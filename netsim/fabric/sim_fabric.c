/*
 * sim_fabric.c - the simulated network as a fabric: registering it, opening a host of a world by its device
 * name.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <longhaul/fabric.h>

#include "base/error.h"
#include "fabric/fabric.h"
#include "netsim/fabric/sim_endpoint.h"
#include "netsim/fabric/sim_packets.h"
#include "wire/roce_packet.h"

/* ---- send ------------------------------------------------------------------------------------------ */

/* The sending half of a simulated endpoint: packets are encoded, tapped, and given to the link. */

#define IPV6_AND_UDP_BYTES 48u
/* When to look again for room in the packet pool: packets come back one by one, and everybody waits for
 * them. */
#define POOL_RETRY_NS (16 * LH_NS_PER_US)

_Static_assert(ROCE_WRITE_IMM_HEADER_BYTES + ROCE_MTU_MAX + ROCE_ICRC_BYTES <= SIM_DATAGRAM_MAX, "fits");
/* As long on the wire as the longest data packet: here an MTU is at most that of RDMA devices. */
#define CONTROL_MAX (ROCE_MTU_MAX + ROCE_WRITE_IMM_HEADER_BYTES - ROCE_SEND_HEADER_BYTES)
_Static_assert(CONTROL_MAX <= CONTROL_PROBE_MAX, "an arrival holds it");

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

static int sim_post_writes(struct fabric_endpoint *base, uint32_t channel,
                           const struct fabric_write *writes, uint32_t count)
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

static int sim_control_send(struct fabric_endpoint *base, const struct fabric_datagram *datagrams,
                            uint32_t count)
{
    struct sim_endpoint *endpoint = (struct sim_endpoint *)base;
    if (endpoint->peer_host == SIM_HOSTS_MAX)
        return not_connected();
    struct sim_path *path = sim_path_of(endpoint, FABRIC_CONTROL);
    enum sim_refusal refused = SIM_REFUSED_NOT;
    uint32_t taken = 0;
    sim_lock(endpoint->world);
    for (; taken < count; taken++) {
        assert(datagrams[taken].bytes <= CONTROL_MAX);
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

static lh_time sim_pump(struct fabric_endpoint *base, uint32_t channel, lh_time now)
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

/* ---- receive --------------------------------------------------------------------------------------- */

/*
 * The receiving half of a simulated endpoint: what waits in a queue is judged when it is
 * polled.
 */

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

static int sim_poll(struct fabric_endpoint *base, uint32_t channel, struct fabric_arrival *arrivals,
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

/* See fabric_ops. */
static lh_time sim_arrived(struct fabric_endpoint *base, uint32_t channel)
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
    if (roce.payload_bytes > CONTROL_MAX) {
        fabric_count(stats, bad_length, 1);
        return false;
    }
    if (roce.payload_bytes > 0)
        memcpy(arrival->data, roce.payload, roce.payload_bytes);
    arrival->bytes = roce.payload_bytes;
    return true;
}

static int sim_control_poll(struct fabric_endpoint *base, struct fabric_control_arrival *arrivals,
                            uint32_t count)
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

/* ---- sim ------------------------------------------------------------------------------------------- */

/* "<world>/<host>", a host being a decimal number. SIM_HOSTS_MAX when it is anything else. */
static uint32_t parse_host(const char *address, size_t *name_bytes)
{
    const char *slash = strrchr(address, '/');
    uint32_t host = 0;
    if (slash == NULL || slash[1] == '\0' || (slash[1] == '0' && slash[2] != '\0'))
        return SIM_HOSTS_MAX;
    for (const char *digit = slash + 1; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9' || host >= SIM_HOSTS_MAX)
            return SIM_HOSTS_MAX;
        host = 10 * host + (uint32_t)(*digit - '0');
    }
    *name_bytes = (size_t)(slash - address);
    return host < SIM_HOSTS_MAX ? host : SIM_HOSTS_MAX;
}

static void sim_close(struct fabric *fabric)
{
    struct sim_fabric *sim = (struct sim_fabric *)fabric;
    sim_world_leave(sim->world);
    free(sim);
}

static int sim_open(const struct fabric_attr *attr, struct fabric **out)
{
    size_t name_bytes = 0;
    uint32_t host = parse_host(attr->address, &name_bytes);
    if (host == SIM_HOSTS_MAX)
        return lh_fail(LH_EADDR, "simulated device '%s' is not <world>/<host number 0 to %u>",
                       attr->address, SIM_HOSTS_MAX - 1);
    struct sim_fabric *sim = calloc(1, sizeof(*sim));
    if (sim == NULL)
        return lh_fail(LH_ENOMEM, "no memory for simulated device '%s'", attr->address);
    sim->base.ops = &fabric_sim_ops;
    sim->host = host;
    sim->receive_buffer_bytes =
        attr->receive_buffer_bytes != 0 ? attr->receive_buffer_bytes : FABRIC_RECEIVE_BUFFER_DEFAULT;
    sim->world = sim_world_enter(attr->address, name_bytes);
    if (sim->world == NULL) {
        free(sim);
        return lh_fail(LH_EADDR, "simulated world '%.*s': not found (call lh_sim_world_create() first)",
                       (int)name_bytes, attr->address);
    }
    uint32_t hosts = sim->world->hosts_count;
    if (host >= hosts) {
        sim_close(&sim->base);
        return lh_fail(LH_EADDR, "simulated device '%s': no such host (the world has hosts 0 to %u)",
                       attr->address, hosts - 1);
    }
    *out = &sim->base;
    return 0;
}

static lh_time sim_fabric_now(struct fabric *fabric)
{
    const struct sim_fabric *sim = (const struct sim_fabric *)fabric;
    return sim_host_now(sim->world, sim->host);
}

/* Nothing ever arrives but by sim_world_advance(). */
static uint32_t sim_poll_fds(struct fabric_endpoint *endpoint, uint32_t channel, int *fds)
{
    (void)endpoint;
    (void)channel;
    (void)fds;
    return FABRIC_POLL_WAKES;
}

const struct fabric_ops fabric_sim_ops = {
    .name = "sim",
    .open = sim_open,
    .close = sim_close,
    .now = sim_fabric_now,
    .endpoint_create = sim_endpoint_create,
    .endpoint_destroy = sim_endpoint_destroy,
    .endpoint_info = sim_endpoint_info,
    .endpoint_connect = sim_endpoint_connect,
    .slot_bind = sim_slot_bind,
    .slot_unbind = sim_slot_unbind,
    .slots_idle = sim_slots_idle,
    .post_writes = sim_post_writes,
    .poll = sim_poll,
    .arrived = sim_arrived,
    .long_control = true,
    .takes_pieces = sim_takes_pieces,
    .control_send = sim_control_send,
    .control_poll = sim_control_poll,
    .poll_fds = sim_poll_fds,
    .pump = sim_pump,
};

int sim_world_open(const char *name, uint32_t hosts, uint64_t seed, const struct lh_link_spec *link,
                   struct sim_world **world)
{
    int result = lh_fabric_register(&fabric_sim_ops, FABRIC_INTERFACE_VERSION, sizeof fabric_sim_ops);
    return result != 0 ? result : sim_world_make(name, hosts, seed, link, world);
}

struct sim_world *sim_world_create(const char *name, uint64_t seed, const struct lh_link_spec *link)
{
    struct sim_world *world = NULL;
    return sim_world_open(name, SIM_HOSTS_FEW, seed, link, &world) == 0 ? world : NULL;
}
