/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/fabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "fabric/rx_check.h"

#define SLOTS      4u
#define MTU        4096u
#define SLOT_BYTES ((uint64_t)40 * MTU)
#define PACKETS    20u
#define SHORT      1777u /* the last packet of the buffer */
#define BYTES      ((PACKETS - 1) * MTU + SHORT)
#define CHANNELS   2u

/* The receiving half of an endpoint, and what its sender knows. */
static struct rx_slot slots[SLOTS];
static struct rx_table table;
static struct packet_partial partials[CHANNELS * PACKET_PARTIALS];
static struct lh_stats stats;
static _Atomic uint64_t received[1];
static struct fabric_slot_key key;
static uint8_t sent[BYTES], buffer[BYTES];
static const struct packet_receiver receiver = {SLOTS * SLOT_BYTES, MTU};

static void bind_slot(void)
{
    const struct fabric_slot what = {
        .base = buffer, .length_bytes = BYTES, .generation = 1, .received = received};
    received[0] = 0;
    rx_table_bind(&table, 2, &what, &key);
}

static int begin(void **state)
{
    struct lh_prng prng;
    (void)state;
    memset(slots, 0, sizeof slots);
    memset(partials, 0, sizeof partials);
    memset(buffer, 0xEE, sizeof buffer);
    stats = (struct lh_stats){0};
    table = (struct rx_table){.slots = slots,
                              .attr = {.channels = CHANNELS,
                                       .generations = 4,
                                       .mtu_bytes = MTU,
                                       .slots = SLOTS,
                                       .slot_bytes = SLOT_BYTES,
                                       .stripe_packets = 4,
                                       .split = IMMEDIATE_SPLIT_10_18_4,
                                       .stats = &stats},
                              .key_salt = 77};
    atomic_store(&table.partials, partials);
    lh_prng_seed(&prng, 3);
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (uint8_t)lh_prng_next(&prng);
    bind_slot();
    return 0;
}

static uint32_t channel_of(uint32_t packet)
{
    return fabric_channel_of(packet, table.attr.stripe_packets, CHANNELS);
}

static struct fabric_write write_of(uint32_t packet)
{
    const struct immediate_fields fields = {2, packet, 5};
    return (struct fabric_write){.payload = sent + (size_t)packet * MTU,
                                 .bytes = packet == PACKETS - 1 ? SHORT : MTU,
                                 .va = key.base + (uint64_t)packet * MTU,
                                 .rkey = key.rkey,
                                 .immediate = immediate_join(table.attr.split, fields),
                                 .generation = 1};
}

static struct roce_packet packet_of(const struct fabric_write *write)
{
    return (struct roce_packet){.opcode = ROCE_UC_WRITE_ONLY_IMM,
                                .va = write->va,
                                .rkey = write->rkey,
                                .immediate = write->immediate,
                                .payload = write->payload,
                                .payload_bytes = write->bytes};
}

/* As a fabric does it: the bytes of the packet that arrived, 0: none did. */
static uint32_t arrive(const struct fabric_write *write)
{
    struct roce_packet packet = packet_of(write);
    uint32_t index = immediate_part(table.attr.split, write->immediate).packet;
    uint32_t channel = channel_of(index), bytes = write->bytes;
    uint8_t *place = NULL;
    enum rx_verdict verdict = rx_check(&table, &packet, channel, 1, &place);
    if (verdict > RX_PIECE)
        return 0;
    memcpy(place, write->payload, write->bytes);
    uint64_t before = table.attr.stats->rx_pieces;
    if (verdict == RX_PIECE)
        bytes = rx_on_piece(&table, &packet, channel);
    assert_int_equal(table.attr.stats->rx_pieces, before + (verdict == RX_PIECE));
    if (bytes > 0)
        received[0] |= (uint64_t)1 << index;
    return bytes;
}

static enum rx_verdict verdict_of(const struct roce_packet *packet, uint32_t channel, uint8_t generation)
{
    uint8_t *place = NULL;
    return rx_check(&table, packet, channel, generation, &place);
}

