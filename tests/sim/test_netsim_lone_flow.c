/*
 * A flow that is alone in the network, to the picosecond, beside a model that takes its packets one by one
 * through a line of stores: the ideal time, windows, pace, datagrams.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "support/netsim_world.h"

#define START_PS  UINT64_C(987654321)
#define LINKS_MAX 6u
#define GBIT      UINT64_C(1000000000)
#define UNLIMITED UINT32_MAX

__extension__ typedef unsigned __int128 uint128;

/* ---- the model ---- */

struct model_link {
    uint64_t rate_bps;
    netsim_time delay_ps;
    netsim_time free_ps; /* when the last packet had left it */
};

struct model {
    struct model_link there[LINKS_MAX];
    struct model_link back[LINKS_MAX];
    uint32_t links;
    uint32_t window_packets;
    uint64_t pace_bps; /* 0: none */
    netsim_time received_ps;
    netsim_time done_ps;
};

static netsim_time bytes_ps(uint64_t bytes, uint64_t rate_bps)
{
    return (netsim_time)(((uint128)bytes * 8 * NETSIM_PS_PER_S + rate_bps / 2) / rate_bps);
}

/* A packet at the first link's door at from_ps: when its last bit is at the end. */
static netsim_time model_pass(struct model_link *links, uint32_t count, uint64_t bytes, netsim_time from_ps)
{
    for (uint32_t i = 0; i < count; i++) {
        if (from_ps < links[i].free_ps)
            from_ps = links[i].free_ps;
        links[i].free_ps = from_ps + bytes_ps(bytes, links[i].rate_bps);
        from_ps = links[i].free_ps + links[i].delay_ps;
    }
    return from_ps;
}

/* Packets follow each other and never overtake, so one after the other can be taken all the way. */
static void model_run(struct model *model, const struct netsim_transport_config *transport, uint64_t bytes)
{
    uint64_t packets = (bytes + transport->payload_bytes - 1) / transport->payload_bytes;
    netsim_time *acked_ps = calloc(packets, sizeof *acked_ps);
    netsim_time pace_ps = START_PS;
    assert_non_null(acked_ps);
    for (uint64_t p = 0; p < packets; p++) {
        uint64_t left = bytes - p * transport->payload_bytes;
        uint64_t payload = left < transport->payload_bytes ? left : transport->payload_bytes;
        uint64_t wire = payload + transport->header_bytes;
        netsim_time from_ps = pace_ps;
        if (p >= model->window_packets && acked_ps[p - model->window_packets] > from_ps)
            from_ps = acked_ps[p - model->window_packets];
        if (from_ps < model->there[0].free_ps)
            from_ps = model->there[0].free_ps;
        if (model->pace_bps != 0)
            pace_ps = from_ps + bytes_ps(wire, model->pace_bps);
        model->received_ps = model_pass(model->there, model->links, wire, from_ps);
        model->done_ps = model->received_ps;
        if (transport->ack_bytes != 0)
            model->done_ps =
                model_pass(model->back, model->links, transport->ack_bytes, model->received_ps);
        acked_ps[p] = model->done_ps;
    }
    free(acked_ps);
}

/* ---- beside the simulator ---- */

struct lone {
    const char *name;
    enum netsim_topology_kind kind;
    uint32_t source;
    uint32_t destination;
    uint32_t links;
    uint32_t core_first; /* links core_first … core_first + core_count - 1 are the core's */
    uint32_t core_count;
    uint64_t rate_bps;
    uint64_t core_rate_bps;
    netsim_time delay_ps;
    netsim_time core_delay_ps;
};

