/*
 * test_message_table.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "sdr/message_table.h"

/* ---- test message extent --------------------------------------------------------------------------- */

#define MTU 256u

static bool full(struct message_extent *extent, uint32_t packet)
{
    return message_extent_full(extent, MTU, packet, 1) != 0;
}

static void test_bounds(void **state)
{
    (void)state;
    struct message_extent extent;
    message_extent_open(&extent, UINT32_MAX); /* the longest buffer */
    assert_true(full(&extent, (1u << 24) - 2));
    assert_false(full(&extent, (1u << 24) - 1));
    assert_false(message_extent_short(&extent, MTU, (1u << 24) - 3, 255));
    assert_true(message_extent_short(&extent, MTU, (1u << 24) - 1, 255));
    message_extent_open(&extent, 0);
    assert_false(full(&extent, 0));
    assert_false(message_extent_short(&extent, MTU, 0, 1));
    assert_true(message_extent_fix(&extent, MTU, 0));
}

static void test_says_where_it_ends(void **state)
{
    (void)state;
    struct message_extent extent;
    message_extent_open(&extent, 10 * MTU);
    assert_int_equal(message_extent_end(&extent), 10 * MTU);
    assert_true(full(&extent, 2));
    assert_int_equal(message_extent_end(&extent), 10 * MTU);
    assert_true(message_extent_short(&extent, MTU, 4, 3));
    assert_int_equal(message_extent_end(&extent), 4 * MTU + 3);
}

/* Of the packets of a word those before the end are taken. */
static void test_part_of_a_word(void **state)
{
    (void)state;
    struct message_extent extent;
    message_extent_open(&extent, 100 * MTU + 1);
    assert_int_equal(message_extent_full(&extent, MTU, 64, UINT64_MAX), ((uint64_t)1 << 36) - 1);
    assert_int_equal(message_extent_full(&extent, MTU, 64, (uint64_t)3 << 36), 0);
    assert_int_equal(message_extent_full(&extent, MTU, 128, UINT64_MAX), 0);
    assert_int_equal(message_extent_full(&extent, MTU, 0, UINT64_MAX), UINT64_MAX);
}

static void test_announced(void **state)
{
    (void)state;
    struct message_extent extent;
    message_extent_open(&extent, 100 * MTU);
    assert_true(full(&extent, 49));
    assert_false(message_extent_fix(&extent, MTU, 50 * MTU - 1));
    assert_false(message_extent_fix(&extent, MTU, 100 * MTU + 1));
    assert_true(message_extent_fix(&extent, MTU, 60 * MTU + 5));
    assert_false(full(&extent, 60));
    assert_false(message_extent_short(&extent, MTU, 59, 5));
    assert_false(message_extent_short(&extent, MTU, 60, 4));
    assert_true(message_extent_fix(&extent, MTU, 55 * MTU + 5)); /* nearer is possible while nothing came */
    assert_true(message_extent_short(&extent, MTU, 55, 5));
    assert_true(message_extent_short(&extent, MTU, 55, 5));
    assert_true(message_extent_fix(&extent, MTU, 55 * MTU + 5));
    assert_false(message_extent_fix(&extent, MTU, 55 * MTU));
}

/* Whatever comes in whatever order: what is taken is packets of one message. */
static void test_what_is_taken_is_one_message(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 5);
    for (uint32_t turn = 0; turn < 20000; turn++) {
        struct message_extent extent;
        uint32_t room = (uint32_t)lh_prng_below(&prng, 6 * MTU);
        message_extent_open(&extent, room);
        uint32_t top = 0;       /* one past the highest full packet */
        uint32_t end = 0;       /* of the short packet */
        uint32_t announced = 0; /* the last that was agreed to */
        bool fixed = false;
        for (uint32_t i = 0; i < 12; i++) {
            uint32_t packet = (uint32_t)lh_prng_below(&prng, 7);
            uint32_t bytes = 1 + (uint32_t)lh_prng_below(&prng, 3) * 127;
            uint64_t what = lh_prng_below(&prng, 8);
            if (what < 4) {
                top = full(&extent, packet) && packet >= top ? packet + 1 : top;
            } else if (what < 7) {
                bool taken = message_extent_short(&extent, MTU, packet, bytes);
                assert_true(!taken || end == 0 || end == packet * MTU + bytes);
                end = taken ? packet * MTU + bytes : end;
            } else if (message_extent_fix(&extent, MTU, (uint64_t)packet * MTU)) {
                announced = packet * MTU;
                fixed = true;
            }
            assert_true(end == 0 || top * MTU <= end);
            assert_true(!fixed || (top * MTU <= announced && (end == 0 || end == announced)));
            assert_true(top * MTU <= room && end <= room);
        }
    }
}

