/*
 * A long link between two switches, under each way of flow control: nothing is lost, the receiver's link is
 * never idle while the senders have something, and what is held stays within what the way needs. With less,
 * each of these fails.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/long_link.h"

static void check_whole(const struct way *way)
{
    netsim_world_check(&world);
    if (world.net.network.totals.dropped_packets != 0 || world.net.network.totals.repeated_packets != 0)
        fail_msg("%s: %llu packets dropped", way->name,
                 (unsigned long long)world.net.network.totals.dropped_packets);
    if (long_link()->held_max_bytes > way->needs_bytes)
        fail_msg("%s: %llu bytes held", way->name, (unsigned long long)long_link()->held_max_bytes);
}

/* How long the receivers' links take for all, from the first byte there to the last acknowledgement. */
static netsim_time busy_ps(uint64_t bytes, uint32_t receivers)
{
    uint64_t packets = HOSTS / receivers * ((bytes + PAYLOAD - 1) / PAYLOAD);
    return packets * FRAME * 80 + 2 * DELAY_US * NETSIM_PS_PER_US + 10 * NETSIM_PS_PER_US;
}

/* A guarded link has frames until it is at rest: all that was granted has come, and the last frame. */
static netsim_time rest_ps(const struct way *way)
{
    return way->guard_slots != 0 ? (3 * DELAY_US + 30) * NETSIM_PS_PER_US : 0;
}

static void a_free_way_is_used_in_full(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        open_flows(&config, 8000000, HOSTS);
        netsim_world_watch(&world);
        netsim_world_finish_in_steps(&world, 50 * NETSIM_PS_PER_US);
        netsim_world_check_end(&world);
        netsim_world_check_done(&world);
        check_whole(&ways[w]);
        assert_true(world.net.network.now_ps < busy_ps(8000000, HOSTS) + rest_ps(&ways[w]));
        netsim_world_close(&world);
    }
}

/* Four to one: the long link must come down to a quarter, and the receiver's is never idle. */
static void a_narrow_way_out_is_never_idle(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        open_flows(&config, 8000000, 1);
        netsim_world_finish(&world);
        netsim_world_check_done(&world);
        check_whole(&ways[w]);
        assert_true(long_link()->held_max_bytes > BDP / 4);
        if (world.net.network.now_ps > busy_ps(8000000, 1) + rest_ps(&ways[w]))
            fail_msg("%s: %llu ps", ways[w].name, (unsigned long long)world.net.network.now_ps);
        netsim_world_close(&world);
    }
}

static void a_stop_overflows_nothing_and_costs_only_itself(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        stop_and_go(&config, 20000000);
        netsim_world_check_done(&world);
        check_whole(&ways[w]);
        assert_true(long_link()->held_max_bytes > BDP * 9 / 10);
        netsim_time stopped_ps = 4 * 333 * NETSIM_PS_PER_US + rest_ps(&ways[w]);
        if (world.net.network.now_ps > busy_ps(20000000, HOSTS) + stopped_ps + 20 * NETSIM_PS_PER_US)
            fail_msg("%s: %llu ps", ways[w].name, (unsigned long long)world.net.network.now_ps);
        netsim_world_close(&world);
    }
}

/* Signals that wait behind packets, as the way back is full, too; and a way out that stands
 * still for forty round trips. Whatever slips past a pause then adds up. */
static void a_long_stop_with_a_full_way_back(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        struct netsim_flow_request flows[2 * HOSTS];
        for (uint32_t i = 0; i < HOSTS; i++) {
            flows[2 * i] = (struct netsim_flow_request){60000000, 0, i, HOSTS + i};
            flows[2 * i + 1] = (struct netsim_flow_request){120000000, 0, HOSTS + i, i};
        }
        netsim_world_open(&world, &config, flows, 2 * HOSTS, 1);
        assert_int_equal(netsim_run(&world.net, NETSIM_PS_PER_MS, UINT64_MAX), 0);
        stop_receivers(HOSTS, true);
        assert_int_equal(netsim_run(&world.net, 9 * NETSIM_PS_PER_MS, UINT64_MAX), 0);
        stop_receivers(HOSTS, false);
        assert_int_equal(netsim_run(&world.net, NETSIM_PS_PER_S, UINT64_MAX), 1);
        netsim_world_check_done(&world);
        if (w != WAY_PRINTED && world.net.network.totals.dropped_packets != 0)
            fail_msg("%s: %llu packets dropped", ways[w].name,
                     (unsigned long long)world.net.network.totals.dropped_packets);
        netsim_world_close(&world);
    }
}

