/*
 * test_netsim_queue_pair.c - flows from one host to another as messages of one queue pair: they come in
 * order, and what is sent of a later one shows what is missing of those before it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "netsim/config/config_keys.h"
#include "support/netsim_world.h"

#define FLOWS    12u
#define PACKETS  100u
#define WINDOW   64u
#define FRAME_PS 333920u /* a full packet of 4,174 bytes at 100 Gbit/s */

static struct netsim_config config_of(enum netsim_transport_kind kind, bool one_queue_pair)
{
    struct netsim_config config = netsim_world_config(NETSIM_DUMBBELL);
    config.topology.faults.loss = 1e-9; /* so that links have faults at all */
    config.transport.kind = kind;
    config.transport.window_bytes = WINDOW * 4096;
    config.transport.one_queue_pair = one_queue_pair;
    return config;
}

/* Flows of one host to another, all at once; flow i has i packets more than the first. */
static void open_flows(struct netsim_world *world, const struct netsim_config *config)
{
    struct netsim_flow_request flows[FLOWS];
    for (uint32_t i = 0; i < FLOWS; i++)
        flows[i] = (struct netsim_flow_request){(uint64_t)(PACKETS + i) * 4096 - i, 0, 0, 4};
    netsim_world_open(world, config, flows, FLOWS, 21);
}

static void finish(struct netsim_world *world)
{
    netsim_world_finish(world);
    netsim_world_check_end(world);
    netsim_world_check_done(world);
}

static netsim_time received_ps(const struct netsim_world *world, uint32_t flow)
{
    return world->net.transport.flows[flow].received_ps;
}

/* Each message follows the one before it without a pause: alone, the last has come when all are sent. */
static void messages_follow_each_other(void **state)
{
    (void)state;
    static struct netsim_world world;
    for (unsigned kind = NETSIM_SR; kind <= NETSIM_GBN; kind++) {
        struct netsim_config config = config_of((enum netsim_transport_kind)kind, true);
        open_flows(&world, &config);
        finish(&world);
        assert_int_equal(world.net.network.totals.repeated_packets, 0);
        for (uint32_t i = 1; i < FLOWS; i++) {
            netsim_time between_ps = received_ps(&world, i) - received_ps(&world, i - 1);
            assert_true(between_ps > (PACKETS + i - 1) * (netsim_time)FRAME_PS);
            assert_true(between_ps <= (PACKETS + i) * (netsim_time)FRAME_PS);
        }
        netsim_world_close(&world);
    }
}

/* Whatever is lost, a message has come only when all before it have. */
static void messages_come_in_order(void **state)
{
    (void)state;
    static struct netsim_world world;
    for (unsigned kind = NETSIM_SR; kind <= NETSIM_GBN; kind++) {
        struct netsim_config config = config_of((enum netsim_transport_kind)kind, true);
        config.topology.faults.loss = 0.02;
        config.topology.faults.reorder = 0.01;
        config.topology.faults.duplicate = 0.01;
        open_flows(&world, &config);
        finish(&world);
        assert_true(world.net.network.totals.lost_packets > 0);
        for (uint32_t i = 1; i < FLOWS; i++)
            assert_true(received_ps(&world, i) >= received_ps(&world, i - 1));
        netsim_world_close(&world);
    }
}

/* ---- one loss ---------------------------------------------------------------------------------------- */

/* Takes the last packet of the first flow away as it enters the middle, once. */
struct thief {
    struct netsim_world *world;
    unsigned taken;
};

static void on_packet(void *context, const struct lh_netsim_packet *packet)
{
    struct thief *thief = context;
    struct lh_link_spec *spec = &thief->world->net.network.more[packet->link].faults->spec;
    bool taken = packet->kind == LH_NETSIM_DATA && packet->flow == 0 && packet->sequence == PACKETS - 1 &&
                 thief->taken == 0;
    spec->loss = taken ? 1 : 0;
    thief->taken += taken;
}

static void lose_last_of_first(struct netsim_world *world, enum netsim_transport_kind kind,
                               bool one_queue_pair)
{
    struct netsim_config config = config_of(kind, one_queue_pair);
    struct thief thief = {.world = world};
    open_flows(world, &config);
    uint32_t left = world->graph.hosts, middle = netsim_world_link(world, left, left + 1);
    world->net.network.watcher = on_packet;
    world->net.network.watcher_context = &thief;
    world->net.network.ports[middle].flags |= NETSIM_PORT_WATCHED;
    finish(world);
    assert_int_equal(thief.taken, 1);
}

/* No later packet of the message shows the loss: a timeout. On a queue pair the next message does: the first
 * packet, or the third after it, and the repair takes a round trip. */
static void the_next_message_shows_a_loss(void **state)
{
    (void)state;
    static struct netsim_world world;
    for (unsigned kind = NETSIM_SR; kind <= NETSIM_GBN; kind++) {
        lose_last_of_first(&world, (enum netsim_transport_kind)kind, false);
        assert_int_equal(world.net.network.totals.timeouts, 1);
        netsim_world_close(&world);
        lose_last_of_first(&world, (enum netsim_transport_kind)kind, true);
        const struct netsim_sender *sender = &world.net.transport.flows[0].sender;
        const struct lh_netsim_totals *totals = &world.net.network.totals;
        netsim_time whole_ps = PACKETS * (netsim_time)FRAME_PS + sender->base_rtt_ps;
        assert_int_equal(totals->timeouts, 0);
        assert_true(received_ps(&world, 0) > whole_ps);
        assert_true(received_ps(&world, 0) < whole_ps + sender->base_rtt_ps + 5 * FRAME_PS);
        assert_true(received_ps(&world, 1) >= received_ps(&world, 0));
        if (kind != NETSIM_GBN)
            assert_int_equal(totals->repeated_packets, 1);
        else /* what of the next message was in flight is sent again */
            assert_true(totals->repeated_packets > sender->base_rtt_ps / FRAME_PS &&
                        totals->repeated_packets <= WINDOW);
        netsim_world_close(&world);
    }
}

static void bad_input(void **state)
{
    (void)state;
    struct netsim_config config = config_of(NETSIM_IRN, true);
    assert_int_equal(netsim_config_check(&config), 0);
    config.transport.ack_bytes = 0;
    assert_true(netsim_config_check(&config) < 0);
    assert_non_null(strstr(lh_last_error(), "transport.queue_pair"));
    config.transport.ack_bytes = 64;
    config.transport.congestion.kind = NETSIM_CONGESTION_DCQCN;
    assert_true(netsim_config_check(&config) < 0);
    assert_non_null(strstr(lh_last_error(), "transport.queue_pair"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_follow_each_other),
        cmocka_unit_test(messages_come_in_order),
        cmocka_unit_test(the_next_message_shows_a_loss),
        cmocka_unit_test(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