static int run_message_extent(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_where_it_ends),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_part_of_a_word),
        cmocka_unit_test(test_announced),
        cmocka_unit_test(test_what_is_taken_is_one_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test message table ---------------------------------------------------------------------------- */

/*
 * The message table against a naive model: shapes, order, truncation, generations,
 * immediates, and several channels at once.
 */

#define SLOTS       4u
#define GENERATIONS 4u
#define PACKETS_MAX 1024u

struct fixture {
    struct message_table table;
    struct message_slot slots[SLOTS];
    struct lh_stats stats;
    uint8_t generation; /* of the slot that is open */
};

static void setup(struct fixture *f, uint32_t chunk_packets, struct immediate_split split,
                  uint64_t slot_bytes)
{
    struct message_shape shape = {
        .slots = SLOTS,
        .mtu_bytes = MTU,
        .chunk_packets = chunk_packets,
        .slot_bytes = slot_bytes,
        .generations = GENERATIONS,
        .split = split,
    };
    *f = (struct fixture){0};
    message_table_init(&f->table, &shape, f->slots);
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t room = message_table_room(&f->table, slot_bytes);
        void *memory = malloc(message_table_bytes(&f->table, room));
        assert_non_null(memory);
        assert_null(message_slot_set_memory(&f->table, i, memory, room));
    }
}

static void teardown(struct fixture *f)
{
    for (uint32_t i = 0; i < SLOTS; i++)
        free((void *)f->slots[i].packets);
}

static struct fabric_arrival arrival(const struct fixture *f, uint32_t slot, uint32_t packet,
                                     uint16_t bytes, uint32_t user)
{
    struct immediate_split split = f->table.shape.split;
    struct immediate_fields fields = {slot, packet, immediate_fragment_of(split, user, packet)};
    return (struct fabric_arrival){immediate_join(split, fields), bytes, f->generation};
}

static void arrive(struct fixture *f, uint32_t slot, uint32_t packet)
{
    struct fabric_arrival one = arrival(f, slot, packet, MTU, 0);
    message_table_on_arrivals(&f->table, &one, 1, &f->stats);
}

