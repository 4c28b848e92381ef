/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/rx_check.h"

#include <assert.h>

/* A bijection of 32 bits that spreads every input bit over all output bits (Wellons, "lowbias32"). */
static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    x ^= x >> 16;
    return x;
}

/* For one slot this is a bijection of the bind counter, so neighbouring bindings never share a key. */
static uint32_t binding_key(uint32_t salt, uint32_t slot, uint32_t binds)
{
    return mix(mix(mix(salt) ^ slot) + binds);
}

void rx_table_give_slots(struct rx_table *table, struct rx_slot *slots)
{
    assert(table->slots == NULL);
    for (uint32_t i = 0; i < table->attr.slots; i++)
        slots[i].binds = table->binds;
    table->slots = slots;
}

struct rx_slot *rx_table_take_slots(struct rx_table *table)
{
    struct rx_slot *slots = table->slots;
    for (uint32_t i = 0; slots != NULL && i < table->attr.slots; i++) {
        assert(!slots[i].open);
        if (slots[i].binds - table->binds < UINT32_MAX / 2) /* they wrap */
            table->binds = slots[i].binds;
    }
    table->slots = NULL;
    return slots;
}

void rx_table_bind(struct rx_table *table, uint32_t slot, const struct fabric_slot *what,
                   struct fabric_slot_key *key)
{
    assert(slot < table->attr.slots);
    assert(what->length_bytes <= table->attr.slot_bytes);
    assert(what->received != NULL);
    assert(what->base != NULL || what->length_bytes == 0);
    struct rx_slot *entry = &table->slots[slot];
    assert(!entry->open);
    entry->bound = *what;
    entry->binds++;
    entry->rkey = binding_key(table->key_salt, slot, entry->binds);
    entry->open = true;
    key->rkey = entry->rkey;
    key->base = (uint64_t)slot * table->attr.slot_bytes;
}

void rx_table_unbind(struct rx_table *table, uint32_t slot)
{
    assert(slot < table->attr.slots);
    table->slots[slot].open = false;
}

/* The VA and the immediate both give the place of a packet; they must agree, and it must lie in the
 * buffer. */
static enum rx_verdict check_place(const struct rx_table *table, const struct rx_slot *entry,
                                   const struct roce_packet *packet, uint32_t slot,
                                   struct immediate_fields fields)
{
    uint64_t offset = packet->va - (uint64_t)slot * table->attr.slot_bytes;
    /* An empty packet touches no memory: it carries an empty message, or a fragment of the user's immediate
     * that a short message has no other packet for. */
    if (packet->payload_bytes == 0)
        return fields.message == slot && offset == 0 &&
                       fields.packet < immediate_fragments(table->attr.split)
                   ? RX_TAKE
                   : RX_BAD_LENGTH;
    if (fields.message != slot || offset != (uint64_t)fields.packet * table->attr.mtu_bytes)
        return RX_BAD_RANGE;
    if (packet->payload_bytes > table->attr.mtu_bytes)
        return RX_BAD_LENGTH;
    /* A short packet is the last of its message, which may be shorter than the buffer: any end inside will
     * do. */
    if (offset > entry->bound.length_bytes || packet->payload_bytes > entry->bound.length_bytes - offset)
        return RX_BAD_RANGE;
    return RX_TAKE;
}

/* Whether the packet is for this use of the slot. */
static enum rx_verdict check_use(const struct rx_slot *entry, const struct roce_packet *packet,
                                 uint8_t generation)
{
    if (!entry->open || entry->bound.generation != generation)
        return RX_LATE;
    if (packet->rkey != entry->rkey)
        return RX_BAD_KEY;
    return RX_TAKE;
}

/* The slot of that piece; or NULL and why it is not taken. */
static const struct rx_slot *slot_of_piece(const struct rx_table *table, const struct roce_packet *packet,
                                           struct immediate_fields fields, struct packet_piece *piece,
                                           enum rx_verdict *verdict)
{
    *verdict = RX_BAD_RANGE;
    if (atomic_load_explicit(&table->partials, memory_order_acquire) == NULL ||
        !packet_piece_read(&table->attr, packet->va, fields.packet, packet->payload_bytes, piece) ||
        fields.message != piece->slot)
        return NULL;
    *verdict = RX_LATE;
    return table->slots == NULL ? NULL : &table->slots[piece->slot];
}

