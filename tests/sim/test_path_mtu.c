/*
 * test_path_mtu.c - a path whose MTU falls without a word, in mid-transfer and from the start, and rises
 * again: connections go on with smaller packets, and find the larger ones again.
 *
 * The path is a tap that drops each packet above a length: what a router does whose ICMP is filtered (PMTU
 * black hole). Times are virtual.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/connection_pair.h"

#define MIB ((size_t)1 << 20)
#define MS  LH_NS_PER_MS
#define S   LH_NS_PER_S
#define MTU 4096u
/* IPv6 and UDP headers, which datagrams of the simulated fabric do not have. */
#define IP_UDP_BYTES 48u
/* A search takes 8 rounds; the confirmation before it a second. */
#define FOUND_NS (3 * S)

struct limit {
    uint32_t path_bytes; /* IP packets up to this pass */
    uint64_t dropped;
};

static bool pass_short(void *context, struct sim_datagram *datagram)
{
    struct limit *limit = context;
    bool passes = datagram->bytes + IP_UDP_BYTES <= limit->path_bytes;
    limit->dropped += !passes;
    return passes;
}

static void open_path(struct connection_pair *pair, struct limit *limit, const char *link,
                      const char *scheme, const struct lh_attr *changed)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.mtu_bytes = MTU;
    attr.chunk_bytes = 16 * MTU;
    attr.slot_bytes = MIB;
    attr.slots = 16;
    attr.reliability = scheme;
    attr.peer_timeout_ns = 60 * S;
    static uint32_t opened;
    char world[16];
    snprintf(world, sizeof world, "pmtu%u", opened++); /* one that failed stays */
    connection_pair_open(pair, world, 3, link, changed ? changed : &attr, NULL);
    sim_world_tap(pair->world, pass_short, limit);
}

static struct lh_stats stats_of(struct connection_pair *pair, int end)
{
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(pair->ends[end], &stats), 0);
    return stats;
}

static uint32_t packet_bytes(struct connection_pair *pair, int end)
{
    struct lh_congestion_report report;
    assert_int_equal(lh_connection_congestion(pair->ends[end], &report), 0);
    return report.packet_bytes;
}

/* A message under way. */
struct transfer {
    uint8_t *data, *buffer;
    size_t bytes;
    struct lh_request *sent, *received;
};

static void begin(struct connection_pair *pair, struct transfer *transfer, size_t bytes, uint64_t seed)
{
    transfer->bytes = bytes;
    transfer->data = connection_pair_bytes(bytes, seed);
    transfer->buffer = calloc(1, bytes);
    transfer->received = connection_pair_recv(pair, 1, transfer->buffer, bytes);
    transfer->sent = connection_pair_send(pair, 0, transfer->data, bytes);
}

static void finish(struct connection_pair *pair, struct transfer *transfer)
{
    struct lh_result got = connection_pair_finish(pair, transfer->received);
    struct lh_result sent = connection_pair_finish(pair, transfer->sent);
    assert_int_equal(got.error, 0);
    assert_int_equal(sent.error, 0);
    assert_int_equal(got.bytes, transfer->bytes);
    assert_memory_equal(transfer->data, transfer->buffer, transfer->bytes);
    free(transfer->data);
    free(transfer->buffer);
}

/* Messages one after the other for that time. */
static void transfer_for(struct connection_pair *pair, size_t bytes, lh_time span)
{
    lh_time until = connection_pair_now(pair) + span;
    for (uint64_t seed = 1; connection_pair_now(pair) < until; seed++) {
        struct transfer transfer;
        begin(pair, &transfer, bytes, seed);
        finish(pair, &transfer);
        connection_pair_run(pair, 100 * MS);
    }
}

static const struct {
    const char *link, *scheme;
    uint32_t path_bytes, packet_bytes;
} falls[] = {
    {"rtt=10ms,rate=1Gbit", "sr-rto", 1500, 1024},
    {"rtt=10ms,rate=1Gbit,loss=0.01", "sr-nack", 1500, 1024},
    {"rtt=100ms,rate=1Gbit", "ec:xor", 4000, 2048},
    {"rtt=100us,rate=10Gbit", "sr-nack", 1280, 1024},
    {"rtt=10ms,rate=1Gbit,loss=0.2,duplicate=0.05,reorder=0.05", "sr-nack", 1000, 512},
    {"rtt=10ms,rate=100Mbit,queue=4KiB", "sr-nack", 1500, 1024}, /* takes some of the pieces of a packet */
    {"rtt=10ms,rate=200Mbit", "hybrid", 2132, 2048},             /* with all headers exactly */
    {"rtt=10ms,rate=200Mbit", "hybrid", 2131, 1024},
};

static void falls_in_mid_transfer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++) {
        struct connection_pair pair;
        struct limit limit = {.path_bytes = 9000};
        struct transfer transfer;
        open_path(&pair, &limit, falls[i].link, falls[i].scheme, NULL);
        transfer_for(&pair, 3 * MIB + 1234, S);
        assert_int_equal(packet_bytes(&pair, 0), MTU);
        assert_int_equal(stats_of(&pair, 0).tx_pieces, 0);
        begin(&pair, &transfer, 12 * MIB + 777, 99);
        connection_pair_run(&pair, 2 * MS);
        limit.path_bytes = falls[i].path_bytes;
        finish(&pair, &transfer);
        struct lh_stats tx = stats_of(&pair, 0), rx = stats_of(&pair, 1);
        assert_int_equal(packet_bytes(&pair, 0), falls[i].packet_bytes);
        assert_int_equal(tx.path_mtu_lowered, 1);
        assert_int_not_equal(tx.tx_pieces, 0);
        assert_int_not_equal(rx.rx_pieces, 0);
        assert_int_equal(lh_stats_bad_packets(&rx), 0);
        assert_int_equal(lh_stats_bad_packets(&tx), 0);
        connection_pair_close(&pair);
    }
}