/* A slot of 4.5 MB, which no frame can pause: a second one follows. */
static void a_slot_longer_than_a_frame_can_pause(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_BIFROST]);
    config.longs.slot_ps = 90 * NETSIM_PS_PER_US;
    stop_and_go(&config, 20000000);
    netsim_world_check_done(&world);
    netsim_world_check(&world);
    assert_int_equal(world.net.network.totals.dropped_packets, 0);
    assert_true(long_link()->held_max_bytes > BDP + 4500000);
    assert_true(long_link()->held_max_bytes <= BDP + 2 * 4500000 + FEW);
    netsim_time stopped_ps = 4 * 333 * NETSIM_PS_PER_US;
    assert_true(world.net.network.now_ps < busy_ps(20000000, HOSTS) + stopped_ps + 20 * NETSIM_PS_PER_US);
    netsim_world_close(&world);
}

/* Flows go one way: back over the long link come pauses, resumes and acknowledgements, and no payload. */
static void only_data_is_payload(void **state)
{
    (void)state;
    for (size_t w = 0; w < WAYS; w++) {
        struct netsim_config config = way_config(&ways[w]);
        stop_and_go(&config, 20000000);
        const struct netsim_port *there = long_link();
        const struct netsim_port *back = &world.net.network.ports[there->reverse];
        assert_int_equal(there->sent_payload_bytes,
                         HOSTS * 20000000 + world.net.network.totals.repeated_packets * PAYLOAD);
        assert_true(world.net.network.totals.pauses + world.net.network.totals.credits > 0 &&
                    back->sent_bytes > 0);
        assert_int_equal(back->sent_payload_bytes, 0);
        netsim_world_close(&world);
    }
}

/* ---- and with less it fails -------------------------------------------------------------------------- */

static uint64_t dropped(const struct netsim_config *config)
{
    struct netsim_config patient = *config;
    patient.transport.rto = 3;
    stop_and_go(&patient, 20000000);
    uint64_t count = world.net.network.totals.dropped_packets;
    netsim_world_close(&world);
    return count;
}

static void too_small_a_buffer_drops(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_PFC]);
    config.longs.xoff_bytes = BDP;
    config.longs.buffer_bytes = 2 * BDP - BDP / 10;
    assert_true(dropped(&config) > 0);
    config.longs.buffer_bytes = 2 * BDP + FEW;
    assert_int_equal(dropped(&config), 0);

    config = way_config(&ways[WAY_BIFROST]); /* a delta that is not that of the link */
    config.longs.delta_bytes = BDP * 8 / 10;
    assert_true(dropped(&config) > 0);
    config.longs.delta_bytes = BDP + FRAME + 64;
    assert_int_equal(dropped(&config), 0);

    config = way_config(&ways[WAY_SWING]);
    config.longs.buffer_bytes = BDP * 9 / 10;
    assert_true(dropped(&config) > 0);
}

/* A quarter of the buffer: as long as the way out is free nothing is lost, and the link is used in full.
 * When it stops the rest is dropped and sent again, and no grant or credit is lost with it. */
