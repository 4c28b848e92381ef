/*
 * test_flow_machines.c - the port slot by slot, at the boundary, and configurations that cannot work.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/flowcontrol.h>

#include "base/prng.h"
#include "support/bifrost_world.h"

/* ---- test bifrost ---------------------------------------------------------------------------------- */

/* 100 Gbit/s, 100 us one way, slots of 10 us: 125,000 bytes a slot, 2,500,000 a round trip. */
static struct lh_bifrost_config small_config(void)
{
    return (struct lh_bifrost_config){
        .rate_bps = 100000000000,
        .delay_ns = 100000,
        .slot_ns = 10000,
        .delta_bytes = 2500000,
        .buffer_bytes = 2500000 + 250000 + 64,
        .headroom_bytes = 1500,
        .leak_slots = 1,
        .mtu_bytes = 1500,
    };
}

static void an_empty_queue_pauses_nobody(void **state)
{
    (void)state;
    struct lh_bifrost_config config = small_config();
    struct lh_bifrost port;
    lh_bifrost_init(&port, &config, NULL);
    assert_int_equal(port.incoming_bytes, 2625000);
    for (int i = 0; i < 50; i++)
        assert_int_equal(lh_bifrost_on_slot(&port, 0, i % 2 == 0 ? 125000 : 0), 0);
    assert_int_equal(port.incoming_bytes, 2625000);
}

/* A slot that grants nothing is paused for longer; the next frame ends that, though it pauses for nothing. */
static void a_longer_pause_is_ended(void **state)
{
    (void)state;
    struct lh_bifrost_config config = small_config();
    struct lh_bifrost port;
    lh_bifrost_init(&port, &config, NULL);
    assert_int_equal(lh_bifrost_on_slot(&port, 0, 125000), 0);
    assert_false(port.tells);
    assert_int_equal(lh_bifrost_on_slot(&port, 3000000, 125000), 3907);
    assert_true(port.tells && port.stopped);
    assert_int_equal(lh_bifrost_on_slot(&port, 0, 125000), 0);
    assert_true(port.tells && !port.stopped);
    assert_int_equal(lh_bifrost_on_slot(&port, 0, 125000), 0);
    assert_false(port.tells);
}

/* H - L - F decides: a slot of it and nothing is paused, a byte less and it is a quantum. */
static void grants_at_the_boundary(void **state)
{
    (void)state;
    struct lh_bifrost_config config = small_config();
    struct lh_bifrost port;
    const struct {
        uint64_t queue;
        uint32_t quanta;
    } cases[] = {
        {64, 0}, /* 125,000 are left */
        {65, 1}, /* one byte less: 64 paused, 124,936 granted */
        {64 + 64, 1},
        {64 + 65, 2},
        {64 + 124999, 3907}, /* a byte is left, which no pause can say: 1953.125 quanta are the slot */
        {64 + 125000, 3907}, /* nothing: two slots */
        {10000000, 3907},    /* more than nothing cannot be taken back */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lh_bifrost_init(&port, &config, NULL);
        assert_int_equal(lh_bifrost_on_slot(&port, cases[i].queue, 0), cases[i].quanta);
        /* What is booked is what the pause leaves, at most what the link holds. */
        lh_bifrost_init(&port, &config, NULL);
        uint64_t left = cases[i].quanta * 64 < 125000 ? 125000 - cases[i].quanta * 64 : 0;
        lh_bifrost_on_slot(&port, cases[i].queue, 125000);
        assert_int_equal(port.incoming_bytes, 2500000 + left);
    }
}

/* Figure 5: at the full rate, then nothing drains: L rises by a BDP and two slots at most, and no slot is
 * granted from the second one on. */