/* The verdict of a path without any packet comes after 2 s: the probes are sooner. */
static void small_from_the_start(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof falls / sizeof falls[0]; i++) {
        struct connection_pair pair;
        struct limit limit = {.path_bytes = falls[i].path_bytes};
        struct transfer transfer;
        open_path(&pair, &limit, falls[i].link, falls[i].scheme, NULL);
        begin(&pair, &transfer, 5 * MIB + 777, 9);
        finish(&pair, &transfer);
        assert_int_equal(packet_bytes(&pair, 0), falls[i].packet_bytes);
        connection_pair_close(&pair);
    }
}

/* Each doubling of the interval is at most one step behind the path. */
static void rises_again(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct limit limit = {.path_bytes = 1500};
    open_path(&pair, &limit, "rtt=10ms,rate=1Gbit", "sr-nack", NULL);
    transfer_for(&pair, MIB, 30 * S);
    assert_int_equal(packet_bytes(&pair, 0), 1024);
    assert_int_equal(stats_of(&pair, 0).path_mtu_raised, 0);
    limit.path_bytes = 2500;
    transfer_for(&pair, MIB, 32 * S);
    assert_int_equal(packet_bytes(&pair, 0), 2048);
    limit.path_bytes = 9000;
    transfer_for(&pair, MIB, 70 * S);
    assert_int_equal(packet_bytes(&pair, 0), MTU);
    uint64_t pieces = stats_of(&pair, 0).tx_pieces;
    transfer_for(&pair, MIB, S);
    assert_int_equal(stats_of(&pair, 0).tx_pieces, pieces);
    /* and falls */
    limit.path_bytes = 1500;
    transfer_for(&pair, MIB, 5 * S);
    assert_int_equal(packet_bytes(&pair, 0), 1024);
    assert_int_equal(stats_of(&pair, 0).path_mtu_lowered, 2);
    connection_pair_close(&pair);
}

/* Long carriers of small messages go in parts then. */
static void small_messages(void **state)
{
    (void)state;
    static const uint32_t paths[] = {1500, 1000};
    for (size_t i = 0; i < 2; i++) {
        struct connection_pair pair;
        struct limit limit = {.path_bytes = 9000};
        open_path(&pair, &limit, "rtt=10ms,rate=1Gbit", "sr-nack", NULL);
        transfer_for(&pair, 4096, S);
        limit.path_bytes = paths[i];
        transfer_for(&pair, 4096, 5 * S);
        assert_in_range(packet_bytes(&pair, 0), 512, 1024);
        connection_pair_close(&pair);
    }
}

/* An outage is none: nothing passes, so nothing is known of lengths. */
static void an_outage(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct limit limit = {.path_bytes = 9000};
    struct transfer transfer;
    open_path(&pair, &limit, "rtt=10ms,rate=1Gbit", "sr-nack", NULL);
    transfer_for(&pair, MIB, S);
    begin(&pair, &transfer, 12 * MIB, 5);
    connection_pair_run(&pair, 20 * MS);
    limit.path_bytes = 0;
    uint64_t before = stats_of(&pair, 0).path_mtu_probes;
    connection_pair_run(&pair, 30 * S);
    assert_in_range(stats_of(&pair, 0).path_mtu_probes - before, 1, 60);
    limit.path_bytes = 9000;
    finish(&pair, &transfer);
    assert_int_equal(stats_of(&pair, 0).path_mtu_lowered, 0);
    connection_pair_close(&pair);
}

/* A queue that is always full drops long probes sooner than short ones; data that arrive show better. */
static void a_full_queue(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct limit limit = {.path_bytes = 9000};
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.mtu_bytes = MTU;
    attr.chunk_bytes = 16 * MTU;
    attr.slot_bytes = MIB;
    attr.slots = 16;
    attr.reliability = "sr-nack";
    attr.rate_bps = 110 * 1000 * 1000;
    open_path(&pair, &limit, "rtt=10ms,rate=100Mbit,queue=40KiB,drop=tail", NULL, &attr);
    transfer_for(&pair, 4 * MIB, 20 * S);
    assert_int_equal(stats_of(&pair, 0).path_mtu_lowered, 0);
    connection_pair_close(&pair);
}

/* Nothing is probed for what takes a round trip, nor on an idle connection. */
static void little_is_probed(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct limit limit = {.path_bytes = 9000};
    open_path(&pair, &limit, "rtt=10ms,rate=10Gbit", "sr-nack", NULL);
    connection_pair_run(&pair, 10 * S);
    assert_int_equal(stats_of(&pair, 0).path_mtu_probes, 0);
    transfer_for(&pair, MIB, 10 * S);
    assert_in_range(stats_of(&pair, 0).path_mtu_probes, 1, 11);
    assert_int_equal(stats_of(&pair, 1).path_mtu_probes, 0);
    connection_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(falls_in_mid_transfer),
        cmocka_unit_test(small_from_the_start),
        cmocka_unit_test(rises_again),
        cmocka_unit_test(small_messages),
        cmocka_unit_test(an_outage),
        cmocka_unit_test(a_full_queue),
        cmocka_unit_test(little_is_probed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
