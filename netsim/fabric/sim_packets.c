/* SPDX-License-Identifier: BSD-3-Clause */
#include "netsim/fabric/sim_packets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <longhaul/link.h>

#include "wire/roce_packet.h"

/* ---- address --------------------------------------------------------------------------------------- */

void sim_address_of(uint32_t host, uint8_t address[16])
{
    assert(host < SIM_HOSTS_MAX);
    memset(address, 0, 16);
    address[0] = 0xFD; /* unique local (RFC 4193) */
    address[1] = 0x77;
    address[15] = (uint8_t)host;
}

uint32_t sim_host_of(const uint8_t address[16])
{
    uint8_t expected[16];
    if (address[15] >= SIM_HOSTS_MAX)
        return SIM_HOSTS_MAX;
    sim_address_of(address[15], expected);
    return memcmp(address, expected, sizeof(expected)) == 0 ? address[15] : SIM_HOSTS_MAX;
}

/* What enters the iCRC of such a datagram. */
static struct icrc_flow sim_datagram_flow(const struct sim_datagram *datagram)
{
    struct icrc_flow flow = {
        .source_port = datagram->source_port,
        .destination_port = datagram->destination_port,
    };
    sim_address_of(datagram->from, flow.source);
    sim_address_of(datagram->to, flow.destination);
    return flow;
}

void sim_datagram_seal(struct sim_datagram *datagram)
{
    assert(datagram->bytes >= ROCE_BTH_BYTES + ROCE_ICRC_BYTES && datagram->bytes <= SIM_DATAGRAM_MAX);
    struct icrc_flow flow = sim_datagram_flow(datagram);
    uint32_t covered = datagram->bytes - ROCE_ICRC_BYTES;
    uint32_t state = icrc_begin(&flow, datagram->bytes, 0, false);
    icrc_store(icrc_add_header(state, datagram->data, covered), datagram->data + covered);
}

/* ---- packet pool ----------------------------------------------------------------------------------- */

/* The first is small: most simulated worlds are, and live for milliseconds. */
#define SIM_FIRST_PACKETS 32u

#define BITS_PER_BYTE 8u

static bool add_slab(struct packet_pool *pool)
{
    if (pool->slabs_count == (pool->is_small ? 1 : SIM_SLABS_MAX))
        return false;
    bool small = pool->slabs_count == 0;
    size_t packets = small ? SIM_FIRST_PACKETS : SIM_SLAB_PACKETS;
    struct sim_packet *slab = small ? aligned_alloc(_Alignof(struct sim_packet), packets * sizeof(*slab))
                                    : aligned_alloc(SIM_SLAB_BYTES, SIM_SLAB_BYTES);
    if (slab == NULL)
        return false;
    /* Only for speed, so it may fail: a fast link over an ocean keeps hundreds of MiB on the way. */
    if (!small)
        (void)madvise(slab, SIM_SLAB_BYTES, MADV_HUGEPAGE);
    pool->slabs[pool->slabs_count++] = slab;
    for (size_t i = packets; i > 0; i--)
        packet_pool_put(pool, &slab[i - 1]);
    return true;
}

struct sim_packet *packet_pool_get(struct packet_pool *pool)
{
    if (pool->free == NULL && !add_slab(pool))
        return NULL;
    struct sim_packet *packet = pool->free;
    pool->free = packet->next;
    packet->next = NULL;
    return packet;
}

void packet_pool_put(struct packet_pool *pool, struct sim_packet *packet)
{
    assert(packet != NULL);
    packet->next = pool->free;
    pool->free = packet;
}

void packet_pool_clear(struct packet_pool *pool)
{
    for (uint32_t i = 0; i < pool->slabs_count; i++)
        free(pool->slabs[i]);
    memset(pool, 0, sizeof(*pool));
}

struct sim_datagram sim_packet_view(struct sim_packet *packet, lh_time at_ns)
{
    return (struct sim_datagram){
        .at_ns = at_ns,
        .data = packet->data,
        .bytes = packet->bytes,
        .source_port = packet->source_port,
        .destination_port = packet->destination_port,
        .from = packet->from,
        .to = packet->to,
    };
}

void sim_packet_flip(struct sim_packet *packet, uint32_t bit)
{
    if (packet->bytes == 0)
        return;
    bit %= packet->bytes * BITS_PER_BYTE;
    packet->data[bit / BITS_PER_BYTE] ^= (uint8_t)(1u << bit % BITS_PER_BYTE);
}

bool sim_queue_push(struct sim_queue *queue, struct sim_packet *packet)
{
    if (queue->first != NULL && queue->bytes + packet->bytes > queue->bytes_max)
        return false;
    packet->next = NULL;
    if (queue->first == NULL)
        queue->first = packet;
    else
        queue->last->next = packet;
    queue->last = packet;
    queue->bytes += packet->bytes;
    return true;
}

struct sim_packet *sim_queue_pop(struct sim_queue *queue)
{
    struct sim_packet *packet = queue->first;
    if (packet == NULL)
        return NULL;
    assert(queue->bytes >= packet->bytes);
    queue->first = packet->next;
    queue->bytes -= packet->bytes;
    packet->next = NULL;
    return packet;
}

/* ---- checksum -------------------------------------------------------------------------------------- */

void sim_checksum_init(struct sim_checksum *checksum, uint32_t from, uint16_t source_port, uint32_t to,
                       uint16_t destination_port)
{
    const struct sim_datagram datagram = {
        .from = (uint8_t)from,
        .to = (uint8_t)to,
        .source_port = source_port,
        .destination_port = destination_port,
    };
    *checksum = (struct sim_checksum){.flow = sim_datagram_flow(&datagram)};
}

static uint32_t state_of(struct sim_checksum *checksum, const struct sim_packet *packet)
{
    assert(packet->bytes >= ROCE_BTH_BYTES + ROCE_ICRC_BYTES);
    if (checksum->bytes != packet->bytes) {
        checksum->state = icrc_begin(&checksum->flow, packet->bytes, 0, false);
        checksum->bytes = packet->bytes;
    }
    return icrc_add_header(checksum->state, packet->data, packet->bytes - ROCE_ICRC_BYTES);
}

void sim_checksum_seal(struct sim_checksum *checksum, struct sim_packet *packet)
{
    icrc_store(state_of(checksum, packet), packet->data + packet->bytes - ROCE_ICRC_BYTES);
}

bool sim_checksum_holds(struct sim_checksum *checksum, const struct sim_packet *packet)
{
    assert(packet->source_port == checksum->flow.source_port);
    assert(packet->destination_port == checksum->flow.destination_port);
    uint32_t found = icrc_finish(state_of(checksum, packet));
    return found == icrc_load(packet->data + packet->bytes - ROCE_ICRC_BYTES);
}
