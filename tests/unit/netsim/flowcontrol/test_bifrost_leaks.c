/*
 * test_bifrost_leaks.c - packets that slip past pauses: what the two ways of keeping F make of them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/bifrost_world.h"

#define SLOT  125000u
#define MTU   1500u
#define TRIP  20u /* slots */
#define DELTA (TRIP * SLOT)

static const struct lh_bifrost_config config = {
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
static uint64_t most_after_leaks(bool by_grants, unsigned slots)
{
    struct bifrost_world world;
    bifrost_world_init(&world, &config, by_grants);
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
        assert_true(most_after_leaks(true, slots) <= config.buffer_bytes + (TRIP + 2) * MTU);
    assert_true(most_after_leaks(true, 3 * TRIP) > config.buffer_bytes + TRIP / 2 * MTU);
}

/* As the paper prints it F loses the leak, too, when it arrives: L rises, F falls, and in the end F knows
 * nothing of what is on its way. */
static void leaks_add_up_when_arrivals_are_booked(void **state)
{
    (void)state;
    uint64_t few = most_after_leaks(false, 9 * TRIP);
    uint64_t many = most_after_leaks(false, 243 * TRIP);
    assert_true(few > config.buffer_bytes + (TRIP + 2) * MTU);
    assert_true(many > config.buffer_bytes + DELTA / 3);
}

/* One single leak is within the headroom of a packet. */
static void a_single_leak_needs_one_packet_of_headroom(void **state)
{
    (void)state;
    for (int by_grants = 0; by_grants < 2; by_grants++) {
        struct bifrost_world world;
        bifrost_world_init(&world, &config, by_grants != 0);
        for (unsigned i = 0; i < 3 * TRIP; i++)
            bifrost_world_slot(&world, SLOT / 2, UINT64_MAX, i == TRIP ? MTU : 0);
        for (unsigned i = 0; i < 3 * TRIP; i++)
            bifrost_world_slot(&world, 0, UINT64_MAX, 0);
        assert_true(world.most_bytes <= config.buffer_bytes + MTU);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaks_do_not_add_up_when_grants_are_booked),
        cmocka_unit_test(leaks_add_up_when_arrivals_are_booked),
        cmocka_unit_test(a_single_leak_needs_one_packet_of_headroom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
