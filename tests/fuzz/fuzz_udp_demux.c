/*
 * fuzz_udp_demux.c - any packet from anywhere on a socket that three endpoints share, one of which has a
 * direct socket beside it, and one is encrypted: what arrives at an endpoint came from its peer, for it, and
 * no other byte of its buffer changes. What the encrypted one's peer seals may be anything, too.
 *
 * Input: a sequence of steps, each four bytes and a packet. The bytes say where the packet comes from, and
 * which fields are put right before, or nearly nothing would pass: queue pair, key, place, iCRC.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/udp_parts.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "fuzz_input.h"

#define MTU         256u
#define PACKETS     8u
#define PACKET_MAX  400u
#define PEER_PORT   50000u
#define GENERATIONS 2u
#define ENDS        3u
#define SEALED      2u /* the encrypted one */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct end {
    struct fabric_endpoint *endpoint;
    struct qp_info_endpoint info;
    struct lh_stats stats;
    struct fabric_slot_key key;
    _Atomic uint64_t received[1];
    uint8_t buffer[PACKETS * MTU];
};

static struct fabric *fabric;
static struct end ends[ENDS];
static struct udp_keys *peer_keys; /* of the encrypted one's peer */

/* Nobody is at the other end; only its address and numbers matter. */
static void open_end(struct end *end, uint16_t port, bool sealed)
{
    struct fabric_secret secret = {.bytes = "of both"};
    const struct fabric_endpoint_attr attr = {
        .channels = 1,
        .generations = GENERATIONS,
        .mtu_bytes = MTU,
        .slots = 2,
        .slot_bytes = sizeof end->buffer,
        .stripe_packets = 16,
        .split = IMMEDIATE_SPLIT_10_18_4,
        .stats = &end->stats,
    };
    int error = fabric->ops->endpoint_create(fabric, &attr, &end->endpoint);
    assert(error == 0);
    fabric->ops->endpoint_info(end->endpoint, &end->info);
    if (sealed) {
        error = fabric->ops->secure(end->endpoint, &secret);
        assert(error == 0);
        secret.connecting = true;
        error = udp_keys_create(NULL, 1, &secret, &peer_keys);
        assert(error == 0);
    }
    struct qp_info_endpoint peer = end->info;
    peer.channel_port[0] = port;
    error = fabric->ops->endpoint_connect(end->endpoint, &peer);
    assert(error == 0);
    ((struct udp_fabric *)fabric)->ports[0]->slots_max = 1;
}

static void open_all(void)
{
    const struct fabric_attr attr = {.address = "127.0.0.1"};
    int error = fabric_udp_ops.open(&attr, &fabric);
    assert(error == 0);
    for (uint32_t i = 0; i < ENDS; i++)
        open_end(&ends[i], (uint16_t)(PEER_PORT + i), i == SEALED);
}

static void bind_all(void)
{
    for (uint32_t i = 0; i < ENDS; i++) {
        struct end *end = &ends[i];
        const struct fabric_slot what = {
            .base = end->buffer, .length_bytes = sizeof end->buffer, .received = end->received};
        memset(end->buffer, 0, sizeof end->buffer);
        atomic_store(&end->received[0], 0);
        int error = fabric->ops->slot_bind(end->endpoint, 0, &what, &end->key);
        assert(error == 0);
    }
}

static struct udp_channel *channel_of(const struct end *end)
{
    return ((struct udp_endpoint *)end->endpoint)->channels[0];
}