static void test_lengths(void **state)
{
    (void)state;
    static const uint32_t mtus[] = {64, 256, 512, 1024, 2048, 4096, 3000, 1408, 8896};
    static const uint32_t lengths[] = {1, 1, 2, 3, 4, 4, 1, 3, 4};
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(packet_lengths(mtus[i]), lengths[i]);
}

/* All lengths, in order: each packet is there with its last piece, and as long as it was. */
static void test_each_length(void **state)
{
    for (uint32_t pieces = 2; pieces <= PACKET_PIECES_MAX; pieces *= 2) {
        begin(state);
        for (uint32_t packet = 0; packet < PACKETS; packet++) {
            struct fabric_write out[PACKET_PIECES_MAX], write = write_of(packet);
            uint32_t count = packet_cut(&receiver, &write, pieces, out);
            uint32_t length = MTU / pieces;
            assert_int_equal(count, (write.bytes + length - 1) / length);
            for (uint32_t i = 0; i < count; i++) {
                assert_true(out[i].bytes <= length);
                assert_int_equal(arrive(&out[i]), i + 1 < count ? 0 : write.bytes);
            }
        }
        assert_memory_equal(buffer, sent, BYTES);
    }
}

/* The path changed in between: any lengths, any order, twice, and whole ones among them. */
static void test_mixed_lengths(void **state)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, 9);
    for (uint32_t run = 0; run < 300; run++) {
        begin(state);
        for (uint32_t left = PACKETS; left > 0;) {
            uint32_t packet = (uint32_t)lh_prng_below(&prng, PACKETS);
            struct fabric_write out[PACKET_PIECES_MAX], write = write_of(packet);
            bool was_there = received[0] >> packet & 1;
            uint32_t count = packet_cut(&receiver, &write, 2u << lh_prng_below(&prng, 3), out);
            const struct fabric_write *one = &out[lh_prng_below(&prng, count)];
            uint32_t got = arrive(lh_prng_below(&prng, 50) == 0 ? &write : one);
            assert_true(got == 0 || (!was_there && got == write.bytes));
            left -= got > 0;
        }
        assert_memory_equal(buffer, sent, BYTES);
    }
}

/* Of what has arrived whole, one piece is reported as a duplicate. */
static void test_duplicates(void **state)
{
    (void)state;
    static const uint32_t packets[] = {0, PACKETS - 1};
    for (uint32_t n = 0; n < 2; n++) {
        struct fabric_write out[PACKET_PIECES_MAX], write = write_of(packets[n]);
        arrive(&write);
        uint32_t count = packet_cut(&receiver, &write, 4, out);
        for (uint32_t i = 0; i < count; i++) {
            struct roce_packet packet = packet_of(&out[i]);
            assert_int_equal(verdict_of(&packet, channel_of(packets[n]), 1),
                             i + 1 < count ? RX_DUPLICATE_PIECE : RX_DUPLICATE);
        }
    }
}

/* Pieces of one binding never complete a packet of the next one, though it is of the same generation. */
static void test_a_slot_in_use_again(void **state)
{
    (void)state;
    struct fabric_write old[PACKET_PIECES_MAX], fresh[PACKET_PIECES_MAX], write = write_of(3);
    packet_cut(&receiver, &write, 2, old);
    assert_int_equal(arrive(&old[0]), 0);
    rx_table_unbind(&table, 2);
    struct roce_packet late = packet_of(&old[1]);
    assert_int_equal(verdict_of(&late, channel_of(3), 1), RX_LATE);
    bind_slot();
    assert_int_equal(verdict_of(&late, channel_of(3), 1), RX_BAD_KEY);
    write = write_of(3);
    packet_cut(&receiver, &write, 2, fresh);
    assert_int_equal(arrive(&fresh[1]), 0);
    assert_int_equal(arrive(&fresh[0]), MTU);
}

