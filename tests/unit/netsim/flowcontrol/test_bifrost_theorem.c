/*
 * test_bifrost_theorem.c - theorem 1 of the Bifrost paper as a property of the code: in every slot
 * delta + a slot <= L + F <= H, never a lost byte, never a dry queue while the upstream has something.
 *
 * Each case is a drawn link and a drawn way of draining; a failing one is named by its number, and is drawn
 * again from it. With H a packet too small the same cases must fail.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/bifrost_world.h"

#define CASES    10000u
#define MTU      1500u
#define TRIP_MAX 48u /* slots of a round trip */

/* ---- what is drawn ----------------------------------------------------------------------------------- */

enum drain {
    DRAIN_FIGURE_5, /* full rate, nothing, full rate: each for some round trips */
    DRAIN_ALTERNATE,
    DRAIN_CONSTANT,
    DRAIN_RANDOM,
    DRAIN_BURSTS, /* full rate or nothing, for random times */
    DRAIN_STAIRS, /* another constant rate after random times */
    DRAINS,
};

struct drawn {
    struct lh_bifrost_config config;
    enum drain drain;
    bool by_grants;
    uint64_t slots;
    uint32_t trip;  /* slots of a round trip, rounded up */
    uint64_t level; /* of the drain now */
};

static uint64_t between(struct lh_prng *prng, uint64_t least, uint64_t most)
{
    return least + lh_prng_below(prng, most - least + 1);
}

static void draw(struct drawn *drawn, struct lh_prng *prng, bool even)
{
    static const uint64_t rates[] = {1000000000,   10000000000,  33333333333,
                                     100000000000, 400000000000, 1600000000000};
    struct lh_bifrost_config *config = &drawn->config;
    *config = (struct lh_bifrost_config){.leak_slots = 1, .mtu_bytes = MTU, .headroom_bytes = MTU};
    config->rate_bps = rates[lh_prng_below(prng, 6)];
    /* A slot of 64 bytes to 16 MB. */
    uint64_t shortest = 512u * 1000000000ull / config->rate_bps + 1;
    uint64_t longest = 134000000ull * 1000000000ull / config->rate_bps;
    longest = longest < 40000000 ? longest : 40000000; /* a link of a second at most */
    config->slot_ns = between(prng, shortest, lh_prng_below(prng, 4) == 0 ? longest : 100 * shortest);
    config->delay_ns = between(prng, config->slot_ns, config->slot_ns * TRIP_MAX / 2);
    struct lh_flow_needs needs;
    const struct lh_flow_link link = {config->rate_bps, config->delay_ns, config->slot_ns, 1, MTU};
    assert_int_equal(lh_flow_needs(&link, &needs), 0);
    config->delta_bytes = needs.bdp_bytes;
    config->buffer_bytes = needs.bifrost_h_bytes;
    drawn->drain = (enum drain)lh_prng_below(prng, DRAINS);
    drawn->by_grants = lh_prng_below(prng, 2) == 0;
    config->even_grants = even;
    drawn->trip = lh_bifrost_grants(config) - 1;
    drawn->slots = (uint64_t)drawn->trip * between(prng, 6, 10);
    drawn->level = 0;
}

static uint64_t drained(struct drawn *drawn, struct lh_prng *prng, uint64_t slot, uint64_t slot_bytes)
{
    uint64_t phase = slot / (2 * (uint64_t)drawn->trip + 2);
    switch (drawn->drain) {
    case DRAIN_FIGURE_5:
        return phase % 2 == 0 ? slot_bytes : 0;
    case DRAIN_ALTERNATE:
        return slot % 2 == 0 ? slot_bytes : 0;
    case DRAIN_CONSTANT:
        drawn->level = slot == 0 ? lh_prng_below(prng, slot_bytes + 1) : drawn->level;
        return drawn->level;
    case DRAIN_RANDOM:
        return lh_prng_below(prng, slot_bytes + 1);
    case DRAIN_BURSTS:
        if (lh_prng_below(prng, drawn->trip) == 0)
            drawn->level = drawn->level == 0 ? slot_bytes : 0;
        return drawn->level;
    default:
        if (lh_prng_below(prng, drawn->trip) == 0)
            drawn->level = lh_prng_below(prng, slot_bytes + 1);
        return drawn->level;
    }
}

