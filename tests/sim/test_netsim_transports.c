/*
 * What repeats lost packets: go-back-N and IRN, beside selective repeat.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/netsim_world.h"

#define FRAME_PS 333920u /* a full packet of 4,174 bytes at 100 Gbit/s */
#define WINDOW   64u

static struct netsim_config config_of(enum netsim_transport_kind kind, double loss)
{
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.topology.faults.loss = loss;
    config.transport.kind = kind;
    config.transport.window_bytes = WINDOW * 4096;
    return config;
}

/* One flow of so many packets through the middle, which has the faults. */
static void open_flow(struct netsim_world *world, const struct netsim_config *config, uint32_t packets)
{
    const struct netsim_flow_request flow = {(uint64_t)packets * 4096, 0, 0, 4};
    netsim_world_open(world, config, &flow, 1, 21);
    netsim_world_watch(world);
}

static void finish(struct netsim_world *world)
{
    netsim_world_finish(world);
    netsim_world_check_end(world);
    netsim_world_check_done(world);
}

static void without_loss_all_are_alike(void **state)
{
    (void)state;
    static struct netsim_world world;
    uint64_t hashes[3] = {0};
    for (unsigned kind = NETSIM_SR; kind <= NETSIM_GBN; kind++) {
        struct netsim_config config = config_of((enum netsim_transport_kind)kind, 0);
        config.workload.rounds = 3;
        netsim_world_open(&world, &config, NULL, 0, 4);
        netsim_world_watch(&world);
        finish(&world);
        assert_int_equal(world.net.network.totals.repeated_packets, 0);
        hashes[kind] = world.seen.hash;
        netsim_world_close(&world);
    }
    assert_true(hashes[NETSIM_SR] == hashes[NETSIM_IRN] && hashes[NETSIM_SR] == hashes[NETSIM_GBN]);
}

/* ---- one loss, at a packet that is chosen ------------------------------------------------------------ */

/* Takes packets away as they enter the middle, the first so often that they do: the link's loss is 1 just
 * then. */
struct thief {
    struct netsim_world *world;
    uint32_t host_link;
    uint32_t middle;
    uint32_t first; /* of those that are taken */
    uint32_t last;
    unsigned maximum; /* so many are, repeated ones too */
    unsigned taken;
    netsim_time first_repeat_ps;
};

static void on_packet(void *context, const struct lh_netsim_packet *packet)
{
    struct thief *thief = context;
    struct lh_link_spec *spec = &thief->world->net.network.more[thief->middle].faults->spec;
    if (packet->kind == LH_NETSIM_DATA && packet->link == thief->host_link && packet->repeated &&
        thief->first_repeat_ps == 0)
        thief->first_repeat_ps = packet->at_ps;
    if (packet->link != thief->middle || packet->kind != LH_NETSIM_DATA)
        return;
    bool taken = packet->sequence >= thief->first && packet->sequence <= thief->last &&
                 thief->taken < thief->maximum;
    spec->loss = taken ? 1 : 0;
    thief->taken += taken;
}

static struct thief steal(struct netsim_world *world, struct netsim_config *config, uint32_t packets,
                          uint32_t first, uint32_t last, unsigned maximum)
{
    config->topology.faults.loss = 1e-9; /* so that the middle has faults at all */
    const struct netsim_flow_request flow = {(uint64_t)packets * 4096, 0, 0, 4};
    netsim_world_open(world, config, &flow, 1, 21);
    uint32_t left = world->graph.hosts;
    struct thief thief = {.world = world,
                          .host_link = netsim_host_port(0),
                          .middle = netsim_world_link(world, left, left + 1),
                          .first = first,
                          .last = last,
                          .maximum = maximum};
    world->net.network.watcher = on_packet;
    world->net.network.watcher_context = &thief;
    world->net.network.ports[thief.host_link].flags |= NETSIM_PORT_WATCHED;
    world->net.network.ports[thief.middle].flags |= NETSIM_PORT_WATCHED;
    netsim_world_finish(world);
    netsim_world_check_end(world);
    netsim_world_check_done(world);
    assert_int_equal(thief.taken, maximum);
    return thief;
}

