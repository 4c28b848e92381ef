/*
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/connection_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/prng.h"
#include "support/attach_pair.h"

#define HANG_NS        (600 * LH_NS_PER_S) /* virtual */
#define IDLE_TURNS_MAX 100000u             /* at one moment: past this somebody asks for `now` for ever */

void connection_pair_attr(struct lh_attr *attr)
{
    lh_attr_init(attr);
    attr->mtu_bytes = 1024;
    attr->slot_bytes = 16384;
    attr->slots = 8;
}

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static void open_end(struct connection_pair *pair, uint32_t end, const char *world,
                     const struct lh_attr *attr)
{
    char device[SIM_WORLD_NAME_MAX + 16];
    struct lh_attr own = *attr;
    snprintf(device, sizeof device, "sim:%s/%u", world, end);
    own.device = device;
    own.workers = LH_NO_WORKERS;
    must(lh_open(&own, &pair->ends[end]), "lh_open");
}

void connection_pair_open(struct connection_pair *pair, const char *world, uint64_t seed, const char *link,
                          const struct lh_attr *attr, const struct lh_attr *other)
{
    struct lh_link_spec spec;
    must(lh_link_parse(link, &spec), "lh_link_parse");
    *pair = (struct connection_pair){.world = sim_world_create(world, seed, &spec)};
    if (!pair->world)
        fail_msg("sim_world_create: %s", lh_last_error());
    open_end(pair, 0, world, attr);
    open_end(pair, 1, world, other ? other : attr);
    attach_pair(pair->ends[0], pair->ends[1]);
}

void connection_pair_close(struct connection_pair *pair)
{
    lh_close(pair->ends[0]);
    lh_close(pair->ends[1]);
    sim_world_destroy(pair->world);
}

lh_time connection_pair_now(const struct connection_pair *pair)
{
    return sim_world_now(pair->world);
}

void connection_pair_turn(struct connection_pair *pair, lh_time limit)
{
    lh_time now = sim_world_now(pair->world);
    lh_time next = limit;
    uint32_t turns = 0;
    bool moved = true;
    while (moved) {
        moved = false;
        for (int end = 0; end < 2; end++) {
            if (!pair->ends[end])
                continue;
            must(lh_progress(pair->ends[end], &pair->next[end]), "lh_progress");
            moved |= pair->next[end] <= now;
        }
        assert_true(++turns < IDLE_TURNS_MAX);
    }
    pair->turns += turns;
    for (int end = 0; end < 2; end++)
        if (pair->ends[end] && pair->next[end] < next)
            next = pair->next[end];
    lh_time event = sim_world_next_event(pair->world);
    sim_world_advance(pair->world, event < next ? event : next);
}

void connection_pair_run(struct connection_pair *pair, lh_time span)
{
    lh_time until = connection_pair_now(pair) + span;
    while (connection_pair_now(pair) < until)
        connection_pair_turn(pair, until);
}

bool connection_pair_wait(struct connection_pair *pair, struct lh_request *request, lh_time span,
                          struct lh_result *result)
{
    lh_time until = connection_pair_now(pair) + span;
    while (!lh_test(request, result)) {
        if (connection_pair_now(pair) >= until)
            return false;
        connection_pair_turn(pair, until);
    }
    return true;
}

uint8_t *connection_pair_bytes(size_t bytes, uint64_t seed)
{
    uint8_t *data = malloc(bytes + 1);
    struct lh_prng prng;
    assert_non_null(data);
    lh_prng_seed(&prng, seed);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)(lh_prng_next(&prng) >> 32);
    return data;
}

struct lh_request *connection_pair_send(struct connection_pair *pair, int end, const void *data,
                                        size_t bytes)
{
    struct lh_request *request = NULL;
    must(lh_send(pair->ends[end], data, bytes, NULL, &request), "lh_send");
    return request;
}

struct lh_request *connection_pair_recv(struct connection_pair *pair, int end, void *buffer, size_t room)
{
    struct lh_request *request = NULL;
    must(lh_recv(pair->ends[end], buffer, room, NULL, &request), "lh_recv");
    return request;
}

struct lh_result connection_pair_finish(struct connection_pair *pair, struct lh_request *request)
{
    struct lh_result result = {0};
    if (!connection_pair_wait(pair, request, HANG_NS, &result))
        fail_msg("request is not done after %llu s", (unsigned long long)(HANG_NS / LH_NS_PER_S));
    lh_request_free(request);
    return result;
}

void connection_pair_transfer(struct connection_pair *pair, int from, size_t bytes, size_t room)
{
    uint8_t *data = connection_pair_bytes(bytes, bytes + 1);
    uint8_t *buffer = connection_pair_bytes(room, 99);
    uint8_t *before = connection_pair_bytes(room, 99);
    struct lh_request *recv = connection_pair_recv(pair, 1 - from, buffer, room);
    struct lh_request *send = connection_pair_send(pair, from, data, bytes);
    struct lh_result sent = connection_pair_finish(pair, send);
    struct lh_result received = connection_pair_finish(pair, recv);
    assert_int_equal(sent.error, 0);
    assert_int_equal(received.error, 0);
    assert_int_equal(sent.bytes, bytes);
    assert_int_equal(received.bytes, bytes);
    assert_memory_equal(buffer, data, bytes);
    assert_memory_equal(buffer + bytes, before + bytes, room - bytes);
    assert_true(sent.ended_ns > sent.started_ns);
    assert_true(received.ended_ns < sent.ended_ns);
    free(data);
    free(buffer);
    free(before);
}
