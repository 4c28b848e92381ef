/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/sim_engines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/attach_pair.h"

#define HANG_NS (60 * LH_NS_PER_S)

void sim_engines_must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

struct lh_engine *sim_engine_create(const char *device, const struct lh_engine_attr *wanted)
{
    struct lh_engine_attr attr;
    struct lh_engine *engine;
    lh_engine_attr_init(&attr);
    if (wanted)
        attr = *wanted;
    attr.device = device;
    attr.workers = LH_NO_WORKERS;
    sim_engines_must(lh_engine_create(&attr, &engine), "lh_engine_create");
    return engine;
}

void sim_engines_open(struct sim_engines *net, const char *world, uint64_t seed, const char *link,
                      uint32_t count, const struct lh_engine_attr *attrs)
{
    struct lh_link_spec spec;
    sim_engines_must(lh_link_parse(link, &spec), "lh_link_parse");
    *net = (struct sim_engines){.count = count};
    sim_engines_must(
        sim_world_open(world, count > SIM_HOSTS_FEW ? count : SIM_HOSTS_FEW, seed, &spec, &net->world),
        "sim_world_open");
    for (uint32_t i = 0; i < count; i++) {
        char device[64];
        snprintf(device, sizeof device, "sim:%s/%u", world, i);
        net->engines[i] = sim_engine_create(device, attrs ? &attrs[i] : NULL);
    }
}

void sim_engines_close(struct sim_engines *net)
{
    for (uint32_t i = 0; i < net->count; i++)
        sim_engines_must(lh_engine_destroy(net->engines[i]), "lh_engine_destroy");
    sim_world_destroy(net->world);
}

void sim_engines_join(struct lh_connection *ends[2], const struct lh_attr *one, const struct lh_attr *other)
{
    sim_engines_must(lh_open(one, &ends[0]), "lh_open");
    sim_engines_must(lh_open(other, &ends[1]), "lh_open");
    attach_pair(ends[0], ends[1]);
}

void sim_engines_turn(struct sim_engines *net, lh_time limit)
{
    lh_time now = sim_world_now(net->world), next = 0;
    while (next <= now) {
        next = sim_world_next_event(net->world);
        for (uint32_t i = 0; i < net->count; i++) {
            lh_time due;
            sim_engines_must(lh_engine_progress(net->engines[i], &due), "lh_engine_progress");
            next = due < next ? due : next;
        }
        if (net->on_round)
            net->on_round(net->context);
    }
    lh_time event = sim_world_next_event(net->world);
    next = event < next ? event : next;
    sim_world_advance(net->world, next < limit ? next : limit);
}

void sim_engines_run(struct sim_engines *net, lh_time span)
{
    lh_time until = sim_world_now(net->world) + span;
    while (sim_world_now(net->world) < until)
        sim_engines_turn(net, until);
}

struct lh_result sim_engines_finish(struct sim_engines *net, struct lh_request *request)
{
    struct lh_result result = {0};
    lh_time until = sim_world_now(net->world) + HANG_NS;
    while (!lh_test(request, &result)) {
        assert_true(sim_world_now(net->world) < until);
        sim_engines_turn(net, until);
    }
    lh_request_free(request);
    return result;
}
