/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/udp/placement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bitmap.h"
#include "base/prng.h"

#define SLOTS   6u
#define MTU     256u
#define PACKETS 320u /* at most, of a slot */

struct fixture {
    struct rx_slot slots[SLOTS];
    struct rx_table table;
    uint64_t open[1];
    _Atomic uint64_t received[SLOTS][PACKETS / 64];
    struct placement placement;
};

/* Never read or written: places are only compared. */
static uint8_t memory[SLOTS][PACKETS * MTU];

static void set_up(struct fixture *f, uint32_t channels, uint32_t channel)
{
    memset(f, 0, sizeof *f);
    f->table.slots = f->slots;
    f->table.attr = (struct fabric_endpoint_attr){
        .channels = channels,
        .generations = 4,
        .mtu_bytes = MTU,
        .slots = SLOTS,
        .slot_bytes = PACKETS * MTU,
        .stripe_packets = 4,
        .split = IMMEDIATE_SPLIT_10_18_4,
    };
    placement_init(&f->placement, channel);
}

static void bind(struct fixture *f, uint32_t slot, uint64_t bytes)
{
    struct fabric_slot what = {.base = memory[slot], .length_bytes = bytes, .received = f->received[slot]};
    struct fabric_slot_key key;
    memset((void *)f->received[slot], 0, sizeof f->received[slot]);
    rx_table_bind(&f->table, slot, &what, &key);
    lh_bitmap_set(f->open, slot);
    placement_on_bind(&f->placement, slot);
}

static void unbind(struct fixture *f, uint32_t slot)
{
    rx_table_unbind(&f->table, slot);
    lh_bitmap_clear(f->open, slot);
}

static void receive(struct fixture *f, uint32_t slot, uint32_t packet)
{
    atomic_fetch_or(&f->received[slot][packet / 64], (uint64_t)1 << (packet % 64));
}

static void saw(struct fixture *f, uint32_t slot, uint32_t packet)
{
    placement_on_packet(&f->placement, &f->table, slot, packet);
}

/* Guesses, as slot * 1000 + packet, must be these (ended by -1). */
static void expect(const struct fixture *f, uint32_t max, const int *expected)
{
    uint8_t *places[64];
    uint32_t count = placement_list(&f->placement, &f->table, f->open, places, max);
    for (uint32_t i = 0; i < count; i++) {
        size_t at = (size_t)(places[i] - memory[0]);
        size_t packet = at / MTU;
        assert_int_equal(at % MTU, 0);
        assert_int_equal((int)(packet / PACKETS * 1000 + packet % PACKETS), expected[i]);
    }
    assert_int_equal(expected[count], -1);
}
#define EXPECT(f, max, ...) expect(f, max, (const int[]){__VA_ARGS__, -1})
#define EXPECT_NONE(f)      expect(f, 64, (const int[]){-1})

static void test_in_order(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1, 0);
    EXPECT_NONE(&f);
    bind(&f, 2, 10 * MTU + 5); /* the short packet at the end has no place */
    EXPECT(&f, 4, 2000, 2001, 2002, 2003);
    saw(&f, 2, 0);
    saw(&f, 2, 1);
    EXPECT(&f, 3, 2002, 2003, 2004);
    saw(&f, 2, 8);
    placement_on_poll(&f.placement);
    EXPECT(&f, 3, 2009, 2000, 2001);
}

/* Of a message whose length is not known no place is offered; then what lies before its end. */
static void test_up_to_what_is_expected(void **state)
{
    (void)state;
    struct fixture f;
    _Atomic uint64_t expected = 0;
    struct fabric_slot what = {
        .base = memory[1], .length_bytes = 10 * MTU, .received = f.received[1], .expected = &expected};
    struct fabric_slot_key key;
    set_up(&f, 1, 0);
    rx_table_bind(&f.table, 1, &what, &key);
    lh_bitmap_set(f.open, 1);
    placement_on_bind(&f.placement, 1);
    EXPECT_NONE(&f);
    bind(&f, 3, 2 * MTU);
    EXPECT(&f, 64, 3000, 3001);
    atomic_store(&expected, 3 * MTU - 1);
    EXPECT(&f, 64, 1000, 1001, 3000, 3001);
    atomic_store(&expected, 3 * MTU);
    saw(&f, 1, 0);
    EXPECT(&f, 64, 1001, 1002, 3000, 3001);
}

static void test_skips_what_arrived(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1, 0);
    bind(&f, 0, PACKETS * MTU);
    for (uint32_t i = 0; i < 200; i++)
        receive(&f, 0, i);
    receive(&f, 0, 201);
    EXPECT(&f, 3, 200, 202, 203);
    for (uint32_t i = 0; i < PACKETS - 1; i++)
        receive(&f, 0, i);
    EXPECT(&f, 3, PACKETS - 1);
    receive(&f, 0, PACKETS - 1);
    EXPECT_NONE(&f);
}

static void test_stripes(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 3, 1); /* packets 4 … 7, 16 … 19, 28 … 31 */
    bind(&f, 0, 30 * MTU);
    bind(&f, 1, 6 * MTU);
    EXPECT(&f, 64, 4, 5, 6, 7, 16, 17, 18, 19, 28, 29, 1004, 1005);
    saw(&f, 0, 7);
    receive(&f, 0, 17);
    EXPECT(&f, 4, 16, 18, 19, 28);
}