static void the_worst_case_of_figure_5(void **state)
{
    (void)state;
    struct lh_bifrost_config config = small_config();
    struct bifrost_world world;
    bifrost_world_init(&world, &config, true);
    for (int i = 0; i < 30; i++)
        bifrost_world_slot(&world, 125000, UINT64_MAX, 0);
    assert_int_equal(world.queue_bytes, 0);
    assert_true(bifrost_world_slot(&world, 0, UINT64_MAX, 0) <= 64); /* one slot is enough to know */
    for (int i = 0; i < 60; i++)
        bifrost_world_slot(&world, 0, UINT64_MAX, 0);
    assert_true(world.queue_bytes > config.buffer_bytes - 125000 &&
                world.queue_bytes <= config.buffer_bytes);
    for (int i = 0; i < 60; i++)
        bifrost_world_slot(&world, 125000, UINT64_MAX, 0);
    assert_int_equal(world.dry_slots, 0);
}

/* The share of the full rate that a buffer carries in the long run. */
static double share_of_rate(uint64_t buffer_bytes, bool by_grants)
{
    struct lh_bifrost_config config = small_config();
    struct bifrost_world world;
    config.buffer_bytes = buffer_bytes;
    bifrost_world_init(&world, &config, by_grants);
    for (int i = 0; i < 200; i++)
        bifrost_world_slot(&world, 125000, UINT64_MAX, 0);
    uint64_t before = world.given_bytes;
    for (int i = 0; i < 2000; i++)
        bifrost_world_slot(&world, 125000, UINT64_MAX, 0);
    assert_true(world.most_bytes <= buffer_bytes);
    return (double)(world.given_bytes - before) / (2000 * 125000.0);
}

/* lh_bifrost_check() refuses less. It still loses nothing, and carries what the buffer is of H. */
static void with_less_it_carries_a_part(void **state)
{
    (void)state;
    const uint64_t whole = 2500000 + 250000 + 64;
    for (unsigned tenths = 3; tenths <= 10; tenths++) {
        for (int by_grants = 0; by_grants < 2; by_grants++) {
            double share = share_of_rate(whole * tenths / 10, by_grants != 0);
            assert_true(share > 0.1 * tenths - 0.005 && share < 0.1 * tenths + 0.005);
        }
    }
}

/* But on a link that is empty at first, F as printed never comes down to H, and nobody may ever send. */
static void with_less_than_delta_an_idle_link_stands(void **state)
{
    (void)state;
    struct lh_bifrost_config config = small_config();
    struct lh_bifrost port;
    uint32_t grants[22];
    assert_int_equal(lh_bifrost_grants(&config), 22);
    config.buffer_bytes = config.delta_bytes;
    for (int by_grants = 0; by_grants < 2; by_grants++) {
        uint32_t whole_pauses = 0;
        lh_bifrost_init(&port, &config, by_grants != 0 ? grants : NULL);
        for (int i = 0; i < 1000; i++)
            whole_pauses += lh_bifrost_on_slot(&port, 0, 0) == 3907;
        assert_int_equal(whole_pauses == 1000, by_grants == 0);
    }
}

static void a_paper_setting_is_told_to_be_short(void **state)
{
    (void)state;
    const uint64_t mib = 1048576;
    struct lh_bifrost_config config = {
        .rate_bps = 400000000000,
        .delay_ns = 3000000,
        .slot_ns = 10000,
        .delta_bytes = 300000000,
        .buffer_bytes = 287 * mib,
        .headroom_bytes = 1500,
        .leak_slots = 1,
        .mtu_bytes = 1500,
    };
    assert_int_equal(lh_bifrost_check(&config), -LH_EINVAL); /* by 58,752 bytes */
    assert_non_null(strstr(lh_last_error(), "300941312"));
    config.buffer_bytes += 58751;
    assert_int_equal(lh_bifrost_check(&config), -LH_EINVAL);
    config.buffer_bytes += 1;
    assert_int_equal(lh_bifrost_check(&config), 0);
    config.delta_bytes = 286 * mib; /* less than the link holds */
    assert_int_equal(lh_bifrost_check(&config), -LH_EINVAL);
    config.delay_ns = 0; /* of which nothing is known */
    config.buffer_bytes = 287 * mib;
    assert_int_equal(lh_bifrost_check(&config), 0);
    assert_int_equal(lh_bifrost_grants(&config), 599 + 2);
}

