/*
 * test_engine_memory.c - the bound of an engine's memory: what would exceed it is refused, whoever asks;
 * what waits for it arrives, or ends; and all that is open can always be closed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/connection_pair.h"
#include "support/sanitized.h"
#include "support/sim_engines.h"

#define LINK    "rtt=2ms,rate=1Gbit,loss=1e-2"
#define BYTES   200000u /* bytes of a message: many slots */
#define PEERS   12u
#define DEPTH   3u /* messages of each at once */
#define TIMEOUT (5 * LH_NS_PER_S)

static struct lh_engine_memory memory_of(struct lh_engine *engine)
{
    struct lh_engine_memory memory;
    sim_engines_must(lh_engine_memory(engine, &memory), "lh_engine_memory");
    assert_true(memory.now_bytes <= memory.most_bytes);
    assert_true(memory.most_bytes <= memory.limit_bytes);
    return memory;
}

/* Engine `bounded` of two has that bound. */
static void begin(struct sim_engines *net, uint64_t seed, uint32_t bounded, uint64_t bound_bytes)
{
    struct lh_engine_attr attrs[2];
    for (int i = 0; i < 2; i++)
        lh_engine_attr_init(&attrs[i]);
    attrs[bounded].memory_bytes = bound_bytes;
    sim_engines_open(net, "memory", seed, LINK, 2, attrs);
}

static struct lh_attr attr_of(struct sim_engines *net, uint32_t engine)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.engine = net->engines[engine];
    attr.peer_timeout_ns = TIMEOUT;
    return attr;
}

static void join(struct sim_engines *net, struct lh_connection *ends[2])
{
    const struct lh_attr one = attr_of(net, 0), other = attr_of(net, 1);
    sim_engines_join(ends, &one, &other);
}

static void test_use_is_shown(void **state)
{
    (void)state;
    struct sim_engines net;
    struct lh_connection *ends[2];
    uint8_t *data = connection_pair_bytes(BYTES, 1), *buffer = connection_pair_bytes(BYTES, 2);
    struct lh_request *requests[2];
    sim_engines_open(&net, "memory", 1, LINK, 2, NULL);
    assert_int_equal(memory_of(net.engines[0]).now_bytes, 0);
    assert_int_equal(memory_of(net.engines[0]).limit_bytes, UINT64_MAX);
    join(&net, ends);
    uint64_t idle = memory_of(net.engines[0]).now_bytes;
    assert_true(idle > 0);
    sim_engines_must(lh_recv(ends[1], buffer, BYTES, NULL, &requests[1]), "lh_recv");
    sim_engines_must(lh_send(ends[0], data, BYTES, NULL, &requests[0]), "lh_send");
    for (int end = 0; end < 2; end++)
        assert_int_equal(sim_engines_finish(&net, requests[end]).error, 0);
    for (int end = 0; end < 2; end++) {
        assert_true(memory_of(net.engines[end]).most_bytes > idle);
        lh_close(ends[end]);
        assert_int_equal(memory_of(net.engines[end]).now_bytes, 0);
    }
    sim_engines_close(&net);
    free(data);
    free(buffer);
}

/* Connections: each has a part of it while it is open. */
static void test_connections_are_refused(void **state)
{
    (void)state;
    struct sim_engines net;
    struct lh_connection *ends[100];
    uint32_t count = 0;
    begin(&net, 1, 0, 200000);
    const struct lh_attr attr = attr_of(&net, 0);
    int error;
    while ((error = lh_open(&attr, &ends[count])) == 0)
        assert_true(++count < 100);
    assert_true(count > 5);
    assert_int_equal(error, -LH_ENOMEM);
    assert_non_null(strstr(lh_last_error(), "limit of the engine's memory, 200000 bytes (raise "
                                            "lh_engine_attr.memory_bytes, or close connections)"));
    assert_true(memory_of(net.engines[0]).refusals > 0);
    lh_close(ends[--count]);
    assert_int_equal(lh_open(&attr, &ends[count]), 0);
    for (uint32_t i = 0; i <= count; i++)
        lh_close(ends[i]);
    assert_int_equal(memory_of(net.engines[0]).now_bytes, 0);
    sim_engines_close(&net);
}