/* More packets begun than there are places: those that were forgotten come whole the next time. */
static void test_places_are_bounded(void **state)
{
    (void)state;
    static struct packet_partial few[PACKET_PARTIALS];
    struct packet_piece piece = {.slot = 1};
    for (uint32_t packet = 0; packet < 3 * PACKET_PARTIALS; packet++)
        assert_int_equal(packet_piece_add(few, &piece, MTU, 5, packet, MTU / 2), 0);
    piece.first = 4;
    for (uint32_t packet = 0; packet < 3 * PACKET_PARTIALS; packet++)
        assert_int_equal(packet_piece_add(few, &piece, MTU, 5, packet, MTU / 2), 0);
    piece.first = 0;
    for (uint32_t packet = 2 * PACKET_PARTIALS; packet < 3 * PACKET_PARTIALS; packet++)
        assert_int_equal(packet_piece_add(few, &piece, MTU, 5, packet, MTU / 2), MTU);
}

/* An address that no piece has: nothing is placed, and it is counted by its name. */
static void test_hostile_addresses(void **state)
{
    (void)state;
    const uint64_t extent = SLOTS * SLOT_BYTES;
    struct fabric_write out[PACKET_PIECES_MAX], write = write_of(3), last = write_of(PACKETS - 1);
    packet_cut(&receiver, &write, 4, out);
    const struct roce_packet right = packet_of(&out[1]);
    struct roce_packet bad = right;
    assert_int_equal(verdict_of(&right, channel_of(3), 1), RX_PIECE);
    const uint64_t vas[] = {right.va + 1,          right.va + MTU, right.va - MTU,
                            right.va + 7 * extent, UINT64_MAX,     right.va + SLOT_BYTES,
                            right.va - 2 * extent};
    for (uint32_t i = 0; i < 7; i++) {
        bad.va = vas[i];
        assert_int_not_equal(verdict_of(&bad, channel_of(3), 1), RX_PIECE);
        assert_int_not_equal(verdict_of(&bad, channel_of(3), 1), RX_TAKE);
    }
    static const uint32_t lengths[] = {0, 1, MTU / 4 - 1, MTU / 4 + 1, MTU};
    for (uint32_t i = 0; i < 5; i++) {
        bad = right;
        bad.payload_bytes = lengths[i];
        assert_int_equal(verdict_of(&bad, channel_of(3), 1), RX_BAD_RANGE);
    }
    bad = right;
    bad.va +=
        3 * extent; /* a last piece, as long as all: of a packet that ends there, but not at the MTU */
    assert_int_equal(verdict_of(&bad, channel_of(3), 1), RX_PIECE);
    bad = packet_of(&out[3]);
    bad.va += 3 * extent;
    assert_int_equal(verdict_of(&bad, channel_of(3), 1), RX_BAD_RANGE);
    assert_int_equal(verdict_of(&right, channel_of(3) ^ 1, 1), RX_BAD_CHANNEL);
    assert_int_equal(verdict_of(&right, channel_of(3), 2), RX_LATE);
    bad = right;
    bad.rkey ^= 1;
    assert_int_equal(verdict_of(&bad, channel_of(3), 1), RX_BAD_KEY);
    /* Beyond the buffer, though within the slot. */
    last.bytes = MTU;
    packet_cut(&receiver, &last, 2, out);
    bad = packet_of(&out[0]);
    assert_int_equal(verdict_of(&bad, channel_of(PACKETS - 1), 1), RX_BAD_RANGE);
    /* Nobody asked for pieces. */
    atomic_store(&table.partials, NULL);
    assert_int_equal(verdict_of(&right, channel_of(3), 1), RX_BAD_RANGE);
}

#define PIECES_TEST(function) cmocka_unit_test_setup(function, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PIECES_TEST(test_lengths),
        PIECES_TEST(test_each_length),
        PIECES_TEST(test_mixed_lengths),
        PIECES_TEST(test_duplicates),
        PIECES_TEST(test_a_slot_in_use_again),
        PIECES_TEST(test_places_are_bounded),
        PIECES_TEST(test_hostile_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