static void refuse(struct lh_bifrost_config config, int code, const char *word)
{
    assert_int_equal(lh_bifrost_check(&config), -code);
    if (strstr(lh_last_error(), word) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", lh_last_error(), word);
}

static void configurations_that_cannot_work_are_refused(void **state)
{
    (void)state;
    struct lh_bifrost_config good = small_config();
    assert_int_equal(lh_bifrost_check(&good), 0);
    struct lh_bifrost_config bad = good;
    bad.rate_bps = 0;
    refuse(bad, LH_ERANGE, "bit/s");
    bad = good;
    bad.rate_bps = 100000000000001;
    refuse(bad, LH_ERANGE, "bit/s");
    bad = good;
    bad.delay_ns = 1000000001;
    refuse(bad, LH_ERANGE, "a second");
    bad = good;
    bad.slot_ns = 5; /* 62.5 bytes, rounded up */
    refuse(bad, LH_ERANGE, "quantum");
    bad = good;
    bad.slot_ns = 100001;
    bad.buffer_bytes = 1 << 30;
    refuse(bad, LH_EINVAL, "delay");
    bad.slot_ns = 100000;
    assert_int_equal(lh_bifrost_check(&bad), 0);
    bad.delay_ns = 1000000; /* 4,194,240 bytes are 65535 quanta: 335,539.2 ns */
    bad.delta_bytes = 25000000;
    bad.slot_ns = 335539;
    assert_int_equal(lh_bifrost_check(&bad), 0);
    bad.slot_ns = 335540; /* from here on a pause may need two frames, which a guard cannot have */
    assert_int_equal(lh_bifrost_check(&bad), 0);
    bad.slot_ns = 335414; /* a guarded one never: that with a packet and a frame */
    bad.guard_slots = 1;
    bad.headroom_bytes = 1 << 20;
    assert_int_equal(lh_bifrost_check(&bad), 0);
    bad.slot_ns++;
    refuse(bad, LH_ERANGE, "one frame can pause");
    bad.headroom_bytes = 1500;
    bad.guard_slots = 0;
    bad.slot_ns = bad.delay_ns = 86000000;
    bad.delta_bytes = bad.buffer_bytes = (uint64_t)1 << 32;
    refuse(bad, LH_ERANGE, "at most 1073741824");
    bad = good;
    bad.delta_bytes--;
    refuse(bad, LH_EINVAL, "raise delta");
    bad = good;
    bad.buffer_bytes--;
    refuse(bad, LH_EINVAL, "raise H");
    bad = good;
    bad.leak_slots = 2;
    refuse(bad, LH_EINVAL, "3000");
    bad.leak_slots = 0;
    refuse(bad, LH_EINVAL, "leak_slots");
    bad = good;
    bad.mtu_bytes = 0;
    refuse(bad, LH_EINVAL, "mtu_bytes");
}

/* A round trip of N slots and a constant drain d: what arrived in a slot is in L, and still in F when line
 * 10 grants, so c(n) = d + c(n-N-2) - c(n-N-1), between nothing and a slot. Neighbours drift apart, until one
 * slot has that of two and the next one nothing. Counted once it is c(n) = d. The way out gets
 * all it takes. */
static void grants_swing_as_printed(void **state)
{
    (void)state;
    struct lh_bifrost_config config = small_config();
    const uint64_t drain = 50000; /* 40 % */
    for (int even = 0; even < 2; even++) {
        static struct bifrost_world world;
        uint64_t maximum = 0, minimum = UINT64_MAX;
        config.even_grants = even != 0;
        bifrost_world_init(&world, &config, true);
        for (unsigned slot = 0; slot < 4000; slot++) {
            uint64_t granted = bifrost_world_slot(&world, drain, UINT64_MAX, 0);
            if (slot < 3000)
                continue;
            maximum = granted > maximum ? granted : maximum;
            minimum = granted < minimum ? granted : minimum;
        }
        assert_int_equal(world.given_bytes, 4000 * drain);
        assert_int_equal(world.dry_slots + world.over_slots + world.under_slots, 0);
        if (even != 0)
            assert_true(minimum >= drain - LH_PFC_QUANTUM_BYTES && maximum <= drain + LH_PFC_QUANTUM_BYTES);
        else
            assert_true(minimum == 0 && maximum >= 2 * drain - LH_PFC_QUANTUM_BYTES);
    }
}

static int run_bifrost(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants_swing_as_printed),
        cmocka_unit_test(an_empty_queue_pauses_nobody),
        cmocka_unit_test(grants_at_the_boundary),
        cmocka_unit_test(a_longer_pause_is_ended),
        cmocka_unit_test(the_worst_case_of_figure_5),
        cmocka_unit_test(with_less_it_carries_a_part),
        cmocka_unit_test(with_less_than_delta_an_idle_link_stands),
        cmocka_unit_test(a_paper_setting_is_told_to_be_short),
        cmocka_unit_test(configurations_that_cannot_work_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test bifrost guard ---------------------------------------------------------------------------- */

/* Pauses that get lost: what they cost, and that a guard bounds it. */

#define CASES 4000u
#define MTU   1500u
#define LATE  (MTU + LH_PFC_FRAME_BYTES)

/* A link of 2 to 60 slots of a round trip, with all that a guard of so many slots needs. */
static struct lh_bifrost_config sampled_config(struct lh_prng *prng, uint32_t guard_slots)
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
static uint64_t max_with_burst(const struct lh_bifrost_config *config, uint32_t lost)
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
        struct lh_bifrost_config config = sampled_config(&prng, 0);
        uint64_t slot = slot_of(&config);
        uint32_t lost = 3 + (uint32_t)lh_prng_below(&prng, 30);
        uint64_t maximum = max_with_burst(&config, lost);
        assert_true(maximum <= config.buffer_bytes + lost * slot);
        assert_true(maximum > config.buffer_bytes + (lost - 3) * slot);
    }
}