/* A peer that sends as much as it can, to a program that does not receive. */
static void test_a_peer_exceeds_nothing(void **state)
{
    (void)state;
    struct sim_engines net;
    struct lh_connection *ends[PEERS][2];
    struct lh_request *sends[PEERS][64];
    uint8_t byte = 1;
    begin(&net, 2, 1, 400000);
    for (uint32_t i = 0; i < PEERS; i++) {
        join(&net, ends[i]);
        for (uint32_t k = 0; k < 64; k++)
            sim_engines_must(lh_send(ends[i][0], &byte, 1, NULL, &sends[i][k]), "lh_send");
    }
    sim_engines_run(&net, 3 * TIMEOUT);
    assert_true(memory_of(net.engines[1]).refusals > 0);
    for (uint32_t i = 0; i < PEERS; i++)
        assert_int_equal(lh_connection_error(ends[i][1]), 0); /* it asked for nothing */
    for (uint32_t i = 0; i < PEERS; i++) {
        for (uint32_t k = 0; k < 64; k++)
            lh_request_free(sends[i][k]);
        lh_close(ends[i][0]);
        lh_close(ends[i][1]);
    }
    assert_int_equal(memory_of(net.engines[1]).now_bytes, 0);
    sim_engines_close(&net);
}

struct exchange {
    struct lh_connection *ends[2];
    struct lh_request *requests[DEPTH][2];
    uint8_t *buffers[DEPTH];
};

/* Messages each way at once, as many as are accepted. */
static uint32_t start(struct exchange *exchange, const uint8_t *data, int from)
{
    uint32_t started = 0;
    for (uint32_t k = 0; k < DEPTH; k++) {
        struct lh_request **requests = exchange->requests[k];
        exchange->buffers[k] = connection_pair_bytes(BYTES, 5);
        requests[0] = requests[1] = NULL;
        int error = lh_recv(exchange->ends[!from], exchange->buffers[k], BYTES, NULL, &requests[1]);
        if (!error)
            error = lh_send(exchange->ends[from], data, BYTES, NULL, &requests[0]);
        assert_true(error == 0 || error == -LH_ENOMEM);
        started += error == 0;
    }
    return started;
}

/* Each request of an exchange ends, with its message or with an error. Returns how many have it. */
static uint32_t finish(struct sim_engines *net, struct exchange *exchange, const uint8_t *data)
{
    uint32_t whole = 0;
    for (uint32_t k = 0; k < DEPTH; k++) {
        struct lh_request **requests = exchange->requests[k];
        if (requests[1] && !requests[0])
            lh_cancel(requests[1]); /* its send was not accepted */
        if (requests[0])
            sim_engines_finish(net, requests[0]);
        if (requests[1] && sim_engines_finish(net, requests[1]).error == 0) {
            assert_memory_equal(exchange->buffers[k], data, BYTES);
            whole++;
        }
        free(exchange->buffers[k]);
    }
    return whole;
}

/* More connections than have room to work at once, whichever end is short: none waits for ever, and some get
 * through. */
static void compete(uint64_t seed, uint32_t bounded, uint64_t room_bytes, uint32_t *whole, uint32_t *ended)
{
    struct sim_engines net;
    static struct exchange exchanges[PEERS];
    uint8_t *data = connection_pair_bytes(BYTES, 4);
    begin(&net, seed, bounded, PEERS * 16000 + room_bytes);
    for (uint32_t i = 0; i < PEERS; i++)
        join(&net, exchanges[i].ends);
    sim_engines_run(&net, LH_NS_PER_S / 10);
    for (uint32_t i = 0; i < PEERS; i++)
        start(&exchanges[i], data, (seed + i) % 2);
    for (uint32_t i = 0; i < PEERS; i++)
        *whole += finish(&net, &exchanges[i], data);
    for (uint32_t i = 0; i < PEERS; i++)
        *ended += lh_connection_error(exchanges[i].ends[bounded]) == -LH_ENOMEM;
    memory_of(net.engines[bounded]);
    for (uint32_t i = 0; i < PEERS; i++)
        for (int end = 0; end < 2; end++)
            lh_close(exchanges[i].ends[end]);
    for (int end = 0; end < 2; end++)
        assert_int_equal(memory_of(net.engines[end]).now_bytes, 0);
    sim_engines_close(&net);
    free(data);
}

static void test_connections_compete(void **state)
{
    (void)state;
    uint32_t whole = 0, ended = 0, before = 0, runs = SANITIZED ? 4 : 8;
    for (uint32_t seed = 0; seed < runs; seed++) {
        if (seed % 2 == 0)
            before = whole;
        compete(seed, seed % 2, 45000 + seed / 2 % 4 * 60000, &whole, &ended);
        /* With the least room all 12 may give up at once, at one of the two ends: they began at once. */
        assert_true(seed % 2 == 0 || whole > before);
    }
    print_message("%u of %u messages whole, %u connections ended for lack of memory\n", whole,
                  runs * PEERS * DEPTH, ended);
    assert_true(ended > 0 && whole < runs * PEERS * DEPTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_use_is_shown),
        cmocka_unit_test(test_connections_are_refused),
        cmocka_unit_test(test_a_peer_exceeds_nothing),
        cmocka_unit_test(test_connections_compete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