static const struct lone lones[] = {
    {"two hosts", NETSIM_TWO_HOSTS, 0, 1, 1, 0, 0, 100 * GBIT, 0, 1000000, NETSIM_NEVER},
    {"two hosts, no delay", NETSIM_TWO_HOSTS, 1, 0, 1, 0, 0, 400 * GBIT, 0, 0, NETSIM_NEVER},
    {"two hosts, odd", NETSIM_TWO_HOSTS, 0, 1, 1, 0, 0, 33333333333, 0, 1234567, NETSIM_NEVER},
    {"dumbbell", NETSIM_DUMBBELL, 0, 5, 3, 1, 1, 100 * GBIT, 100 * GBIT, 1000000, 5000000},
    {"dumbbell, slow middle", NETSIM_DUMBBELL, 3, 4, 3, 1, 1, 100 * GBIT, 25 * GBIT, 1000000, 5000000},
    {"dumbbell, fast middle", NETSIM_DUMBBELL, 1, 7, 3, 1, 1, 10 * GBIT, 400 * GBIT, 777, 12345678},
    {"dumbbell, odd", NETSIM_DUMBBELL, 4, 2, 3, 1, 1, 7 * GBIT, 3 * GBIT, 1, 999999999},
    {"leaf-spine, slow middle", NETSIM_LEAF_SPINE, 0, 15, 4, 1, 2, 100 * GBIT, 40 * GBIT, 500000, 2000000},
    {"leaf-spine, one leaf", NETSIM_LEAF_SPINE, 5, 6, 2, 0, 0, 100 * GBIT, 40 * GBIT, 500000, 2000000},
    {"fat tree, one edge", NETSIM_FAT_TREE, 0, 1, 2, 0, 0, 100 * GBIT, 0, 1000000, NETSIM_NEVER},
    {"fat tree, one pod", NETSIM_FAT_TREE, 0, 2, 4, 0, 0, 100 * GBIT, 0, 1000000, NETSIM_NEVER},
    {"fat tree, two pods", NETSIM_FAT_TREE, 3, 12, 6, 0, 0, 200 * GBIT, 0, 600000, NETSIM_NEVER},
};
#define LONES (sizeof lones / sizeof lones[0])

static void lone_model(const struct lone *lone, struct model *model)
{
    *model = (struct model){.links = lone->links, .window_packets = UNLIMITED};
    for (uint32_t i = 0; i < lone->links; i++) {
        bool core = i >= lone->core_first && i < lone->core_first + lone->core_count;
        model->there[i].rate_bps = core && lone->core_rate_bps != 0 ? lone->core_rate_bps : lone->rate_bps;
        model->there[i].delay_ps =
            core && lone->core_delay_ps != NETSIM_NEVER ? lone->core_delay_ps : lone->delay_ps;
        model->back[i] = model->there[i]; /* the paths are symmetric */
    }
}

static struct netsim_config lone_config(const struct lone *lone)
{
    struct netsim_config config = netsim_world_config(lone->kind);
    config.topology.rate_bps = lone->rate_bps;
    config.topology.core_rate_bps = lone->core_rate_bps;
    config.topology.delay_ps = lone->delay_ps;
    config.topology.core_delay_ps = lone->core_delay_ps;
    config.packets_max = 4096;
    return config;
}

/* Runs it; leaves the times of its end. */
static struct netsim_flow lone_run(const struct lone *lone, const struct netsim_config *config,
                                   uint64_t bytes)
{
    static struct netsim_world world;
    struct netsim_flow_request request = {bytes, START_PS, lone->source, lone->destination};
    netsim_world_open(&world, config, &request, 1, 7);
    netsim_world_finish(&world);
    netsim_world_check_end(&world);
    netsim_world_check_done(&world);
    struct netsim_flow flow = world.net.transport.flows[0];
    assert_true(world.net.network.totals.repeated_packets == 0 && world.net.network.totals.timeouts == 0);
    netsim_world_close(&world);
    return flow;
}

static void compare(const struct lone *lone, const struct netsim_config *config, struct model *model,
                    uint64_t bytes, bool is_ideal)
{
    struct netsim_flow flow = lone_run(lone, config, bytes);
    model_run(model, &config->transport, bytes);
    bool same = flow.received_ps == model->received_ps && flow.done_ps == model->done_ps;
    if (is_ideal)
        same = same && flow.ideal_ps == model->done_ps - START_PS;
    if (!same)
        fail_msg("%s, %llu bytes: received %llu, done %llu, ideal %llu; model: %llu, %llu, %llu ps",
                 lone->name, (unsigned long long)bytes, (unsigned long long)flow.received_ps,
                 (unsigned long long)flow.done_ps, (unsigned long long)flow.ideal_ps,
                 (unsigned long long)model->received_ps, (unsigned long long)model->done_ps,
                 (unsigned long long)(model->done_ps - START_PS));
}

/* ---- tests ---- */

static const uint64_t sizes[] = {1, 100, 4095, 4096, 4097, 8192, 8193, 12289, 100000, 1 << 20, 3000001};
#define SIZES (sizeof sizes / sizeof sizes[0])