static uint32_t ceil_div(uint64_t a, uint32_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

/* One flag a packet: the truth. */
struct model {
    bool packets[PACKETS_MAX];
    uint32_t packet_count; /* of the buffer */
    uint32_t message_packets;
    uint64_t message_bytes;
    uint64_t duplicates;
};

/* What its sender puts into a packet. Behind the end nobody sends; whatever comes from there is full. */
static uint16_t bytes_of(const struct model *model, uint32_t packet)
{
    uint64_t offset = (uint64_t)packet * MTU;
    bool last = offset < model->message_bytes && model->message_bytes - offset < MTU;
    return last ? (uint16_t)(model->message_bytes - offset) : MTU;
}

static bool model_chunk(const struct model *model, uint32_t chunk, uint32_t chunk_packets)
{
    for (uint32_t p = chunk * chunk_packets; p < (chunk + 1) * chunk_packets && p < model->message_packets;
         p++)
        if (!model->packets[p])
            return false;
    return true;
}

static void check(const struct fixture *f, uint32_t index, const struct model *model)
{
    const struct message_slot *slot = &f->table.slots[index];
    uint32_t chunk_packets = f->table.shape.chunk_packets;
    uint32_t arrived = 0;
    assert_int_equal(slot->packet_count, model->packet_count);
    assert_int_equal(slot->chunk_count, ceil_div(model->packet_count, chunk_packets));
    for (uint32_t c = 0; c < slot->chunk_count; c++) {
        bool whole = model_chunk(model, c, chunk_packets);
        assert_int_equal(slot->chunks[c], whole);
        arrived += whole && c * chunk_packets < model->message_packets;
    }
    assert_int_equal(message_slot_chunks_arrived(slot), arrived);
    for (uint32_t p = 0; p < slot->chunk_count * chunk_packets; p++) {
        bool expected = p >= model->message_packets || model->packets[p];
        assert_int_equal((slot->packets[p / 64] >> (p % 64)) & 1, expected);
    }
}

/* Every packet at least once, some twice, in random order and in batches of random sizes; checked now and
 * then. */
static void deliver_all(struct fixture *f, uint32_t slot, struct model *model, struct lh_prng *prng,
                        bool in_order)
{
    struct fabric_arrival batch[64];
    uint32_t order[2 * PACKETS_MAX];
    uint32_t count = 0;
    for (uint32_t p = 0; p < model->packet_count; p++) {
        order[count++] = p;
        if (lh_prng_chance(prng, 0.2))
            order[count++] = p;
    }
    for (uint32_t i = count; !in_order && i > 1; i--) {
        uint32_t j = (uint32_t)lh_prng_below(prng, i);
        uint32_t swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
    for (uint32_t i = 0; i < count;) {
        uint32_t size = 1 + (uint32_t)lh_prng_below(prng, 64);
        size = size < count - i ? size : count - i;
        for (uint32_t k = 0; k < size; k++, i++) {
            batch[k] = arrival(f, slot, order[i], bytes_of(model, order[i]), 0);
            model->duplicates += order[i] >= model->message_packets || model->packets[order[i]];
            model->packets[order[i]] = true;
        }
        message_table_on_arrivals(&f->table, batch, size, &f->stats);
        if (lh_prng_chance(prng, 0.1))
            check(f, slot, model);
    }
    check(f, slot, model);
}

static void check_length(struct fixture *f, uint64_t bytes, struct lh_prng *prng, bool in_order)
{
    struct model model = {.packet_count = ceil_div(bytes, MTU),
                          .message_packets = ceil_div(bytes, MTU),
                          .message_bytes = bytes};
    uint64_t duplicates = f->stats.rx_duplicate_packets;
    message_slot_open(&f->table, 1, bytes);
    check(f, 1, &model);
    deliver_all(f, 1, &model, prng, in_order);
    assert_int_equal(message_slot_chunks_arrived(&f->table.slots[1]), f->table.slots[1].chunk_count);
    assert_int_equal(f->stats.rx_duplicate_packets - duplicates, model.duplicates);
    message_slot_close(&f->table, 1);
    f->generation = (uint8_t)((f->generation + 1) % GENERATIONS);
}

static void test_shapes_and_lengths(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    const struct immediate_split splits[] = {IMMEDIATE_SPLIT_10_18_4, IMMEDIATE_SPLIT_8_22_2};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t chunk_packets = 1; chunk_packets <= 256; chunk_packets *= 2) {
            uint64_t chunk = (uint64_t)chunk_packets * MTU;
            uint64_t full = 3 * chunk > 70 * MTU ? 3 * chunk : 70 * MTU;
            const uint64_t lengths[] = {0,     1,         MTU - 1,   MTU,        MTU + 1,  chunk - 1,
                                        chunk, chunk + 1, 2 * chunk, full - MTU, full - 1, full};
            struct fixture f;
            setup(&f, chunk_packets, splits[s], full);
            for (uint32_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
                check_length(&f, lengths[i], &prng, i % 2 == 0);
                check_length(&f, lengths[i], &prng, i % 2 == 1);
            }
            assert_int_equal(f.stats.rx_stale_packets, 0);
            teardown(&f);
        }
}

/* A slot that is not a whole number of chunks, nor of packets: the last bits are there from the beginning.
 */
static void test_slot_of_odd_size(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 2);
    for (uint32_t chunk_packets = 1; chunk_packets <= 256; chunk_packets *= 2) {
        struct fixture f;
        setup(&f, chunk_packets, IMMEDIATE_SPLIT_10_18_4, 300 * MTU + 7);
        check_length(&f, 300 * MTU + 7, &prng, false);
        check_length(&f, 299 * MTU, &prng, false);
        teardown(&f);
    }
}

/* ---- truncation ---- */

