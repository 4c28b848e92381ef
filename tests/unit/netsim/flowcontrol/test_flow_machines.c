/*
 * test_bifrost.c - the port slot by slot, at the boundary, and configurations that cannot work.
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

#include "support/bifrost_world.h"

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
    refuse(bad, LH_ERANGE, "16 bits");
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
        uint64_t most = 0, least = UINT64_MAX;
        config.even_grants = even != 0;
        bifrost_world_init(&world, &config, true);
        for (unsigned slot = 0; slot < 4000; slot++) {
            uint64_t granted = bifrost_world_slot(&world, drain, UINT64_MAX, 0);
            if (slot < 3000)
                continue;
            most = granted > most ? granted : most;
            least = granted < least ? granted : least;
        }
        assert_int_equal(world.given_bytes, 4000 * drain);
        assert_int_equal(world.dry_slots + world.over_slots + world.under_slots, 0);
        if (even != 0)
            assert_true(least >= drain - LH_PFC_QUANTUM_BYTES && most <= drain + LH_PFC_QUANTUM_BYTES);
        else
            assert_true(least == 0 && most >= 2 * drain - LH_PFC_QUANTUM_BYTES);
    }
}

int main(void)
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