static void an_overbooked_buffer_drops_only_when_it_is_needed(void **state)
{
    (void)state;
    for (size_t w = WAY_BIFROST; w <= WAY_CBFC; w++) {
        struct netsim_config config = way_config(&ways[w]);
        config.longs.overbook = 4;
        open_flows(&config, 8000000, HOSTS);
        netsim_world_finish(&world);
        netsim_world_check_done(&world);
        check_whole(&ways[w]);
        assert_true(world.net.network.now_ps < busy_ps(8000000, HOSTS) + rest_ps(&ways[w]));
        netsim_world_close(&world);
        config.transport.rto = 3;
        stop_and_go(&config, 20000000);
        netsim_world_check_done(&world);
        netsim_world_check_end(&world);
        assert_true(world.net.network.totals.dropped_packets > (uint64_t)BDP / FRAME / 2);
        uint64_t spare = 30 * FRAME + ways[w].guard_slots * 1000000;
        assert_in_range(long_link()->held_max_bytes, BDP / 4 - FRAME, (ways[w].needs_bytes + spare) / 4);
        netsim_world_close(&world);
    }
}

/* PFC that pauses at a tenth of what it should: it loses nothing, and its receiver runs dry. */
static void too_low_a_threshold_runs_dry(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_PFC]);
    config.longs.xoff_bytes = BDP / 10;
    config.longs.buffer_bytes = BDP / 10 + BDP + FEW;
    stop_and_go(&config, 20000000);
    assert_int_equal(world.net.network.totals.dropped_packets, 0);
    netsim_time stopped_ps = 4 * 333 * NETSIM_PS_PER_US;
    assert_true(world.net.network.now_ps > busy_ps(20000000, HOSTS) + stopped_ps + 100 * NETSIM_PS_PER_US);
    netsim_world_close(&world);
}

/* Credits told in steps need so much more of a buffer; with that they are as good. */
static void credits_in_steps_need_the_step(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    const uint64_t step = BDP / 4;
    config.longs.credit_step_bytes = step;
    for (unsigned i = 0; i < 2; i++) {
        config.longs.buffer_bytes = ways[WAY_CBFC].needs_bytes + i * step;
        open_flows(&config, 20000000, HOSTS);
        netsim_world_finish(&world);
        netsim_world_check_done(&world);
        assert_int_equal(world.net.network.totals.dropped_packets, 0);
        assert_true(world.net.network.totals.credits > 0 &&
                    world.net.network.totals.credits < HOSTS * 20000000 / PAYLOAD / 100);
        bool full = world.net.network.now_ps < busy_ps(20000000, HOSTS);
        assert_int_equal(full, i == 1);
        netsim_world_close(&world);
    }
}

/* The longest step that is not refused: with packets of any length nobody waits for good. */
static void the_longest_step_still_goes_on(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_CBFC]);
    config.longs.buffer_bytes = 10 * FRAME;
    config.longs.credit_step_bytes = 9 * FRAME - 128;
    for (uint64_t bytes = 1; bytes < 3 * PAYLOAD; bytes += 61) {
        open_flows(&config, 100 * PAYLOAD + bytes, 2);
        netsim_world_finish(&world);
        netsim_world_check_done(&world);
        netsim_world_close(&world);
    }
}

/* For so long half the rate leaves, then nothing. Returns the packets dropped. */
static uint64_t dropped_after(const struct way *way, netsim_time after_ps)
{
    struct netsim_config config = way_config(way);
    config.transport.rto = 3;
    open_flows(&config, 400000000, 2);
    assert_int_equal(netsim_run(&world.net, after_ps, UINT64_MAX), 0);
    assert_int_equal(world.net.network.totals.dropped_packets, 0);
    stop_receivers(2, true);
    assert_int_equal(netsim_run(&world.net, after_ps + 2 * NETSIM_PS_PER_MS, UINT64_MAX), 0);
    uint64_t drops = world.net.network.totals.dropped_packets;
    netsim_world_check(&world);
    netsim_world_close(&world);
    return drops;
}

/* Nearly each pause lets a part of a packet through. F of the proof knows, and nothing is lost however long
 * that went on. F as printed does not: it is too small by all that ever leaked. */