/* when 0: before any arrival; 1: halfway; 2: when everything up to the new end is there. */
static void check_truncation(uint32_t chunk_packets, uint64_t bytes, int when, struct lh_prng *prng)
{
    struct fixture f;
    uint32_t full = 5 * (chunk_packets > 16 ? chunk_packets : 16);
    full = full < PACKETS_MAX ? full : PACKETS_MAX;
    struct model model = {.packet_count = full, .message_packets = full, .message_bytes = bytes};
    uint32_t packets = ceil_div(bytes, MTU);
    if (packets > full)
        return;
    setup(&f, chunk_packets, IMMEDIATE_SPLIT_10_18_4, (uint64_t)full * MTU);
    message_slot_open(&f.table, 0, (uint64_t)full * MTU);
    uint32_t before = when == 0 ? 0 : when == 1 ? packets / 2 : packets;
    for (uint32_t p = 0; p < before; p++) {
        struct fabric_arrival one = arrival(&f, 0, p, bytes_of(&model, p), 0);
        message_table_on_arrivals(&f.table, &one, 1, &f.stats);
        model.packets[p] = true;
    }
    check(&f, 0, &model);
    assert_true(message_slot_truncate(&f.table, 0, bytes));
    model.message_packets = packets;
    check(&f, 0, &model);
    deliver_all(&f, 0, &model, prng, when == 1);
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), ceil_div(packets, chunk_packets));
    teardown(&f);
}

static void test_truncation(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    for (uint32_t chunk_packets = 1; chunk_packets <= 256; chunk_packets *= 2) {
        uint64_t chunk = (uint64_t)chunk_packets * MTU;
        const uint64_t ends[] = {0,     1,         MTU,           MTU + 1,   chunk - 1,
                                 chunk, chunk + 1, 3 * chunk - 1, 3 * chunk, 4 * chunk};
        for (uint32_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
            for (int when = 0; when < 3; when++)
                check_truncation(chunk_packets, ends[i], when, &prng);
    }
}

/* Shorter again is fine; longer would turn chunks that count as arrived into missing ones. */
static void test_truncation_only_shrinks(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, 2, IMMEDIATE_SPLIT_10_18_4, 64 * MTU);
    message_slot_open(&f.table, 0, 64 * MTU);
    assert_true(message_slot_truncate(&f.table, 0, 40 * MTU));
    assert_true(message_slot_truncate(&f.table, 0, 40 * MTU));
    assert_true(message_slot_truncate(&f.table, 0, 10 * MTU));
    assert_false(message_slot_truncate(&f.table, 0, 11 * MTU));
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), 0);
    assert_int_equal(f.table.slots[0].chunks[4], 0);
    assert_int_equal(f.table.slots[0].chunks[5], 1);
    for (uint32_t p = 0; p < 10; p++)
        arrive(&f, 0, p);
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), 5);
    /* The next use of the slot is whole again. */
    message_slot_close(&f.table, 0);
    message_slot_open(&f.table, 0, 64 * MTU);
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), 0);
    assert_true(message_slot_truncate(&f.table, 0, 64 * MTU));
    assert_int_equal(f.table.slots[0].chunks[5], 0);
    teardown(&f);
}

/* ---- where a message ends ---- */

static void arrive_short(struct fixture *f, uint32_t packet, uint16_t bytes)
{
    struct fabric_arrival one = arrival(f, 0, packet, bytes, 0);
    message_table_on_arrivals(&f->table, &one, 1, &f->stats);
}

/* Packets of a byte each would mark a chunk of which four bytes have arrived: one of them is the last of its
 * message, and the others are refused, in one batch and in several. */
static void test_short_packets_do_not_make_a_chunk(void **state)
{
    (void)state;
    for (uint32_t together = 0; together < 2; together++) {
        struct fixture f;
        setup(&f, 4, IMMEDIATE_SPLIT_10_18_4, 64 * MTU);
        message_slot_open(&f.table, 0, 64 * MTU);
        struct fabric_arrival four[4];
        for (uint32_t i = 0; i < 4; i++)
            four[i] = arrival(&f, 0, i, 1, 0);
        for (uint32_t i = 0; i < 4; i += together ? 4 : 1)
            message_table_on_arrivals(&f.table, four + i, together ? 4 : 1, &f.stats);
        assert_int_equal(f.table.slots[0].chunks[0], 0);
        assert_int_equal(f.table.slots[0].packets[0], 1);
        assert_int_equal(f.stats.rx_packets, 1);
        assert_int_equal(f.stats.rx_bytes, 1);
        assert_int_equal(f.stats.bad_length, 3);
        teardown(&f);
    }
}