/* Runs case `number` with H smaller by so much than it must be. */
static void run_case(uint32_t number, bool even, uint64_t short_bytes, struct drawn *drawn,
                     struct bifrost_world *world)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, number);
    draw(drawn, &prng, even);
    assert_int_equal(lh_bifrost_check(&drawn->config), 0);
    drawn->config.buffer_bytes -= short_bytes;
    bifrost_world_init(world, &drawn->config, drawn->by_grants);
    for (uint64_t slot = 0; slot < drawn->slots; slot++)
        bifrost_world_slot(world, drained(drawn, &prng, slot, world->slot_bytes), UINT64_MAX, 0);
}

/* ---- the theorem ------------------------------------------------------------------------------------- */

static void check_bounds(bool even)
{
    static struct bifrost_world world;
    struct drawn drawn;
    uint32_t full = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        run_case(number, even, 0, &drawn, &world);
        if (world.over_slots + world.under_slots + world.dry_slots != 0 ||
            world.most_bytes > drawn.config.buffer_bytes)
            fail_msg(
                "case %u, drain %d: of %llu slots %llu over H, %llu under, %llu dry; %llu of %llu bytes",
                number, (int)drawn.drain, (unsigned long long)world.slots_done,
                (unsigned long long)world.over_slots, (unsigned long long)world.under_slots,
                (unsigned long long)world.dry_slots, (unsigned long long)world.most_bytes,
                (unsigned long long)drawn.config.buffer_bytes);
        full += world.most_bytes > drawn.config.buffer_bytes - 2 * world.slot_bytes;
    }
    assert_true(full > CASES / 10); /* the cases are hard enough to come near to H */
}

static void ten_thousand_links_keep_the_bounds(void **state)
{
    (void)state;
    check_bounds(false);
}

static void so_they_do_with_even_grants(void **state)
{
    (void)state;
    check_bounds(true);
}

/* A packet less, and the worst cases run dry or fall under the bound; so the property can fail. */
static void a_packet_less_is_too_little(void **state)
{
    (void)state;
    static struct bifrost_world world;
    struct drawn drawn;
    uint32_t cases = 0;
    uint32_t under = 0;
    uint32_t dry = 0;
    for (uint32_t number = 0; number < CASES / 10; number++) {
        run_case(number, false, MTU, &drawn, &world);
        if (drawn.drain != DRAIN_FIGURE_5 || world.slot_bytes < 2 * MTU)
            continue;
        cases++;
        under += world.under_slots != 0;
        dry += world.dry_slots != 0;
        assert_int_equal(world.over_slots, 0);
    }
    assert_true(cases > 50 && under == cases);
    assert_true(dry > 0);
}

/* And a buffer that is a packet smaller than the H that the port was told loses bytes. */
static void a_buffer_smaller_than_h_overflows(void **state)
{
    (void)state;
    static struct bifrost_world world;
    struct drawn drawn;
    uint32_t lost = 0;
    for (uint32_t number = 0; number < CASES / 10; number++) {
        run_case(number, false, 0, &drawn, &world);
        lost += world.most_bytes > drawn.config.buffer_bytes - MTU;
    }
    assert_true(lost > 0);
}

/* An upstream that has nothing for a while: L + F is within H all the same. */
static void an_upstream_with_gaps_overflows_nothing(void **state)
{
    (void)state;
    static struct bifrost_world world;
    struct drawn drawn;
    struct lh_prng prng;
    for (uint32_t number = 0; number < CASES / 4; number++) {
        lh_prng_seed(&prng, number);
        draw(&drawn, &prng, number % 2 != 0);
        bifrost_world_init(&world, &drawn.config, drawn.by_grants);
        bool has = true;
        for (uint64_t slot = 0; slot < drawn.slots; slot++) {
            has = lh_prng_below(&prng, drawn.trip / 2 + 1) == 0 ? !has : has;
            uint64_t given = drained(&drawn, &prng, slot, world.slot_bytes);
            bifrost_world_slot(&world, given, has ? UINT64_MAX : lh_prng_below(&prng, 200), 0);
        }
        if (world.over_slots != 0 || world.most_bytes > drawn.config.buffer_bytes)
            fail_msg("case %u", number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_links_keep_the_bounds),
        cmocka_unit_test(so_they_do_with_even_grants),
        cmocka_unit_test(a_packet_less_is_too_little),
        cmocka_unit_test(a_buffer_smaller_than_h_overflows),
        cmocka_unit_test(an_upstream_with_gaps_overflows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