/* Puts right what `how` says, as for end number `to`. */
static void mend(uint8_t *packet, uint32_t bytes, const struct end *to, uint32_t how)
{
    if (bytes < ROCE_WRITE_IMM_HEADER_BYTES + ROCE_ICRC_BYTES)
        return;
    uint32_t payload = bytes - ROCE_WRITE_IMM_HEADER_BYTES - ROCE_ICRC_BYTES;
    if (how & 1) {
        packet[0] = ROCE_UC_WRITE_ONLY_IMM;
        packet[1] = 0x40;
        memset(packet + 2, 0xFF, 2);
        packet[4] = 0;
        lh_put_be32(packet + 24, payload);
    }
    if (how & 2)
        lh_put_be32(packet + 4, to->info.qpn[how >> 7 & 1][0]);
    if (how & 4)
        lh_put_be32(packet + 20, to->key.rkey);
    if (how & 8) {
        uint32_t number = packet[31] % PACKETS;
        lh_put_be64(packet + 12, (uint64_t)number * MTU);
        lh_put_be32(packet + 28, immediate_join(IMMEDIATE_SPLIT_10_18_4,
                                                (struct immediate_fields){0, number, number & 15}));
    }
    if (how & 16) {
        uint32_t state = icrc_begin(&channel_of(to)->rx.flow, bytes, 0, true);
        icrc_store(icrc_add_header(state, packet, bytes - ROCE_ICRC_BYTES),
                   packet + bytes - ROCE_ICRC_BYTES);
    }
}

/* As the peer would: with its key, for that queue pair. Returns the bytes; the iCRC is left out. */
static uint32_t seal(uint8_t *packet, uint32_t bytes, uint32_t qpn)
{
    uint8_t plain[PACKET_MAX];
    struct udp_tx_key *tx = &peer_keys->channel[0].tx;
    if (bytes <= ROCE_ICRC_BYTES || !udp_keys_may_seal(peer_keys, tx))
        return bytes;
    memcpy(plain, packet, bytes);
    const struct seal_text text = {.head = plain, .head_bytes = bytes - ROCE_ICRC_BYTES};
    return udp_keys_seal(tx, qpn, &text, packet);
}

/* What arrives was sent by the peer, to this end; all places without a bit are as they were. */
static void check(struct end *end, bool from_peer)
{
    struct fabric_arrival arrivals[FABRIC_BATCH_MAX];
    int got = fabric->ops->poll(end->endpoint, 0, arrivals, FABRIC_BATCH_MAX);
    assert(got == 0 || (got == 1 && from_peer));
    if (got == 1) {
        struct immediate_fields fields = immediate_part(IMMEDIATE_SPLIT_10_18_4, arrivals[0].immediate);
        assert(fields.message == 0 && fields.packet < PACKETS);
        atomic_fetch_or(&end->received[0], (uint64_t)1 << fields.packet);
    }
    for (uint32_t p = 0; p < PACKETS; p++)
        for (uint32_t i = 0; i < MTU && (end->received[0] >> p & 1) == 0; i++)
            assert(end->buffer[p * MTU + i] == 0);
}

static void step(struct input *input)
{
    uint8_t packet[PACKET_MAX + SEAL_BYTES];
    uint32_t bytes = take32(input) % PACKET_MAX;
    uint32_t source = take8(input), how = take8(input), to = take8(input) % ENDS,
             reader = take8(input) % ENDS;
    for (uint32_t i = 0; i < bytes; i++)
        packet[i] = take8(input);
    mend(packet, bytes, &ends[to], how);
    bool sealed = how & 32;
    if (sealed)
        bytes = seal(packet, bytes, ends[to].info.qpn[how >> 7 & 1][0]);
    if (sealed && how & 64)
        packet[bytes / 2] ^= 4;
    union udp_address from = ((struct udp_endpoint *)ends[0].endpoint)->peer_address;
    udp_address_set_port(&from, (uint16_t)(PEER_PORT + source % (ENDS + 1)));
    if (source % 16 == 3)
        from.v4.sin_addr.s_addr ^= htonl(4);
    const struct udp_part part = {
        .from = &from, .data = packet, .bytes = bytes, .place = source >> 4, .marked = source % 5 == 0};
    udp_demux_forward(channel_of(&ends[reader]), &part);
    for (uint32_t i = 0; i < ENDS; i++)
        check(&ends[i], source % 16 != 3 && source % (ENDS + 1) == i &&
                            (i != SEALED ? !sealed : sealed && (how & 64) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    if (fabric == NULL)
        open_all();
    bind_all();
    while (input.left >= 8) /* each round takes eight bytes or more */
        step(&input);
    for (uint32_t i = 0; i < ENDS; i++)
        fabric->ops->slot_unbind(ends[i].endpoint, 0);
    return 0;
}