/* All that was in flight behind the gap goes again; the gap is reported once. */
static void go_back_repeats_all_behind_a_gap(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = config_of(NETSIM_GBN, 0);
    steal(&world, &config, 1000, 500, 500, 1);
    const struct lh_netsim_totals *totals = &world.net.network.totals;
    assert_int_equal(totals->timeouts, 0);
    /* A round trip is 10 frames and the report's way back: at least those, at most the window. */
    uint64_t behind = world.net.transport.flows[0].sender.base_rtt_ps / FRAME_PS;
    assert_true(behind > 10 && behind < WINDOW);
    assert_true(totals->repeated_packets >= behind && totals->repeated_packets <= behind + 2);
    /* Answered: the thousand, and one report. Of the others behind the gap, nothing. */
    assert_int_equal(totals->ack_packets, 1001);
    netsim_world_close(&world);
}

static void selective_repeat_and_irn_repeat_one(void **state)
{
    (void)state;
    static struct netsim_world world;
    for (unsigned kind = NETSIM_SR; kind <= NETSIM_IRN; kind++) {
        struct netsim_config config = config_of((enum netsim_transport_kind)kind, 0);
        struct thief thief = steal(&world, &config, 1000, 500, 500, 1);
        assert_int_equal(world.net.network.totals.repeated_packets, 1);
        assert_int_equal(world.net.network.totals.timeouts, 0);
        /* With IRN the next packet tells, with selective repeat the third. */
        netsim_time told_ps = 500 * FRAME_PS + world.net.transport.flows[0].sender.base_rtt_ps;
        netsim_time later_ps = (kind == NETSIM_IRN ? 1 : 3) * FRAME_PS;
        assert_true(thief.first_repeat_ps >= told_ps + later_ps);
        assert_true(thief.first_repeat_ps < told_ps + later_ps + FRAME_PS);
        netsim_world_close(&world);
    }
}

/* ---- go-back-N --------------------------------------------------------------------------------------- */

static void go_back_comes_through_loss(void **state)
{
    (void)state;
    static struct netsim_world world;
    for (unsigned again = 0; again < 2; again++) {
        struct netsim_config config = config_of(NETSIM_GBN, 0.02);
        config.topology.faults.reorder = 0.01;
        config.topology.faults.duplicate = 0.01;
        config.transport.nack_ps = again * 20 * NETSIM_PS_PER_US;
        open_flow(&world, &config, 3000);
        finish(&world);
        assert_true(world.net.network.totals.repeated_packets > world.net.network.totals.lost_packets * 5);
        netsim_world_close(&world);
    }
}

/* The packet that is sent for the report is lost, too. Reported once, it waits for the timer; reported again,
 * it does not. */
static void a_gap_that_stays_is_reported_again(void **state)
{
    (void)state;
    static struct netsim_world world;
    for (unsigned again = 0; again < 2; again++) {
        struct netsim_config config = config_of(NETSIM_GBN, 0);
        config.transport.rto_min_ps = NETSIM_PS_PER_MS;
        config.transport.nack_ps = again * 5 * NETSIM_PS_PER_US;
        steal(&world, &config, 1000, 500, 500, 2);
        assert_int_equal(world.net.network.totals.timeouts, again == 0);
        netsim_world_close(&world);
    }
}

/* ---- IRN --------------------------------------------------------------------------------------------- */

/* Nothing arrives: each timeout is as long as the first, and the low one when little is in flight. */
static void irn_has_two_fixed_timeouts(void **state)
{
    (void)state;
    static const uint32_t packets[] = {1, 2, 3, 4, 40};
    static struct netsim_world world;
    for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
        struct netsim_config config = config_of(NETSIM_IRN, 1);
        config.transport.retries = 3;
        open_flow(&world, &config, packets[i]);
        netsim_world_finish(&world);
        assert_int_equal(world.net.network.totals.timeouts, 4);
        assert_int_equal(world.net.network.totals.flows_failed, 1);
        netsim_time span_ps = packets[i] <= 3 ? 100 * NETSIM_PS_PER_US : 320 * NETSIM_PS_PER_US;
        assert_true(world.net.network.now_ps == 4 * span_ps);
        netsim_world_close(&world);
    }
}

