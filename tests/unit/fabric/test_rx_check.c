/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/rx_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SLOTS      8u
#define MTU        1024u
#define SLOT_BYTES ((uint64_t)200 * MTU)
#define BYTES      (150 * MTU + 300) /* of the buffer in slot 3: packets 0 … 150 */
#define PACKETS    151u

struct fixture {
    struct rx_slot slots[SLOTS];
    struct rx_table table;
    struct lh_stats stats;
    _Atomic uint64_t received[4];
    struct fabric_slot_key key;
};

static uint8_t buffer[BYTES];

static void set_up(struct fixture *f, uint32_t channels)
{
    memset(f, 0, sizeof *f);
    f->table.slots = f->slots;
    f->table.key_salt = 0x12345678;
    f->table.attr = (struct fabric_endpoint_attr){
        .channels = channels,
        .generations = 4,
        .mtu_bytes = MTU,
        .slots = SLOTS,
        .slot_bytes = SLOT_BYTES,
        .stripe_packets = 16,
        .split = IMMEDIATE_SPLIT_10_18_4,
        .stats = &f->stats,
    };
    struct fabric_slot what = {
        .base = buffer, .length_bytes = BYTES, .generation = 2, .received = f->received};
    rx_table_bind(&f->table, 3, &what, &f->key);
}

/* A right packet for slot 3. */
static struct roce_packet right(const struct fixture *f, uint32_t packet)
{
    uint64_t offset = (uint64_t)packet * MTU;
    return (struct roce_packet){
        .opcode = ROCE_UC_WRITE_ONLY_IMM,
        .va = f->key.base + offset,
        .rkey = f->key.rkey,
        .immediate = immediate_join(f->table.attr.split, (struct immediate_fields){3, packet, packet % 16}),
        .payload_bytes = BYTES - offset < MTU ? (uint32_t)(BYTES - offset) : MTU,
    };
}

static enum rx_verdict evaluate(const struct fixture *f, const struct roce_packet *packet)
{
    uint8_t *place = NULL;
    enum rx_verdict verdict = rx_check(&f->table, packet, 0, 2, &place);
    /* Whatever is taken lies in the buffer, whole. */
    if (verdict == RX_TAKE) {
        assert_true(place >= buffer && place + packet->payload_bytes <= buffer + BYTES);
    } else {
        assert_null(place);
    }
    return verdict;
}

static void test_every_packet_has_its_place(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    assert_int_equal(f.key.base, 3 * SLOT_BYTES);
    for (uint32_t i = 0; i < PACKETS; i++) {
        struct roce_packet packet = right(&f, i);
        uint8_t *place;
        assert_int_equal(rx_check(&f.table, &packet, 0, 2, &place), RX_TAKE);
        assert_ptr_equal(place, buffer + (size_t)i * MTU);
        atomic_fetch_or(&f.received[i / 64], (uint64_t)1 << (i % 64));
        assert_int_equal(evaluate(&f, &packet), RX_DUPLICATE);
    }
}

static void test_slot_range(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    struct roce_packet packet = right(&f, 0);
    packet.va = SLOTS * SLOT_BYTES;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_RANGE);
    packet.va = UINT64_MAX;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_RANGE);
    packet.va = SLOTS * SLOT_BYTES - 1; /* in the last slot, which is closed */
    assert_int_equal(evaluate(&f, &packet), RX_LATE);
}

/* An endpoint without receives has no memory for slots. Keys go on where they were. */
static void test_slots_come_and_go(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    struct roce_packet packet = right(&f, 0);
    const struct fabric_slot what = f.slots[3].bound;
    uint32_t before = f.key.rkey;
    rx_table_unbind(&f.table, 3);
    assert_ptr_equal(rx_table_take_slots(&f.table), f.slots);
    assert_null(rx_table_take_slots(&f.table));
    assert_int_equal(evaluate(&f, &packet), RX_LATE);
    memset(f.slots, 0, sizeof f.slots);
    rx_table_give_slots(&f.table, f.slots);
    assert_int_equal(evaluate(&f, &packet), RX_LATE);
    rx_table_bind(&f.table, 3, &what, &f.key);
    assert_int_not_equal(f.key.rkey, before);
    assert_int_equal(evaluate(&f, &packet), RX_BAD_KEY);
    packet = right(&f, 0);
    assert_int_equal(evaluate(&f, &packet), RX_TAKE);
}

/* Lateness comes before the key, which comes before the place. */
static void test_late_and_key(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    struct roce_packet packet = right(&f, 5);
    uint8_t *place;
    assert_int_equal(rx_check(&f.table, &packet, 0, 1, &place), RX_LATE);
    packet.rkey ^= 0x80000000u;
    assert_int_equal(rx_check(&f.table, &packet, 0, 3, &place), RX_LATE);
    assert_int_equal(evaluate(&f, &packet), RX_BAD_KEY);
    packet.va += 1;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_KEY);
    rx_table_unbind(&f.table, 3);
    assert_int_equal(evaluate(&f, &packet), RX_LATE);
    packet = right(&f, 5);
    assert_int_equal(evaluate(&f, &packet), RX_LATE);
    rx_table_unbind(&f.table, 3); /* harmless */
}

static void test_place_must_agree(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    struct roce_packet packet = right(&f, 5);
    packet.va++;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_RANGE);
    packet.va += MTU - 1; /* packet 6 by its VA, 5 by its immediate */
    assert_int_equal(evaluate(&f, &packet), RX_BAD_RANGE);
    packet = right(&f, 5);
    packet.immediate += 1u << 22; /* message 4 */
    assert_int_equal(evaluate(&f, &packet), RX_BAD_RANGE);
    packet = right(&f, 150);
    packet.va += MTU; /* past the buffer, in the slot */
    packet.immediate += 1u << 4;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_RANGE);
}

