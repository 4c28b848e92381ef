/*
 * test_bifrost_guard.c - pauses that get lost: what they cost, and that a guard bounds it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/bifrost_world.h"

#define CASES 4000u
#define MTU   1500u
#define LATE  (MTU + LH_PFC_FRAME_BYTES)

/* A link of 2 to 60 slots of a round trip, with all that a guard of so many slots needs. */
static struct lh_bifrost_config drawn_config(struct lh_prng *prng, uint32_t guard_slots)
{
    struct lh_bifrost_config config = {
        .rate_bps = 100000000000, .leak_slots = 1, .mtu_bytes = MTU, .guard_slots = guard_slots};
    config.slot_ns = 1000 + lh_prng_below(prng, 20000);
    config.delay_ns = config.slot_ns + lh_prng_below(prng, 29 * config.slot_ns);
    struct lh_flow_needs needs;
    const struct lh_flow_link link = {config.rate_bps, config.delay_ns, config.slot_ns, 1, MTU};
    assert_int_equal(lh_flow_needs(&link, &needs), 0);
    config.delta_bytes = needs.bdp_bytes;
    config.buffer_bytes = needs.bifrost_h_bytes;
    config.headroom_bytes = MTU + lh_bifrost_guard_headroom(&config);
    assert_int_equal(lh_bifrost_check(&config), 0);
    return config;
}

static void begin(struct bifrost_world *world, const struct lh_bifrost_config *config)
{
    bifrost_world_init(world, config, true);
    world->guard_slots = config->guard_slots;
    world->slack_bytes = LATE;
}

static uint32_t trip_of(const struct lh_bifrost_config *config)
{
    return lh_bifrost_grants(config);
}

/* Full rate or nothing, for random times of about a round trip. */
static uint64_t drained(uint64_t *level, struct lh_prng *prng, uint32_t trip, uint64_t slot_bytes)
{
    if (lh_prng_below(prng, trip) == 0)
        *level = *level == 0 ? slot_bytes : 0;
    return *level;
}

static uint64_t slot_of(const struct lh_bifrost_config *config)
{
    return (config->rate_bps * config->slot_ns + 7999999999u) / 8000000000u;
}

/* ---- a burst, at the worst moment -------------------------------------------------------------------- */

/* The drain stops, and from then on so many frames are lost. The most that is held. */
static uint64_t most_with_burst(const struct lh_bifrost_config *config, uint32_t lost)
{
    static struct bifrost_world world;
    begin(&world, config);
    for (uint32_t i = 0; i < 2 * trip_of(config); i++)
        bifrost_world_slot(&world, world.slot_bytes, UINT64_MAX, 0);
    for (uint32_t i = 0; i < lost; i++)
        bifrost_world_deaf_slot(&world, 0);
    for (uint32_t i = 0; i < 3 * trip_of(config); i++)
        bifrost_world_slot(&world, 0, UINT64_MAX, 0);
    return world.most_bytes;
}

/* Without a guard H is exceeded by the slots that were not paused: all but the first, which is still within
 * H, and the rest of a second. */
static void a_burst_lets_whole_slots_through(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (int i = 0; i < 200; i++) {
        struct lh_bifrost_config config = drawn_config(&prng, 0);
        uint64_t slot = slot_of(&config);
        uint32_t lost = 3 + (uint32_t)lh_prng_below(&prng, 30);
        uint64_t most = most_with_burst(&config, lost);
        assert_true(most <= config.buffer_bytes + lost * slot);
        assert_true(most > config.buffer_bytes + (lost - 3) * slot);
    }
}

static void a_guard_bounds_what_a_burst_lets_through(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint32_t full = 0;
    lh_prng_seed(&prng, 2);
    for (uint32_t i = 0; i < 400; i++) {
        struct lh_bifrost_config config = drawn_config(&prng, 1 + i % 4);
        uint64_t most = most_with_burst(&config, (uint32_t)lh_prng_below(&prng, 300));
        uint64_t slot = slot_of(&config);
        assert_true(most <= config.buffer_bytes + config.headroom_bytes);
        full += config.guard_slots == 4 && most > config.buffer_bytes + slot;
    }
    assert_true(full > 50); /* so the slots of the headroom are needed */
}

/* ---- any losses -------------------------------------------------------------------------------------- */

static const uint32_t loss_of_1000[] = {1, 10, 100, 500, 900, 999};