/* An address beyond all slots. */
static enum rx_verdict check_piece(const struct rx_table *table, const struct roce_packet *packet,
                                   uint32_t channel, uint8_t generation, uint8_t **place)
{
    const struct fabric_endpoint_attr *attr = &table->attr;
    struct immediate_fields fields = immediate_part(attr->split, packet->immediate);
    struct packet_piece piece;
    enum rx_verdict verdict;
    const struct rx_slot *entry = slot_of_piece(table, packet, fields, &piece, &verdict);
    if (entry == NULL)
        return verdict;
    verdict = check_use(entry, packet, generation);
    if (verdict != RX_TAKE)
        return verdict;
    if (piece.offset + packet->payload_bytes > entry->bound.length_bytes)
        return RX_BAD_RANGE;
    if (fabric_channel_of(fields.packet, attr->stripe_packets, attr->channels) != channel)
        return RX_BAD_CHANNEL;
    uint64_t end = piece.offset + packet->payload_bytes;
    bool is_last = piece.end_bytes != 0 || end % attr->mtu_bytes == 0;
    uint64_t word = atomic_load_explicit(&entry->bound.received[fields.packet / 64], memory_order_relaxed);
    if ((word >> (fields.packet % 64)) & 1)
        return is_last ? RX_DUPLICATE : RX_DUPLICATE_PIECE;
    *place = entry->bound.base + piece.offset;
    return RX_PIECE;
}

uint32_t rx_on_piece(struct rx_table *table, const struct roce_packet *packet, uint32_t channel)
{
    struct packet_partial *partials = atomic_load_explicit(&table->partials, memory_order_acquire);
    struct immediate_fields fields = immediate_part(table->attr.split, packet->immediate);
    struct packet_piece piece;
    bool is_piece =
        packet_piece_read(&table->attr, packet->va, fields.packet, packet->payload_bytes, &piece);
    assert(is_piece && partials != NULL && channel < table->attr.channels);
    (void)is_piece;
    fabric_count(table->attr.stats, rx_pieces, 1);
    return packet_piece_add(partials + (size_t)channel * PACKET_PARTIALS, &piece, table->attr.mtu_bytes,
                            packet->rkey, fields.packet, packet->payload_bytes);
}

size_t rx_partials_bytes(const struct rx_table *table)
{
    return (size_t)table->attr.channels * PACKET_PARTIALS * sizeof(struct packet_partial);
}

enum rx_verdict rx_check(const struct rx_table *table, const struct roce_packet *packet, uint32_t channel,
                         uint8_t generation, uint8_t **place)
{
    const struct fabric_endpoint_attr *attr = &table->attr;
    uint64_t slot = packet->va / attr->slot_bytes;
    if (slot >= attr->slots)
        return check_piece(table, packet, channel, generation, place);
    if (table->slots == NULL)
        return RX_LATE;
    const struct rx_slot *entry = &table->slots[slot];
    enum rx_verdict verdict = check_use(entry, packet, generation);
    if (verdict != RX_TAKE)
        return verdict;
    struct immediate_fields fields = immediate_part(attr->split, packet->immediate);
    verdict = check_place(table, entry, packet, (uint32_t)slot, fields);
    if (verdict != RX_TAKE)
        return verdict;
    if (fabric_channel_of(fields.packet, attr->stripe_packets, attr->channels) != channel)
        return RX_BAD_CHANNEL;
    if (packet->payload_bytes == 0) {
        *place = entry->bound.base;
        return RX_TAKE;
    }
    uint64_t word = atomic_load_explicit(&entry->bound.received[fields.packet / 64], memory_order_relaxed);
    if ((word >> (fields.packet % 64)) & 1)
        return RX_DUPLICATE;
    *place = entry->bound.base + (uint64_t)fields.packet * attr->mtu_bytes;
    return RX_TAKE;
}

void rx_count(struct lh_stats *stats, enum rx_verdict verdict)
{
    switch (verdict) {
    case RX_TAKE:
    case RX_PIECE:
    case RX_DUPLICATE_PIECE:
    case RX_DUPLICATE: /* the SDR layer counts those, it owns the bitmap */
        break;
    case RX_LATE:
        fabric_count(stats, rx_late_packets, 1);
        break;
    case RX_BAD_KEY:
        fabric_count(stats, bad_key, 1);
        break;
    case RX_BAD_RANGE:
        fabric_count(stats, bad_range, 1);
        break;
    case RX_BAD_LENGTH:
        fabric_count(stats, bad_length, 1);
        break;
    case RX_BAD_CHANNEL:
        fabric_count(stats, bad_channel, 1);
        break;
    }
}
