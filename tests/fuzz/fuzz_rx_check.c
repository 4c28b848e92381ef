/*
 * fuzz_rx_check.c - any data packet against any table: what is taken lies whole in the open buffer that it
 * names.
 *
 * Input: a sequence of steps, each one operation byte and what it needs. Half of the packets get the right
 * key, or nothing would ever pass that check. Bit 2 of the first byte: packets are twice as long, and may
 * come in pieces.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/rx_check.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"

#define SLOTS      4u
#define MTU        256u /* or, with pieces, twice that */
#define SLOT_BYTES (64u * MTU)
#define CHANNELS   3u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t memory[SLOTS][SLOT_BYTES];

struct world {
    struct rx_slot slots[SLOTS];
    struct rx_table table;
    struct lh_stats stats;
    _Atomic uint64_t received[SLOTS][1];
};

static struct packet_partial partials[CHANNELS * PACKET_PARTIALS];

/* A piece is in its buffer, and makes a packet at most once. */
static void place_piece(struct world *w, const struct roce_packet *packet, uint32_t channel,
                        const uint8_t *place)
{
    uint32_t slot = (uint32_t)(packet->va / SLOT_BYTES % SLOTS), mtu = w->table.attr.mtu_bytes;
    struct immediate_fields fields = immediate_part(w->table.attr.split, packet->immediate);
    const struct rx_slot *entry = &w->slots[slot];
    assert(mtu > MTU && entry->open && entry->rkey == packet->rkey && fields.message == slot);
    assert(place >= memory[slot] + (size_t)fields.packet * mtu && packet->payload_bytes <= mtu / 2);
    assert(place + packet->payload_bytes <= memory[slot] + entry->bound.length_bytes);
    assert((w->received[slot][0] >> fields.packet & 1) == 0);
    uint32_t bytes = rx_on_piece(&w->table, packet, channel);
    assert(bytes <= mtu);
    if (bytes > 0)
        atomic_fetch_or(&w->received[slot][0], (uint64_t)1 << fields.packet);
}

static void bind(struct world *w, uint32_t slot, uint32_t bytes, uint8_t generation)
{
    struct fabric_slot_key key;
    struct fabric_slot what = {
        .base = memory[slot],
        .length_bytes = bytes % (SLOT_BYTES + 1),
        .generation = generation,
        .received = w->received[slot],
    };
    if (w->slots[slot].open)
        rx_table_unbind(&w->table, slot);
    atomic_store(&w->received[slot][0], 0);
    rx_table_bind(&w->table, slot, &what, &key);
}

static void evaluate(struct world *w, const uint8_t header[32], uint32_t bytes, uint8_t how)
{
    struct roce_packet packet;
    if (roce_decode(header, bytes, &packet) != ROCE_OK || packet.opcode != ROCE_UC_WRITE_ONLY_IMM)
        return;
    uint64_t slot = packet.va / SLOT_BYTES;
    if (how % 2 != 0)
        packet.rkey = w->slots[slot % SLOTS].rkey;
    uint32_t channel = how / 2 % CHANNELS;
    uint8_t generation = how / 8 % 4;
    uint8_t *place = NULL;
    enum rx_verdict verdict = rx_check(&w->table, &packet, channel, generation, &place);
    rx_count(&w->stats, verdict);
    if (verdict == RX_PIECE) {
        place_piece(w, &packet, channel, place);
        return;
    }
    if (verdict != RX_TAKE) {
        assert(place == NULL);
        return;
    }
    const struct rx_slot *entry = &w->slots[slot];
    struct immediate_fields fields = immediate_part(w->table.attr.split, packet.immediate);
    assert(slot < SLOTS && entry->open && entry->bound.generation == generation &&
           entry->rkey == packet.rkey);
    assert(fields.message == slot);
    assert(fabric_channel_of(fields.packet, 16, CHANNELS) == channel);
    if (packet.payload_bytes == 0) /* touches nothing, so it may come again */
        return;
    assert(place == memory[slot] + packet.va % SLOT_BYTES);
    assert(place + packet.payload_bytes <= memory[slot] + entry->bound.length_bytes);
    atomic_fetch_or(&w->received[slot][0], (uint64_t)1 << fields.packet);
    assert(rx_check(&w->table, &packet, channel, generation, &place) == RX_DUPLICATE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w;
    memset(&w, 0, sizeof w);
    w.table.slots = w.slots;
    w.table.attr = (struct fabric_endpoint_attr){
        .channels = CHANNELS,
        .generations = 4,
        .mtu_bytes = MTU,
        .slots = SLOTS,
        .slot_bytes = SLOT_BYTES,
        .stripe_packets = 16,
        .split = IMMEDIATE_SPLIT_10_18_4,
        .stats = &w.stats,
    };
    if (size > 0 && (data[0] & 4) != 0) {
        w.table.attr.mtu_bytes = 2 * MTU;
        memset(partials, 0, sizeof partials);
        atomic_store(&w.table.partials, partials);
    }
    while (size >= 4) { /* each round takes four bytes or more */
        uint8_t how = data[1];
        uint32_t number = lh_get_be16(data + 2);
        bool is_packet = data[0] % 4 >= 2;
        if (data[0] % 4 == 0)
            bind(&w, how % SLOTS, number, how / 4 % 4);
        else if (data[0] % 4 == 1)
            rx_table_unbind(&w.table, how % SLOTS);
        data += 4;
        size -= 4;
        if (!is_packet)
            continue;
        if (size < ROCE_WRITE_IMM_HEADER_BYTES)
            break;
        evaluate(&w, data, number, how);
        data += ROCE_WRITE_IMM_HEADER_BYTES;
        size -= ROCE_WRITE_IMM_HEADER_BYTES;
    }
    return 0;
}