static void test_lengths(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    struct roce_packet packet = right(&f, 149);
    packet.payload_bytes = MTU + 1;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_LENGTH);
    packet.payload_bytes = 1; /* the message ends here, before the buffer does */
    assert_int_equal(evaluate(&f, &packet), RX_TAKE);
    packet.payload_bytes = 0;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_LENGTH);
    packet = right(&f, 150);
    assert_int_equal(packet.payload_bytes, 300);
    packet.payload_bytes = 301;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_RANGE);
    packet.payload_bytes = MTU;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_RANGE);
}

/* An empty packet writes nothing. It may be any of those that carry a fragment of the user's immediate, and
 * come again. */
static void test_empty_packets(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    struct roce_packet packet = right(&f, 0);
    packet.payload_bytes = 0;
    atomic_store(&f.received[0], UINT64_MAX);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(evaluate(&f, &packet), RX_TAKE);
        packet.immediate += 1u << 4;
    }
    assert_int_equal(evaluate(&f, &packet), RX_BAD_LENGTH); /* there are 8 fragments of 4 bits */
    packet = right(&f, 1);
    packet.payload_bytes = 0;
    assert_int_equal(evaluate(&f, &packet), RX_BAD_LENGTH); /* its VA is not the message's */
}

/* A buffer of no bytes takes one empty packet and nothing else. */
static void test_empty_receive(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    struct fabric_slot what = {.base = NULL, .length_bytes = 0, .generation = 2, .received = f.received};
    struct fabric_slot_key key;
    rx_table_bind(&f.table, 0, &what, &key);
    struct roce_packet packet = {.va = key.base, .rkey = key.rkey};
    uint8_t *place = buffer;
    assert_int_equal(rx_check(&f.table, &packet, 0, 2, &place), RX_TAKE);
    assert_null(place);
    packet.payload_bytes = 1;
    assert_int_equal(rx_check(&f.table, &packet, 0, 2, &place), RX_BAD_RANGE);
    packet.payload_bytes = 0;
    packet.va += MTU;
    assert_int_equal(rx_check(&f.table, &packet, 0, 2, &place), RX_BAD_LENGTH);
}

static void test_channel(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 3);
    for (uint32_t i = 0; i < PACKETS; i++) {
        for (uint32_t channel = 0; channel < 3; channel++) {
            struct roce_packet packet = right(&f, i);
            uint8_t *place;
            enum rx_verdict expected = i / 16 % 3 == channel ? RX_TAKE : RX_BAD_CHANNEL;
            assert_int_equal(rx_check(&f.table, &packet, channel, 2, &place), expected);
        }
    }
}

/* No binding's key is that of the one before, in any slot; and slots do not share keys. */
static void test_keys_differ(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1);
    struct fabric_slot what = {.base = buffer, .length_bytes = BYTES, .received = f.received};
    uint32_t last[SLOTS] = {0};
    rx_table_unbind(&f.table, 3);
    for (uint32_t i = 0; i < 10000; i++) {
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            struct fabric_slot_key key;
            rx_table_bind(&f.table, slot, &what, &key);
            assert_int_equal(key.base, slot * SLOT_BYTES);
            for (uint32_t other = 0; other < SLOTS; other++)
                assert_int_not_equal(key.rkey, last[other]);
            last[slot] = key.rkey;
            rx_table_unbind(&f.table, slot);
        }
    }
    struct fixture other;
    memset(&other, 0, sizeof other);
    other.table = f.table;
    other.table.slots = other.slots;
    other.table.key_salt++;
    struct fabric_slot_key key, first;
    rx_table_bind(&other.table, 0, &what, &key);
    other.table.key_salt--;
    memset(other.slots, 0, sizeof other.slots);
    rx_table_bind(&other.table, 0, &what, &first);
    assert_int_not_equal(key.rkey, first.rkey);
}

static void test_counters(void **state)
{
    (void)state;
    struct lh_stats stats = {0};
    rx_count(&stats, RX_TAKE);
    rx_count(&stats, RX_DUPLICATE);
    assert_int_equal(lh_stats_bad_packets(&stats), 0);
    assert_int_equal(stats.rx_duplicate_packets, 0);
    rx_count(&stats, RX_LATE);
    rx_count(&stats, RX_BAD_KEY);
    rx_count(&stats, RX_BAD_RANGE);
    rx_count(&stats, RX_BAD_LENGTH);
    rx_count(&stats, RX_BAD_CHANNEL);
    assert_int_equal(stats.rx_late_packets, 1);
    assert_int_equal(stats.bad_key, 1);
    assert_int_equal(stats.bad_range, 1);
    assert_int_equal(stats.bad_length, 1);
    assert_int_equal(stats.bad_channel, 1);
    assert_int_equal(lh_stats_bad_packets(&stats), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_packet_has_its_place),
        cmocka_unit_test(test_slot_range),
        cmocka_unit_test(test_slots_come_and_go),
        cmocka_unit_test(test_late_and_key),
        cmocka_unit_test(test_place_must_agree),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_empty_packets),
        cmocka_unit_test(test_empty_receive),
        cmocka_unit_test(test_channel),
        cmocka_unit_test(test_keys_differ),
        cmocka_unit_test(test_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