/* The short packet may come at any time; what lies behind it may not, whichever is first. */
static void test_nothing_behind_the_short_packet(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, 4, IMMEDIATE_SPLIT_10_18_4, 256 * MTU);
    message_slot_open(&f.table, 0, 256 * MTU);
    arrive(&f, 0, 9);
    arrive_short(&f, 8, 5); /* packet 9 has arrived */
    assert_int_equal(f.stats.bad_length, 1);
    arrive_short(&f, 70, 5);
    arrive_short(&f, 70, 5);
    arrive_short(&f, 70, 6);
    assert_int_equal(f.stats.rx_duplicate_packets, 2);
    arrive(&f, 0, 70);
    assert_int_equal(f.stats.rx_duplicate_packets, 3);
    arrive(&f, 0, 71);
    arrive(&f, 0, 200);
    arrive_short(&f, 69, 5);
    assert_int_equal(f.stats.bad_length, 4);
    arrive(&f, 0, 69);
    /* In a batch in which others are right. */
    struct fabric_arrival batch[] = {arrival(&f, 0, 64, MTU, 0), arrival(&f, 0, 72, MTU, 0),
                                     arrival(&f, 0, 65, MTU, 0), arrival(&f, 0, 2, 7, 0)};
    message_table_on_arrivals(&f.table, batch, 4, &f.stats);
    assert_int_equal(f.stats.bad_length, 6);
    assert_int_equal(f.table.slots[0].packets[0], 1u << 9);
    assert_int_equal(f.table.slots[0].packets[1], 1u << 6 | 1u << 5 | 3);
    assert_int_equal(f.table.slots[0].packets[3], 0);
    assert_int_equal(f.stats.rx_packets, 8);
    teardown(&f);
}

/* Where the length is announced, the short packet is the one that it leaves, and no full one takes its
 * place. What has arrived holds against the announcement as well. */
static void test_short_packet_agrees_with_the_length(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, 1, IMMEDIATE_SPLIT_10_18_4, 64 * MTU);
    message_slot_open(&f.table, 0, 64 * MTU);
    arrive(&f, 0, 4);
    assert_false(message_slot_truncate(&f.table, 0, 4 * MTU + 7)); /* packet 4 is full */
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), 1);
    assert_true(message_slot_truncate(&f.table, 0, 20 * MTU + 7));
    arrive_short(&f, 8, 7);
    arrive_short(&f, 20, 6);
    arrive(&f, 0, 20);
    assert_int_equal(f.stats.bad_length, 3);
    arrive_short(&f, 20, 7);
    assert_int_equal(f.stats.bad_length, 3);
    assert_false(message_slot_truncate(&f.table, 0, 20 * MTU));
    message_slot_close(&f.table, 0);
    f.generation = 1;
    message_slot_open(&f.table, 0, 64 * MTU);
    assert_true(message_slot_truncate(&f.table, 0, 64 * MTU)); /* all of it: no packet is short */
    arrive_short(&f, 63, 9);
    assert_int_equal(f.stats.bad_length, 4);
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), 0);
    teardown(&f);
}

struct contest {
    struct fixture *f;
    uint32_t packet;
    uint16_t bytes;
    struct lh_stats stats;
    pthread_barrier_t *start;
};

static void *contend(void *argument)
{
    struct contest *self = argument;
    struct fabric_arrival one = arrival(self->f, 0, self->packet, self->bytes, 0);
    pthread_barrier_wait(self->start);
    message_table_on_arrivals(&self->f->table, &one, 1, &self->stats);
    return NULL;
}

/* Two channels at the same time: a short packet, and one behind it or another short one. One of them is
 * refused, in whatever order they come. */
static void test_ends_are_contended(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 2000; turn++) {
        struct fixture f;
        pthread_t other;
        pthread_barrier_t start;
        setup(&f, 1, IMMEDIATE_SPLIT_10_18_4, 256 * MTU);
        message_slot_open(&f.table, 0, 256 * MTU);
        pthread_barrier_init(&start, NULL, 2);
        struct contest low = {&f, 3, 5, {0}, &start};
        struct contest high = {&f, 130, turn % 2 ? MTU : 5, {0}, &start};
        assert_int_equal(pthread_create(&other, NULL, contend, &high), 0);
        contend(&low);
        pthread_join(other, NULL);
        pthread_barrier_destroy(&start);
        assert_int_equal(low.stats.bad_length + high.stats.bad_length, 1);
        assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), 1);
        teardown(&f);
    }
}

/* ---- what is too late, or nowhere ---- */

