/*
 * test_engine_shares.c - connections of one engine that all have something to send, over a simulated network:
 * even shares, whatever the size of their messages, and small messages that do not wait behind bulk. Where
 * the link pushes back, and where the engine's rate is told.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/connection_pair.h"
#include "support/sim_engines.h"

#define PEERS       8u
#define FLIGHT_MAX  8u
#define MESSAGE_MAX ((size_t)1 << 20)
#define RATE_BPS    UINT64_C(1000000000)
#define QUEUE       16384u /* bytes, of the link that has the rate */
#define PACKET_NS   9000u  /* of 1024 bytes and headers, rounded up */
#define ONE_WAY_NS  (100 * LH_NS_PER_US)
#define SPAN_NS     (200 * LH_NS_PER_MS)
#define MS          LH_NS_PER_MS

/* What one connection sends: messages of a size, so many at a time. */
struct load {
    size_t bytes;
    uint32_t flight;
    struct lh_connection *ends[2];
    struct lh_request *send[FLIGHT_MAX], *recv[FLIGHT_MAX];
    uint8_t *buffer;
    uint64_t delivered; /* bytes */
    lh_time began_ns;
    lh_time longest_ns; /* of those with one at a time: from lh_send() to delivery */
};

struct net {
    struct sim_engines sim;
    struct load loads[PEERS];
};

static uint8_t payload[MESSAGE_MAX];

static void open_one(struct net *net, struct load *load)
{
    struct lh_attr attr, other;
    connection_pair_attr(&attr);
    attr.slots = 16;
    attr.engine = net->sim.engines[0];
    other = attr;
    other.engine = net->sim.engines[1];
    sim_engines_join(load->ends, &attr, &other);
    load->buffer = malloc(load->bytes * load->flight);
    assert_non_null(load->buffer);
}

/* Delivered messages are followed by the next ones. */
static void feed(struct net *net, struct load *load)
{
    for (uint32_t k = 0; k < load->flight; k++) {
        struct lh_result result = {0};
        if (load->recv[k] && (!lh_test(load->recv[k], &result) || !lh_test(load->send[k], NULL)))
            continue;
        sim_engines_must(result.error, "receive");
        if (load->recv[k]) {
            lh_time took_ns = result.ended_ns - load->began_ns;
            load->longest_ns = took_ns > load->longest_ns ? took_ns : load->longest_ns;
            load->delivered += load->bytes;
        }
        lh_request_free(load->recv[k]);
        lh_request_free(load->send[k]);
        uint8_t *place = load->buffer + k * load->bytes;
        sim_engines_must(lh_recv(load->ends[1], place, load->bytes, NULL, &load->recv[k]), "lh_recv");
        sim_engines_must(lh_send(load->ends[0], payload, load->bytes, NULL, &load->send[k]), "lh_send");
        load->began_ns = sim_world_now(net->sim.world);
    }
}

static void feed_all(void *context)
{
    struct net *net = context;
    for (uint32_t i = 0; i < PEERS; i++)
        feed(net, &net->loads[i]);
}

/* told: the engine has the rate; else the link has it, and pushes back. */
static void begin(struct net *net, bool given)
{
    char link[64] = "rtt=200us";
    struct lh_engine_attr attrs[2];
    if (!given)
        snprintf(link, sizeof link, "rtt=200us,rate=1Gbit,queue=%u", QUEUE);
    for (int i = 0; i < 2; i++)
        lh_engine_attr_init(&attrs[i]);
    attrs[0].rate_bps = given ? RATE_BPS : 0;
    sim_engines_open(&net->sim, "shares", 1, link, 2, attrs);
    net->sim.on_round = feed_all;
    net->sim.context = net;
    for (uint32_t i = 0; i < PEERS; i++)
        open_one(net, &net->loads[i]);
}

static void end(struct net *net)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        struct load *load = &net->loads[i];
        for (uint32_t k = 0; k < load->flight; k++) {
            lh_request_free(load->send[k]);
            lh_request_free(load->recv[k]);
        }
        lh_close(load->ends[0]);
        lh_close(load->ends[1]);
        free(load->buffer);
    }
    sim_engines_close(&net->sim);
}

/* Payload that has left for the peer by now. */
static uint64_t sent(const struct load *load)
{
    struct lh_stats stats;
    sim_engines_must(lh_connection_stats(load->ends[0], &stats), "lh_connection_stats");
    return stats.tx_bytes;
}