static void a_guard_bounds_what_a_burst_lets_through(void **state)
{
    (void)state;
    struct lh_prng prng;
    uint32_t full = 0;
    lh_prng_seed(&prng, 2);
    for (uint32_t i = 0; i < 400; i++) {
        struct lh_bifrost_config config = sampled_config(&prng, 1 + i % 4);
        uint64_t maximum = max_with_burst(&config, (uint32_t)lh_prng_below(&prng, 300));
        uint64_t slot = slot_of(&config);
        assert_true(maximum <= config.buffer_bytes + config.headroom_bytes);
        full += config.guard_slots == 4 && maximum > config.buffer_bytes + slot;
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
    *config = sampled_config(&prng, guard_slots);
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

static int run_bifrost_guard(void)
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

/* ---- test bifrost leaks ---------------------------------------------------------------------------- */

/* Packets that slip past pauses: what the two ways of keeping F make of them. */

#define SLOT  125000u
#define TRIP  20u /* slots */
#define DELTA (TRIP * SLOT)

static const struct lh_bifrost_config bifrost_leaks_config = {
    .rate_bps = 100000000000,
    .delay_ns = 100000,
    .slot_ns = 10000,
    .delta_bytes = DELTA,
    .buffer_bytes = DELTA + 2 * SLOT + 64,
    .headroom_bytes = MTU,
    .leak_slots = 1,
    .mtu_bytes = MTU,
};

/* For so many slots half the rate drains and each pause lets a packet more through; then nothing drains.
 * Returns the most that is held. */
static uint64_t max_after_leaks(bool by_grants, unsigned slots)
{
    struct bifrost_world world;
    bifrost_world_init(&world, &bifrost_leaks_config, by_grants);
    for (unsigned i = 0; i < slots; i++)
        bifrost_world_slot(&world, SLOT / 2, UINT64_MAX, MTU);
    for (unsigned i = 0; i < 3 * TRIP; i++)
        bifrost_world_slot(&world, 0, UINT64_MAX, 0);
    return world.most_bytes;
}

/* What leaked is deducted as soon as it is here; only what is still on its way is not known: a packet a
 * slot of a round trip. */
static void leaks_do_not_add_up_when_grants_are_booked(void **state)
{
    (void)state;
    for (unsigned slots = TRIP; slots < 1000 * TRIP; slots *= 3)
        assert_true(max_after_leaks(true, slots) <= bifrost_leaks_config.buffer_bytes + (TRIP + 2) * MTU);
    assert_true(max_after_leaks(true, 3 * TRIP) > bifrost_leaks_config.buffer_bytes + TRIP / 2 * MTU);
}

/* As the paper prints it F loses the leak, too, when it arrives: L rises, F falls, and in the end F knows
 * nothing of what is on its way. */
static void leaks_add_up_when_arrivals_are_booked(void **state)
{
    (void)state;
    uint64_t few = max_after_leaks(false, 9 * TRIP);
    uint64_t many = max_after_leaks(false, 243 * TRIP);
    assert_true(few > bifrost_leaks_config.buffer_bytes + (TRIP + 2) * MTU);
    assert_true(many > bifrost_leaks_config.buffer_bytes + DELTA / 3);
}

/* One single leak is within the headroom of a packet. */
static void a_single_leak_needs_one_packet_of_headroom(void **state)
{
    (void)state;
    for (int by_grants = 0; by_grants < 2; by_grants++) {
        struct bifrost_world world;
        bifrost_world_init(&world, &bifrost_leaks_config, by_grants != 0);
        for (unsigned i = 0; i < 3 * TRIP; i++)
            bifrost_world_slot(&world, SLOT / 2, UINT64_MAX, i == TRIP ? MTU : 0);
        for (unsigned i = 0; i < 3 * TRIP; i++)
            bifrost_world_slot(&world, 0, UINT64_MAX, 0);
        assert_true(world.most_bytes <= bifrost_leaks_config.buffer_bytes + MTU);
    }
}

static int run_bifrost_leaks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaks_do_not_add_up_when_grants_are_booked),
        cmocka_unit_test(leaks_add_up_when_arrivals_are_booked),
        cmocka_unit_test(a_single_leak_needs_one_packet_of_headroom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test bifrost theorem -------------------------------------------------------------------------- */

/*
 * Theorem 1 of the Bifrost paper as a property of the code: in every slot
 * delta + a slot <= L + F <= H, never a lost byte, never a dry queue while the upstream has something.
 *
 * Each case is a drawn link and a drawn way of draining; a failing one is named by its number, and is drawn
 * again from it. With H a packet too small the same cases must fail.
 */

#define BIFROST_THEOREM_CASES 10000u
#define TRIP_MAX              48u /* slots of a round trip */

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

struct sampled {
    struct lh_bifrost_config config;
    enum drain drain;
    bool by_grants;
    uint64_t slots;
    uint32_t trip;  /* slots of a round trip, rounded up */
    uint64_t level; /* of the drain now */
};

static uint64_t between(struct lh_prng *prng, uint64_t minimum, uint64_t maximum)
{
    return minimum + lh_prng_below(prng, maximum - minimum + 1);
}

static void sample(struct sampled *sampled, struct lh_prng *prng, bool even)
{
    static const uint64_t rates[] = {1000000000,   10000000000,  33333333333,
                                     100000000000, 400000000000, 1600000000000};
    struct lh_bifrost_config *config = &sampled->config;
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
    sampled->drain = (enum drain)lh_prng_below(prng, DRAINS);
    sampled->by_grants = lh_prng_below(prng, 2) == 0;
    config->even_grants = even;
    sampled->trip = lh_bifrost_grants(config) - 1;
    sampled->slots = (uint64_t)sampled->trip * between(prng, 6, 10);
    sampled->level = 0;
}

static uint64_t bifrost_theorem_drained(struct sampled *sampled, struct lh_prng *prng, uint64_t slot,
                                        uint64_t slot_bytes)
{
    uint64_t phase = slot / (2 * (uint64_t)sampled->trip + 2);
    switch (sampled->drain) {
    case DRAIN_FIGURE_5:
        return phase % 2 == 0 ? slot_bytes : 0;
    case DRAIN_ALTERNATE:
        return slot % 2 == 0 ? slot_bytes : 0;
    case DRAIN_CONSTANT:
        sampled->level = slot == 0 ? lh_prng_below(prng, slot_bytes + 1) : sampled->level;
        return sampled->level;
    case DRAIN_RANDOM:
        return lh_prng_below(prng, slot_bytes + 1);
    case DRAIN_BURSTS:
        if (lh_prng_below(prng, sampled->trip) == 0)
            sampled->level = sampled->level == 0 ? slot_bytes : 0;
        return sampled->level;
    default:
        if (lh_prng_below(prng, sampled->trip) == 0)
            sampled->level = lh_prng_below(prng, slot_bytes + 1);
        return sampled->level;
    }
}

/* Runs case `number` with H smaller by so much than it must be. */
static void bifrost_theorem_run_case(uint32_t number, bool even, uint64_t short_bytes,
                                     struct sampled *sampled, struct bifrost_world *world)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, number);
    sample(sampled, &prng, even);
    assert_int_equal(lh_bifrost_check(&sampled->config), 0);
    sampled->config.buffer_bytes -= short_bytes;
    bifrost_world_init(world, &sampled->config, sampled->by_grants);
    for (uint64_t slot = 0; slot < sampled->slots; slot++)
        bifrost_world_slot(world, bifrost_theorem_drained(sampled, &prng, slot, world->slot_bytes),
                           UINT64_MAX, 0);
}