/* Runs one case; returns the slots that ran dry more than two round trips after a lost frame. */
static uint64_t run_case(uint32_t number, uint32_t guard_slots, struct lh_bifrost_config *config,
                         struct bifrost_world *world)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, number);
    *config = drawn_config(&prng, guard_slots);
    uint32_t trip = trip_of(config);
    uint32_t loss = loss_of_1000[lh_prng_below(&prng, 6)];
    uint32_t burst = 1 + (uint32_t)lh_prng_below(&prng, trip);
    uint64_t level = 0;
    uint64_t dry = 0;
    uint32_t left = 0;
    uint32_t heard = 0;
    begin(world, config);
    for (uint32_t slot = 0; slot < 30 * trip; slot++) {
        uint64_t drain = drained(&level, &prng, trip, world->slot_bytes);
        uint64_t dry_before = world->dry_slots;
        if (left == 0 && lh_prng_below(&prng, 1000 * burst) < loss && slot < 20 * trip)
            left = 1 + (uint32_t)lh_prng_below(&prng, 2 * burst);
        if (left > 0)
            bifrost_world_deaf_slot(world, drain);
        else
            bifrost_world_slot(world, drain, UINT64_MAX, 0);
        heard = left > 0 ? 0 : heard + 1;
        left -= left > 0;
        dry += heard > 2 * trip + 4 ? world->dry_slots - dry_before : 0;
    }
    return dry;
}

/* Whichever frames are lost. And two round trips after the last the queue never runs dry: in the first what
 * was granted and not heard is still booked, in the second what was granted too little for it is missing. */
static void with_a_guard_of_one_slot_no_loss_overflows(void **state)
{
    (void)state;
    static struct bifrost_world world;
    struct lh_bifrost_config config;
    uint32_t beyond = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        uint64_t dry = run_case(number, 1, &config, &world);
        uint64_t room = config.buffer_bytes + config.headroom_bytes;
        if (world.most_bytes > room || dry != 0)
            fail_msg("case %u: %llu of %llu bytes, %llu slots dry", number,
                     (unsigned long long)world.most_bytes, (unsigned long long)room,
                     (unsigned long long)dry);
        beyond += world.most_bytes > config.buffer_bytes;
    }
    assert_true(beyond > CASES / 20); /* so some of the headroom is needed */
}

/* The same losses without it. */
static void without_a_guard_the_same_losses_overflow(void **state)
{
    (void)state;
    static struct bifrost_world world;
    struct lh_bifrost_config config;
    uint32_t over = 0;
    for (uint32_t number = 0; number < CASES / 4; number++) {
        run_case(number, 0, &config, &world);
        over += world.most_bytes > config.buffer_bytes + trip_of(&config) * LATE;
    }
    assert_true(over > CASES / 16);
}

/* ---- its numbers ------------------------------------------------------------------------------------- */

static void what_a_guard_needs(void **state)
{
    (void)state;
    /* 100 Gbit/s, 100 us, slots of 10 us: 22 slots of grants. 1,564 bytes take 125.12 ns. */
    struct lh_bifrost_config config = {
        .rate_bps = 100000000000,
        .delay_ns = 100000,
        .slot_ns = 10000,
        .delta_bytes = 2500000,
        .buffer_bytes = 2500000 + 250000 + 64,
        .headroom_bytes = MTU,
        .leak_slots = 1,
        .mtu_bytes = MTU,
    };
    assert_int_equal(lh_bifrost_guard_ns(&config), 0);
    assert_int_equal(lh_bifrost_guard_headroom(&config), 0);
    config.guard_slots = 3;
    assert_int_equal(lh_bifrost_guard_ns(&config), 30126);
    assert_int_equal(lh_bifrost_guard_headroom(&config), 2 * 125000 + 24 * LATE);
    assert_int_equal(lh_bifrost_check(&config), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "guard of 3 slots"));
    config.headroom_bytes += 2 * 125000 + 24 * LATE;
    assert_int_equal(lh_bifrost_check(&config), 0);
    config.headroom_bytes--;
    assert_int_equal(lh_bifrost_check(&config), -LH_EINVAL);
    config.guard_slots = 1001;
    assert_int_equal(lh_bifrost_check(&config), -LH_ERANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_lets_whole_slots_through),
        cmocka_unit_test(a_guard_bounds_what_a_burst_lets_through),
        cmocka_unit_test(with_a_guard_of_one_slot_no_loss_overflows),
        cmocka_unit_test(without_a_guard_the_same_losses_overflow),
        cmocka_unit_test(what_a_guard_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