/* Of loads first to last - 1 each has the mean, but for a twentieth. Returns their sum. */
static uint64_t check_even(const struct net *net, uint32_t first, uint32_t last)
{
    uint64_t sum = 0;
    for (uint32_t i = first; i < last; i++)
        sum += sent(&net->loads[i]);
    uint64_t mean = sum / (last - first);
    for (uint32_t i = first; i < last; i++)
        assert_in_range(sent(&net->loads[i]), mean - mean / 20, mean + mean / 20);
    return sum;
}

/* The rate is used, and, where the engine keeps it, not exceeded. */
static void check_rate(uint64_t bytes, bool given)
{
    uint64_t full = RATE_BPS / 8 * SPAN_NS / LH_NS_PER_S;
    assert_true(bytes >
                full / 100 *
                    (given ? 97 : 80)); /* of the link's, headers have a part, and its short queue */
    assert_true(bytes < full + 300000); /* a burst beside it */
}

static void fill(struct net *net, uint32_t first, uint32_t last, size_t bytes, uint32_t flight)
{
    for (uint32_t i = first; i < last; i++) {
        net->loads[i].bytes = bytes;
        net->loads[i].flight = flight;
    }
}

/* All have long messages. */
static void test_bulk_has_even_shares(void **state)
{
    (void)state;
    for (int given = 0; given < 2; given++) {
        struct net net = {0};
        fill(&net, 0, PEERS, MESSAGE_MAX, 2);
        begin(&net, given);
        sim_engines_run(&net.sim, SPAN_NS);
        check_rate(check_even(&net, 0, PEERS), given);
        end(&net);
    }
}

/* Some have long messages, some many short ones: of the rate all have as much. (What a link takes that pushes
 * back goes by turns, and short messages have more control messages.) */
static void test_sizes_of_messages_do_not_count(void **state)
{
    (void)state;
    struct net net = {0};
    fill(&net, 0, PEERS / 2, MESSAGE_MAX, 2);
    fill(&net, PEERS / 2, PEERS, 8192, FLIGHT_MAX);
    begin(&net, true);
    sim_engines_run(&net.sim, SPAN_NS);
    check_rate(check_even(&net, 0, PEERS), true);
    end(&net);
}

/* One message of 64 bytes after the other: with nothing beside it, and beside bulk. */
static lh_time small_beside(bool given, size_t bulk_bytes)
{
    struct net net = {0};
    fill(&net, 0, 1, 64, 1);
    fill(&net, 1, PEERS, bulk_bytes, bulk_bytes > 0 ? 2 : 0);
    begin(&net, given);
    sim_engines_run(&net.sim, SPAN_NS);
    lh_time longest_ns = net.loads[0].longest_ns;
    assert_true(net.loads[0].delivered > 64 * 100);
    if (bulk_bytes > 0)
        check_rate(check_even(&net, 1, PEERS), given);
    end(&net);
    return longest_ns;
}

/* Ahead of each of its packets there are at most those that the link holds, and a few. */
static void test_small_messages_do_not_wait_for_bulk(void **state)
{
    (void)state;
    for (int given = 0; given < 2; given++) {
        lh_time alone_ns = small_beside(given, 0);
        lh_time beside_ns = small_beside(given, MESSAGE_MAX);
        lh_time ahead_ns = (given ? 0 : QUEUE / 1024 * PACKET_NS) + 4 * PACKET_NS;
        print_message("64 bytes, rate of the %s: %.0f us alone, %.0f us beside bulk\n",
                      given ? "engine" : "link", (double)alone_ns * 1e-3, (double)beside_ns * 1e-3);
        assert_true(beside_ns <= alone_ns + ahead_ns);
    }
}

/* One connection with small messages all the time costs the others little, and gets its share. */
static void test_flood_of_small_messages(void **state)
{
    (void)state;
    for (int given = 0; given < 2; given++) {
        struct net net = {0};
        fill(&net, 0, 1, 64, FLIGHT_MAX);
        fill(&net, 1, PEERS, MESSAGE_MAX, 2);
        begin(&net, given);
        sim_engines_run(&net.sim, SPAN_NS);
        uint64_t bulk = check_even(&net, 1, PEERS);
        assert_true(bulk >= RATE_BPS / 8 * SPAN_NS / LH_NS_PER_S / 100 * 85);
        assert_true(net.loads[0].delivered > 64 * 300);
        end(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bulk_has_even_shares),
        cmocka_unit_test(test_sizes_of_messages_do_not_count),
        cmocka_unit_test(test_small_messages_do_not_wait_for_bulk),
        cmocka_unit_test(test_flood_of_small_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