static void alone_it_takes_its_ideal_time(void **state)
{
    (void)state;
    struct model model;
    for (size_t l = 0; l < LONES; l++) {
        struct netsim_config config = lone_config(&lones[l]);
        for (size_t s = 0; s < SIZES; s++) {
            lone_model(&lones[l], &model);
            compare(&lones[l], &config, &model, sizes[s], true);
        }
    }
}

static void a_window_of_the_path_costs_nothing(void **state)
{
    (void)state;
    struct model model;
    for (size_t l = 0; l < LONES; l++) {
        struct netsim_config config = lone_config(&lones[l]);
        config.transport.window_bytes = NETSIM_WINDOW_BDP;
        for (size_t s = 0; s < SIZES; s++) {
            lone_model(&lones[l], &model);
            compare(&lones[l], &config, &model, sizes[s], true);
        }
    }
}

static void a_small_window_waits_for_acknowledgements(void **state)
{
    (void)state;
    static const uint64_t windows[] = {1, 4096, 8192, 20000, 65536};
    struct model model;
    for (size_t l = 0; l < LONES; l++) {
        struct netsim_config config = lone_config(&lones[l]);
        for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
            config.transport.window_bytes = windows[w];
            lone_model(&lones[l], &model);
            model.window_packets = windows[w] < 4096 ? 1 : (uint32_t)(windows[w] / 4096);
            compare(&lones[l], &config, &model, 300001, false);
        }
    }
}

static void a_pace_is_kept(void **state)
{
    (void)state;
    static const uint64_t paces[] = {GBIT, 3 * GBIT, 24 * GBIT, 100 * GBIT, 1000 * GBIT};
    struct model model;
    for (size_t l = 0; l < LONES; l++) {
        struct netsim_config config = lone_config(&lones[l]);
        for (size_t p = 0; p < sizeof paces / sizeof paces[0]; p++) {
            config.transport.rate_bps = paces[p];
            config.transport.rto = 1e6; /* a slow pace is no loss */
            lone_model(&lones[l], &model);
            model.pace_bps = paces[p];
            compare(&lones[l], &config, &model, 300001, false);
        }
    }
}

static void datagrams_are_done_when_they_are_there(void **state)
{
    (void)state;
    struct model model;
    for (size_t l = 0; l < LONES; l++) {
        struct netsim_config config = lone_config(&lones[l]);
        config.transport.ack_bytes = 0;
        for (size_t s = 0; s < SIZES; s++) {
            lone_model(&lones[l], &model);
            compare(&lones[l], &config, &model, sizes[s], true);
        }
    }
}

/* Acknowledgements then wait for each other on the way back. */
static void acknowledgements_may_be_longer_than_packets(void **state)
{
    (void)state;
    struct model model;
    for (size_t l = 0; l < LONES; l++) {
        struct netsim_config config = lone_config(&lones[l]);
        config.transport.payload_bytes = 1000;
        config.transport.header_bytes = 10;
        for (uint32_t ack = 1; ack <= 4096; ack *= 8) {
            config.transport.ack_bytes = ack;
            for (uint64_t bytes = 1; bytes < 70000; bytes = 7 * bytes + 1) {
                lone_model(&lones[l], &model);
                config.transport.rto = 1e6;
                compare(&lones[l], &config, &model, bytes, true);
            }
        }
    }
}

static void the_longest_packets_are_exact(void **state)
{
    (void)state;
    struct model model;
    struct netsim_config config = lone_config(&lones[3]);
    config.transport.payload_bytes = 65000;
    config.transport.header_bytes = 500;
    lone_model(&lones[3], &model);
    compare(&lones[3], &config, &model, 1000003, true);
    config.transport.payload_bytes = 1;
    config.transport.header_bytes = 1;
    config.transport.ack_bytes = 1;
    lone_model(&lones[3], &model);
    compare(&lones[3], &config, &model, 999, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_takes_its_ideal_time),
        cmocka_unit_test(a_window_of_the_path_costs_nothing),
        cmocka_unit_test(a_small_window_waits_for_acknowledgements),
        cmocka_unit_test(a_pace_is_kept),
        cmocka_unit_test(datagrams_are_done_when_they_are_there),
        cmocka_unit_test(acknowledgements_may_be_longer_than_packets),
        cmocka_unit_test(the_longest_packets_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