static void test_other_generations_change_nothing(void **state)
{
    (void)state;
    struct fixture f;
    struct model nothing = {.packet_count = 16, .message_packets = 16};
    setup(&f, 1, IMMEDIATE_SPLIT_10_18_4, 16 * MTU);
    uint64_t late = 0;
    for (uint8_t use = 0; use < 2 * GENERATIONS + 1; use++) {
        uint8_t own = use % GENERATIONS;
        f.generation = own;
        arrive(&f, 2, 3); /* the slot is closed, of whatever generation it will be */
        assert_int_equal(f.stats.rx_stale_packets, ++late);
        message_slot_open(&f.table, 2, 16 * MTU);
        assert_int_equal(f.table.slots[2].generation, own);
        for (uint8_t g = 0; g < GENERATIONS; g++) {
            f.generation = g;
            if (g == own)
                continue;
            arrive(&f, 2, g);
            assert_int_equal(f.stats.rx_stale_packets, ++late);
        }
        check(&f, 2, &nothing);
        assert_int_equal(atomic_load(&f.table.slots[2].fragments), 0);
        f.generation = own;
        arrive(&f, 2, 3);
        assert_int_equal(message_slot_chunks_arrived(&f.table.slots[2]), 1);
        message_slot_close(&f.table, 2);
    }
    assert_int_equal(f.stats.rx_packets, 2 * GENERATIONS + 1);
    assert_int_equal(f.stats.rx_bytes, (2 * GENERATIONS + 1) * MTU);
    teardown(&f);
}

static void test_nonsense_is_harmless(void **state)
{
    (void)state;
    struct fixture f;
    struct model nothing = {.packet_count = 20, .message_packets = 20};
    setup(&f, 4, IMMEDIATE_SPLIT_10_18_4, 20 * MTU);
    message_slot_open(&f.table, 0, 20 * MTU);
    arrive(&f, SLOTS, 0);
    arrive(&f, 1023, 5);
    assert_int_equal(f.stats.rx_stale_packets, 2);
    arrive(&f, 0, 20); /* past the buffer: a fabric refuses it; the table must not fall over */
    arrive(&f, 0, (1u << 18) - 1);
    check(&f, 0, &nothing);
    /* In the middle of a run too: the packets around it count. */
    struct fabric_arrival run[3] = {arrival(&f, 0, 18, MTU, 0), arrival(&f, 0, 20, MTU, 0),
                                    arrival(&f, 0, 19, MTU, 0)};
    for (uint32_t i = 0; i < 8; i++)
        arrive(&f, 0, i); /* makes the immediate whole, so that runs form */
    message_table_on_arrivals(&f.table, run, 3, &f.stats);
    struct model some = {.packet_count = 20, .message_packets = 20};
    for (uint32_t i = 0; i < 20; i++)
        some.packets[i] = i < 8 || i >= 18;
    check(&f, 0, &some);
    teardown(&f);
}

/* Runs of one word may mix messages, generations and duplicates. */
static void test_mixed_batch(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, 2, IMMEDIATE_SPLIT_10_18_4, 128 * MTU);
    message_slot_open(&f.table, 0, 128 * MTU);
    message_slot_open(&f.table, 1, 128 * MTU);
    for (uint32_t i = 0; i < 8; i++) {
        arrive(&f, 0, 100 + i);
        arrive(&f, 1, 100 + i);
    }
    struct fabric_arrival batch[] = {
        arrival(&f, 0, 0, MTU, 0), arrival(&f, 0, 1, MTU, 0), arrival(&f, 0, 1, MTU, 0),
        arrival(&f, 1, 2, MTU, 0), arrival(&f, 0, 2, MTU, 0), arrival(&f, 0, 65, MTU, 0),
        arrival(&f, 0, 3, MTU, 0), arrival(&f, 0, 4, MTU, 0),
    };
    batch[7].generation = 1;
    message_table_on_arrivals(&f.table, batch, 8, &f.stats);
    assert_int_equal(f.stats.rx_packets, 16 + 7);
    assert_int_equal(f.stats.rx_duplicate_packets, 1);
    assert_int_equal(f.stats.rx_stale_packets, 1);
    assert_int_equal(f.table.slots[0].packets[0], 0xF);
    assert_int_equal(f.table.slots[0].packets[1] & 3, 2);
    assert_int_equal(f.table.slots[1].packets[0], 4);
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), 2 + 4);
    teardown(&f);
}

/* ---- immediates ---- */