/* On to the next bound slot, over closed ones, round the end of the table, back to holes in the first. */
static void test_next_slots(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1, 0);
    bind(&f, 4, 3 * MTU);
    bind(&f, 1, 2 * MTU);
    bind(&f, 3, MTU);
    saw(&f, 4, 1);
    receive(&f, 4, 1);
    placement_on_poll(&f.placement);
    EXPECT(&f, 64, 4002, 1000, 1001, 3000, 4000);
    unbind(&f, 1);
    EXPECT(&f, 64, 4002, 3000, 4000);
    unbind(&f, 4);
    EXPECT(&f, 64, 3000);
    bind(&f, 4, 2 * MTU); /* nothing of the former message is remembered */
    EXPECT(&f, 64, 4000, 4001, 3000);
    unbind(&f, 3);
    unbind(&f, 4);
    EXPECT_NONE(&f);
}

/* What was seen in a poll lies between floor and cursor, and is not offered before the next poll. */
static void test_nothing_twice_in_a_poll(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1, 0);
    bind(&f, 0, 4 * MTU);
    bind(&f, 1, 3 * MTU);
    saw(&f, 0, 0);
    receive(&f, 0, 0);
    placement_on_poll(&f.placement);
    saw(&f, 0, 1);
    EXPECT(&f, 64, 2, 3, 1000, 1001, 1002);
    saw(&f, 0, 2);
    saw(&f, 0, 3);
    EXPECT(&f, 64, 1000, 1001, 1002);
    saw(&f, 1, 0);
    EXPECT(&f, 64, 1001, 1002);
    placement_on_poll(&f.placement);
    receive(&f, 0, 2);
    receive(&f, 0, 3);
    receive(&f, 1, 0);
    EXPECT(&f, 64, 1001, 1002, 1); /* 1 was lost between two layers, say */
    saw(&f, 1, 1);
    saw(&f, 1, 2);
    EXPECT(&f, 64, 1);
    saw(&f, 0, 1); /* round: slot 1 up to the floor only, and that has arrived */
    EXPECT_NONE(&f);
}

/* Messages shorter than their buffers: the second one's end is predicted from the first one's. */
static void test_usual_length(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 1, 0);
    bind(&f, 0, 100 * MTU);
    bind(&f, 1, 100 * MTU);
    bind(&f, 2, 100 * MTU);
    for (uint32_t i = 0; i < 3; i++) {
        saw(&f, 0, i);
        receive(&f, 0, i);
    }
    saw(&f, 1, 0);
    receive(&f, 1, 0);
    placement_on_poll(&f.placement);
    EXPECT(&f, 4, 1001, 1002, 2000, 2001);
    saw(&f, 1, 3); /* a longer one */
    EXPECT(&f, 2, 1004, 1005);
    saw(&f, 0, 50); /* a repair of another message teaches nothing */
    saw(&f, 1, 1);
    placement_on_poll(&f.placement);
    EXPECT(&f, 3, 1002, 2000, 2001);
}

/* Whatever was seen, bound and received: every place is open, missing, full, on the channel, and made once.
 */
static void test_places_are_always_safe(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 42);
    for (uint32_t round = 0; round < 300; round++) {
        struct fixture f;
        uint32_t channels = 1 + (uint32_t)lh_prng_below(&prng, 4);
        set_up(&f, channels, (uint32_t)lh_prng_below(&prng, channels));
        for (uint32_t step = 0; step < 200; step++) {
            uint32_t slot = (uint32_t)lh_prng_below(&prng, SLOTS);
            uint32_t packet = (uint32_t)lh_prng_below(&prng, PACKETS);
            switch (lh_prng_below(&prng, 5)) {
            case 0:
                if (f.slots[slot].open)
                    unbind(&f, slot);
                else
                    bind(&f, slot, lh_prng_below(&prng, PACKETS * MTU + 1));
                break;
            case 1:
                placement_on_poll(&f.placement);
                break;
            case 2:
                for (uint32_t i = packet; i < PACKETS && i < packet + 70; i++)
                    receive(&f, slot, i);
                break;
            default:
                saw(&f, slot, packet);
            }
            uint8_t *places[64];
            static uint8_t offered[SLOTS * PACKETS];
            memset(offered, 0, sizeof offered);
            uint32_t count = placement_list(&f.placement, &f.table, f.open, places, 64);
            for (uint32_t i = 0; i < count; i++) {
                size_t at = (size_t)(places[i] - memory[0]) / MTU;
                uint32_t s = (uint32_t)(at / PACKETS), p = (uint32_t)(at % PACKETS);
                assert_ptr_equal(places[i], memory[s] + (size_t)p * MTU);
                assert_true(f.slots[s].open);
                assert_true((p + 1) * (uint64_t)MTU <= f.slots[s].bound.length_bytes);
                assert_int_equal(atomic_load(&f.received[s][p / 64]) >> (p % 64) & 1, 0);
                assert_int_equal(fabric_channel_of(p, 4, channels), f.placement.channel);
                assert_int_equal(offered[at]++, 0);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),           cmocka_unit_test(test_up_to_what_is_expected),
        cmocka_unit_test(test_skips_what_arrived), cmocka_unit_test(test_stripes),
        cmocka_unit_test(test_next_slots),         cmocka_unit_test(test_nothing_twice_in_a_poll),
        cmocka_unit_test(test_usual_length),       cmocka_unit_test(test_places_are_always_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