/* The last two of many are lost: when the others are acknowledged, few are in flight, and the low timeout
 * counts from the last acknowledgement. */
static void irn_turns_to_the_low_timeout(void **state)
{
    (void)state;
    static struct netsim_world world;
    struct netsim_config config = config_of(NETSIM_IRN, 0);
    config.transport.rto_high_ps = 5 * NETSIM_PS_PER_MS;
    struct thief thief = steal(&world, &config, 600, 598, 599, 2);
    netsim_time last_ack_ps = 597 * FRAME_PS + world.net.transport.flows[0].sender.base_rtt_ps;
    assert_int_equal(world.net.network.totals.timeouts, 1);
    assert_int_equal(world.net.network.totals.repeated_packets, 2);
    assert_true(thief.first_repeat_ps >= last_ack_ps + 100 * NETSIM_PS_PER_US);
    assert_true(thief.first_repeat_ps < last_ack_ps + 100 * NETSIM_PS_PER_US + FRAME_PS);
    netsim_world_close(&world);
}

/* By default no timeout, and no deadline, ends before an answer can come. */
static void defaults_follow_the_path(void **state)
{
    (void)state;
    static struct netsim_world world;
    static const enum netsim_transport_kind kinds[] = {NETSIM_SR, NETSIM_GBN, NETSIM_IRN, NETSIM_XP};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t packets = 1; packets <= 3000; packets *= 50) {
            struct netsim_config config = config_of(kinds[i], 0);
            config.transport.rto_low_ps = config.transport.rto_high_ps = NETSIM_NEVER;
            config.transport.deadline_ps = NETSIM_NEVER;
            config.topology.delay_ps = 6250 * NETSIM_PS_PER_US; /* of two cables each way */
            config.transport.ack_bytes = kinds[i] == NETSIM_XP ? 0 : config.transport.ack_bytes;
            open_flow(&world, &config, packets);
            netsim_world_finish(&world);
            assert_int_equal(world.net.network.totals.timeouts, 0);
            assert_int_equal(world.net.network.totals.flows_failed, 0);
            assert_int_equal(world.net.network.totals.repeated_packets, 0);
            assert_int_equal(world.net.transport.flows[0].missing_bytes, 0);
            netsim_world_close(&world);
        }
}

/* One that is given bounds the other. */
static void one_timeout_of_irn_is_given(void **state)
{
    (void)state;
    static struct netsim_world world;
    static const struct {
        netsim_time low_ps, high_ps, span_ps;
        uint32_t packets;
    } cases[] = {{NETSIM_NEVER, NETSIM_NEVER, 100 * NETSIM_PS_PER_US, 1},
                 {NETSIM_NEVER, NETSIM_NEVER, 320 * NETSIM_PS_PER_US, 9},
                 {NETSIM_NEVER, 50 * NETSIM_PS_PER_US, 50 * NETSIM_PS_PER_US, 1},
                 {NETSIM_PS_PER_MS, NETSIM_NEVER, NETSIM_PS_PER_MS, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct netsim_config config = config_of(NETSIM_IRN, 1);
        config.transport.retries = 3;
        config.transport.rto_low_ps = cases[i].low_ps;
        config.transport.rto_high_ps = cases[i].high_ps;
        open_flow(&world, &config, cases[i].packets);
        netsim_world_finish(&world);
        assert_true(world.net.network.now_ps == 4 * cases[i].span_ps);
        netsim_world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_loss_all_are_alike),
        cmocka_unit_test(go_back_repeats_all_behind_a_gap),
        cmocka_unit_test(selective_repeat_and_irn_repeat_one),
        cmocka_unit_test(go_back_comes_through_loss),
        cmocka_unit_test(a_gap_that_stays_is_reported_again),
        cmocka_unit_test(irn_has_two_fixed_timeouts),
        cmocka_unit_test(irn_turns_to_the_low_timeout),
        cmocka_unit_test(defaults_follow_the_path),
        cmocka_unit_test(one_timeout_of_irn_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