static void check_immediate(struct immediate_split split, uint32_t packets, uint32_t user,
                            struct lh_prng *prng)
{
    struct fixture f;
    uint32_t fragments = immediate_fragments(split);
    uint32_t total = packets > fragments ? packets : fragments;
    uint32_t order[64];
    uint32_t value = 0;
    setup(&f, 1, split, 64 * MTU);
    message_slot_open(&f.table, 3, (uint64_t)packets * MTU);
    for (uint32_t i = 0; i < total; i++) {
        uint32_t j = (uint32_t)lh_prng_below(prng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    uint32_t have = 0;
    for (uint32_t i = 0; i < total; i++) {
        bool whole = (uint32_t)__builtin_popcount(have) == fragments;
        assert_int_equal(message_slot_immediate(&f.table, &f.table.slots[3], &value), whole);
        uint16_t bytes = order[i] < packets ? MTU : 0;
        struct fabric_arrival one = arrival(&f, 3, order[i], bytes, user);
        message_table_on_arrivals(&f.table, &one, 1, &f.stats);
        have |= 1u << (order[i] % fragments);
    }
    assert_true(message_slot_immediate(&f.table, &f.table.slots[3], &value));
    assert_int_equal(value, user);
    /* Empty packets mark nothing. */
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[3]), packets);
    assert_int_equal(f.stats.rx_duplicate_packets, 0);
    message_slot_close(&f.table, 3);
    message_slot_open(&f.table, 3, (uint64_t)packets * MTU);
    assert_false(message_slot_immediate(&f.table, &f.table.slots[3], &value));
    teardown(&f);
}

static void test_immediate_from_fragments(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 4);
    const struct immediate_split splits[] = {
        IMMEDIATE_SPLIT_10_18_4, IMMEDIATE_SPLIT_8_22_2, {10, 21, 1}, {10, 14, 8}};
    for (uint32_t s = 0; s < 4; s++)
        for (uint32_t packets = 0; packets <= 40; packets++) {
            check_immediate(splits[s], packets, (uint32_t)lh_prng_next(&prng), &prng);
            check_immediate(splits[s], packets, UINT32_MAX, &prng);
        }
}

/* An empty packet that names a packet of the message does not stand for it. */
static void test_empty_packet_is_no_packet(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, 1, IMMEDIATE_SPLIT_10_18_4, 64 * MTU);
    message_slot_open(&f.table, 0, 64 * MTU);
    struct fabric_arrival empty[9];
    for (uint32_t i = 0; i < 8; i++)
        empty[i] = arrival(&f, 0, i, 0, 0);
    message_table_on_arrivals(&f.table, empty, 8, &f.stats); /* now the immediate is whole, and runs form */
    for (uint32_t i = 0; i < 8; i++)
        empty[i] = arrival(&f, 0, 20 + i, i % 2 ? 0 : MTU, 0);
    message_table_on_arrivals(&f.table, empty, 8, &f.stats);
    assert_int_equal(f.table.slots[0].packets[0], (uint64_t)0x55 << 20);
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), 4);
    teardown(&f);
}

/* ---- several channels at once ---- */

#define CHANNELS 4u
#define STRIPE   64u
#define BIG      4096u

struct hammer {
    struct fixture *f;
    uint32_t channel;
    uint32_t end; /* packets of the message */
    struct lh_stats *stats;
    uint32_t user;
    pthread_barrier_t *start;
};

/* Every packet of one channel, twice, in batches. What lies behind the end is left out. */
static void *hammer(void *argument)
{
    const struct hammer *self = argument;
    struct fabric_arrival batch[64];
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t first = self->channel * STRIPE; first < BIG; first += CHANNELS * STRIPE) {
            uint32_t count = 0;
            for (uint32_t i = 0; i < STRIPE; i++)
                if (first + (i * 37) % STRIPE < self->end)
                    batch[count++] = arrival(self->f, 0, first + (i * 37) % STRIPE, MTU, self->user);
            message_table_on_arrivals(&self->f->table, batch, count / 2, self->stats);
            message_table_on_arrivals(&self->f->table, batch + count / 2, count - count / 2, self->stats);
        }
    return NULL;
}

/* Polls as a program does: bytes without a call, and never sees more chunks than there are. */
static void poll_until_whole(const struct fixture *f, uint32_t chunks)
{
    const struct message_slot *slot = &f->table.slots[0];
    uint32_t before = 0;
    while (before < chunks) {
        uint32_t arrived = message_slot_chunks_arrived(slot);
        assert_true(arrived >= before && arrived <= chunks);
        uint32_t marked = 0;
        for (uint32_t c = 0; c < chunks; c++)
            marked += atomic_load_explicit(&slot->chunks[c], memory_order_acquire);
        assert_true(marked >= arrived);
        before = arrived;
    }
}