/* ---- the theorem ------------------------------------------------------------------------------------- */

static void check_bounds(bool even)
{
    static struct bifrost_world world;
    struct sampled sampled;
    uint32_t full = 0;
    for (uint32_t number = 0; number < BIFROST_THEOREM_CASES; number++) {
        bifrost_theorem_run_case(number, even, 0, &sampled, &world);
        if (world.over_slots + world.under_slots + world.dry_slots != 0 ||
            world.most_bytes > sampled.config.buffer_bytes)
            fail_msg(
                "case %u, drain %d: of %llu slots %llu over H, %llu under, %llu dry; %llu of %llu bytes",
                number, (int)sampled.drain, (unsigned long long)world.slots_done,
                (unsigned long long)world.over_slots, (unsigned long long)world.under_slots,
                (unsigned long long)world.dry_slots, (unsigned long long)world.most_bytes,
                (unsigned long long)sampled.config.buffer_bytes);
        full += world.most_bytes > sampled.config.buffer_bytes - 2 * world.slot_bytes;
    }
    assert_true(full > BIFROST_THEOREM_CASES / 10); /* the cases are hard enough to come near to H */
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
    struct sampled sampled;
    uint32_t cases = 0;
    uint32_t under = 0;
    uint32_t dry = 0;
    for (uint32_t number = 0; number < BIFROST_THEOREM_CASES / 10; number++) {
        bifrost_theorem_run_case(number, false, MTU, &sampled, &world);
        if (sampled.drain != DRAIN_FIGURE_5 || world.slot_bytes < 2 * MTU)
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
    struct sampled sampled;
    uint32_t lost = 0;
    for (uint32_t number = 0; number < BIFROST_THEOREM_CASES / 10; number++) {
        bifrost_theorem_run_case(number, false, 0, &sampled, &world);
        lost += world.most_bytes > sampled.config.buffer_bytes - MTU;
    }
    assert_true(lost > 0);
}

/* An upstream that has nothing for a while: L + F is within H all the same. */
static void an_upstream_with_gaps_overflows_nothing(void **state)
{
    (void)state;
    static struct bifrost_world world;
    struct sampled sampled;
    struct lh_prng prng;
    for (uint32_t number = 0; number < BIFROST_THEOREM_CASES / 4; number++) {
        lh_prng_seed(&prng, number);
        sample(&sampled, &prng, number % 2 != 0);
        bifrost_world_init(&world, &sampled.config, sampled.by_grants);
        bool has = true;
        for (uint64_t slot = 0; slot < sampled.slots; slot++) {
            has = lh_prng_below(&prng, sampled.trip / 2 + 1) == 0 ? !has : has;
            uint64_t given = bifrost_theorem_drained(&sampled, &prng, slot, world.slot_bytes);
            bifrost_world_slot(&world, given, has ? UINT64_MAX : lh_prng_below(&prng, 200), 0);
        }
        if (world.over_slots != 0 || world.most_bytes > sampled.config.buffer_bytes)
            fail_msg("case %u", number);
    }
}

static int run_bifrost_theorem(void)
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

/* ---- test buffer needs ----------------------------------------------------------------------------- */

/* The closed forms, at the settings of the Bifrost paper. */

/* 400 Gbit/s over 600 km. */
static const struct lh_flow_link long_link = {400000000000, 3000000, 10000, 1, 1500};
/* 100 Gbit/s over 80 km: the testbed. */
static const struct lh_flow_link testbed = {100000000000, 400000, 10000, 1, 1500};

static void a_long_link(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    assert_int_equal(lh_flow_needs(&long_link, &needs), 0);
    assert_int_equal(needs.bdp_bytes, 300000000);
    assert_int_equal(needs.pfc_headroom_bytes, 300003064);
    assert_int_equal(needs.pfc_xoff_bytes, 300003000);
    assert_int_equal(needs.pfc_buffer_bytes, 600006064); /* two BDP */
    assert_int_equal(needs.bifrost_h_bytes, 300000000 + 2 * 500000 + 64);
    /* 600 slots and four, a packet of headroom, what a pause waits behind. */
    assert_int_equal(needs.bifrost_buffer_bytes, needs.bifrost_h_bytes + 605 * 1500 + 1564);
    assert_int_equal(needs.swing_relay_bytes, 300003064);
    assert_true(needs.cbfc_buffer_bytes >= 300000000 * 1.024 && needs.cbfc_buffer_bytes < 307300000);
    assert_false(needs.cbfc_fits_12_bits);
}

/* The testbed's PFC has xoff of 6 MiB, less than it would need, and a BDP of headroom. The paper counts H
 * only. */
static void the_testbed_saves_37_percent(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    assert_int_equal(lh_flow_needs(&testbed, &needs), 0);
    double pfc = 6 * 1048576.0 + (double)needs.bdp_bytes;
    double saved = 1 - (double)needs.bifrost_h_bytes / pfc;
    assert_true(saved > 0.365 && saved < 0.375);
    assert_true(1 - (double)needs.bifrost_buffer_bytes / pfc > 0.36);
    assert_true((double)needs.bifrost_buffer_bytes < 0.52 * (double)needs.pfc_buffer_bytes);
}

/* A frame of 64 bytes in 125,000: 0.0512 %, which is the paper's 0.05 %. */
static void pauses_cost_little(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    assert_int_equal(lh_flow_needs(&testbed, &needs), 0);
    assert_true(needs.bifrost_pause_share > 0.000511 && needs.bifrost_pause_share < 0.000513);
    assert_int_equal((int)(needs.bifrost_pause_share * 1e4 + 0.5), 5);
    assert_int_equal(lh_flow_needs(&long_link, &needs), 0);
    assert_true(needs.bifrost_pause_share < 0.000129);
}

static void rates_that_do_not_divide_are_rounded_up(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    struct lh_flow_link link = {33000000001, 1, 1, 1, 1};
    assert_int_equal(lh_flow_needs(&link, &needs), 0);
    assert_int_equal(needs.bdp_bytes, 9); /* 8.25 */
    link = (struct lh_flow_link){100000000000000, 1000000000, 1000000000, 1, 1500};
    assert_int_equal(lh_flow_needs(&link, &needs), 0);
    assert_int_equal(needs.bdp_bytes, 25000000000000);
}

static void values_of_no_link_are_refused(void **state)
{
    (void)state;
    struct lh_flow_needs needs;
    const struct lh_flow_link bad[] = {
        {0, 1, 1, 1, 1},
        {100000000000001, 1, 1, 1, 1},
        {100000000000, 1000000001, 1, 1, 1},
        {100000000000, 1, 0, 1, 1},
        {100000000000, 1, 1000000001, 1, 1},
        {100000000000, 1, 1, 0, 1},
        {100000000000, 1, 1, 1, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(lh_flow_needs(&bad[i], &needs), -LH_ERANGE);
}

static int run_buffer_needs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_link),
        cmocka_unit_test(the_testbed_saves_37_percent),
        cmocka_unit_test(pauses_cost_little),
        cmocka_unit_test(rates_that_do_not_divide_are_rounded_up),
        cmocka_unit_test(values_of_no_link_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_bifrost() + run_bifrost_guard() + run_bifrost_leaks() + run_bifrost_theorem() +
           run_buffer_needs();
}