static void leaks_add_up_only_as_printed(void **state)
{
    (void)state;
    const netsim_time few_ps = 5 * NETSIM_PS_PER_MS;
    uint64_t trip_slots = 2 * DELAY_US / 10;
    assert_int_equal(dropped_after(&ways[WAY_BIFROST], few_ps), 0);
    assert_int_equal(dropped_after(&ways[WAY_BIFROST], 8 * few_ps), 0);
    uint64_t few = dropped_after(&ways[WAY_PRINTED], few_ps);
    uint64_t many = dropped_after(&ways[WAY_PRINTED], 8 * few_ps);
    assert_true(few > 2 * trip_slots && many > 6 * few);
    /* No pause lets more than a packet through, and each second slot of these has no pause. */
    assert_true(many < 8 * few_ps / NETSIM_PS_PER_US / 10 / 2);
}

/* Each pause lets a whole packet through, which is more than its slot grants: F knows of nearly nothing that
 * is on the link. When the drain stops H is exceeded by what was under way; auto has the room. */
static void a_slot_shorter_than_a_packet_needs_more_than_h(void **state)
{
    (void)state;
    struct netsim_config config = way_config(&ways[WAY_BIFROST]);
    config.longs.slot_ps = 60 * NETSIM_PS_PER_NS; /* 3,000 bytes */
    open_flows(&config, 400000000, 2);
    assert_int_equal(netsim_run(&world.net, 4 * NETSIM_PS_PER_MS, UINT64_MAX), 0);
    stop_receivers(2, true);
    assert_int_equal(netsim_run(&world.net, 5 * NETSIM_PS_PER_MS, UINT64_MAX), 0);
    uint64_t h = world.net.control.long_links[long_link()->long_link].bifrost.buffer_bytes;
    assert_int_equal(world.net.network.totals.dropped_packets, 0);
    assert_in_range(long_link()->held_max_bytes, h + h / 10, h + BDP);
    netsim_world_close(&world);
}

/* What the long link carries in each slot at a constant drain of half its rate. As printed a slot has all and
 * the next one nothing; with even grants each has half, give or take the packet that had begun. */
static void even_grants_do_not_swing(void **state)
{
    (void)state;
    const uint64_t slot_bytes = 500000;
    for (int even = 0; even < 2; even++) {
        struct netsim_config config = way_config(&ways[WAY_BIFROST]);
        uint64_t maximum = 0, minimum = UINT64_MAX;
        config.longs.even_grants = even != 0;
        open_flows(&config, 400000000, 2);
        for (unsigned slot = 0; slot < 1000; slot++) {
            uint64_t before = long_link()->sent_bytes;
            assert_int_equal(netsim_run(&world.net, (slot + 1) * config.longs.slot_ps, UINT64_MAX), 0);
            uint64_t sent = long_link()->sent_bytes - before;
            maximum = slot >= 600 && sent > maximum ? sent : maximum;
            minimum = slot >= 600 && sent < minimum ? sent : minimum;
        }
        check_whole(&ways[WAY_BIFROST]);
        if (even != 0)
            assert_true(minimum > slot_bytes / 2 - 3 * FRAME && maximum < slot_bytes / 2 + 3 * FRAME);
        else
            assert_true(minimum == 0 && maximum >= slot_bytes);
        netsim_world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_way_is_used_in_full),
        cmocka_unit_test(a_narrow_way_out_is_never_idle),
        cmocka_unit_test(a_stop_overflows_nothing_and_costs_only_itself),
        cmocka_unit_test(a_long_stop_with_a_full_way_back),
        cmocka_unit_test(a_slot_longer_than_a_frame_can_pause),
        cmocka_unit_test(too_small_a_buffer_drops),
        cmocka_unit_test(an_overbooked_buffer_drops_only_when_it_is_needed),
        cmocka_unit_test(too_low_a_threshold_runs_dry),
        cmocka_unit_test(credits_in_steps_need_the_step),
        cmocka_unit_test(the_longest_step_still_goes_on),
        cmocka_unit_test(leaks_add_up_only_as_printed),
        cmocka_unit_test(a_slot_shorter_than_a_packet_needs_more_than_h),
        cmocka_unit_test(even_grants_do_not_swing),
        cmocka_unit_test(only_data_is_payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