static void hammer_message(uint32_t chunk_packets, bool truncate)
{
    struct fixture f;
    setup(&f, chunk_packets, IMMEDIATE_SPLIT_10_18_4, BIG * MTU);
    message_slot_open(&f.table, 0, BIG * MTU);
    struct hammer threads[CHANNELS];
    pthread_t ids[CHANNELS];
    uint32_t end = truncate ? BIG / 2 + 3 : BIG;
    for (uint32_t c = 0; c < CHANNELS; c++) {
        threads[c] = (struct hammer){&f, c, end, &f.stats, 0xC0FFEE42, NULL};
        assert_int_equal(pthread_create(&ids[c], NULL, hammer, &threads[c]), 0);
    }
    if (truncate)
        assert_true(message_slot_truncate(&f.table, 0, (uint64_t)end * MTU));
    else
        poll_until_whole(&f, BIG / chunk_packets);
    for (uint32_t c = 0; c < CHANNELS; c++)
        pthread_join(ids[c], NULL);
    struct lh_stats stats = f.stats;
    assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), ceil_div(end, chunk_packets));
    for (uint32_t c = 0; c < f.table.slots[0].chunk_count; c++)
        assert_int_equal(f.table.slots[0].chunks[c], 1);
    assert_int_equal(stats.rx_packets, 2 * end);
    assert_int_equal(stats.rx_duplicate_packets, end);
    uint32_t user = 0;
    assert_true(message_slot_immediate(&f.table, &f.table.slots[0], &user));
    assert_int_equal(user, 0xC0FFEE42);
    teardown(&f);
}

static void test_channels_in_parallel(void **state)
{
    (void)state;
    for (uint32_t chunk_packets = 1; chunk_packets <= 256; chunk_packets *= 4)
        for (int turn = 0; turn < 4; turn++)
            hammer_message(chunk_packets, turn % 2);
}

/* Two threads in the same words, as truncation and arrivals are: no bit is lost, and each chunk is counted
 * once. */
static void *hammer_parity(void *argument)
{
    const struct hammer *self = argument;
    pthread_barrier_wait(self->start);
    for (uint32_t packet = self->channel; packet < BIG; packet += 2) {
        struct fabric_arrival one = arrival(self->f, 0, packet, MTU, self->user);
        message_table_on_arrivals(&self->f->table, &one, 1, self->stats);
    }
    return NULL;
}

static void test_words_are_shared(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 800; turn++) {
        uint32_t chunk_packets = 1u << turn % 9;
        struct fixture f;
        pthread_t other;
        setup(&f, chunk_packets, IMMEDIATE_SPLIT_10_18_4, BIG * MTU);
        message_slot_open(&f.table, 0, BIG * MTU);
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, 2);
        struct hammer odd = {&f, 1, BIG, &f.stats, 1, &start}, even = {&f, 0, BIG, &f.stats, 1, &start};
        assert_int_equal(pthread_create(&other, NULL, hammer_parity, &odd), 0);
        hammer_parity(&even);
        pthread_join(other, NULL);
        pthread_barrier_destroy(&start);
        assert_int_equal(message_slot_chunks_arrived(&f.table.slots[0]), BIG / chunk_packets);
        assert_int_equal(f.stats.rx_duplicate_packets, 0);
        teardown(&f);
    }
}

static int run_message_table(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_and_lengths),
        cmocka_unit_test(test_slot_of_odd_size),
        cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_truncation_only_shrinks),
        cmocka_unit_test(test_short_packets_do_not_make_a_chunk),
        cmocka_unit_test(test_nothing_behind_the_short_packet),
        cmocka_unit_test(test_short_packet_agrees_with_the_length),
        cmocka_unit_test(test_ends_are_contended),
        cmocka_unit_test(test_other_generations_change_nothing),
        cmocka_unit_test(test_nonsense_is_harmless),
        cmocka_unit_test(test_mixed_batch),
        cmocka_unit_test(test_immediate_from_fragments),
        cmocka_unit_test(test_empty_packet_is_no_packet),
        cmocka_unit_test(test_channels_in_parallel),
        cmocka_unit_test(test_words_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_message_extent() + run_message_table();
}
