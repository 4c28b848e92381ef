/*
 * test_connection_hybrid.c - when a connection injects parity: behind all data, of the end only, and as
 * much as it has measured; and what the hybrid scheme makes of that. In simulation.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "message/connection_state.h"
#include "wire/wire_numbers.h"

#include "support/connection_pair.h"

#define SLOT  ((size_t)256 << 10) /* 2.1 ms at 1 Gbit/s */
#define RTT   (20 * LH_NS_PER_MS)
#define CLEAN "rtt=20ms,rate=1Gbit"
#define LOSSY "rtt=20ms,rate=1Gbit,loss=0.01"

static struct connection_pair open_with(const char *reliability, const char *link)
{
    struct lh_attr attr;
    struct connection_pair pair;
    connection_pair_attr(&attr);
    attr.reliability = reliability;
    attr.slot_bytes = SLOT;
    attr.slots = 256;
    attr.window_bytes = 64 * SLOT;
    connection_pair_open(&pair, "hybrid", 5, link, &attr, NULL);
    connection_pair_run(&pair, 4 * RTT); /* the round trip is known */
    return pair;
}

static struct lh_stats sent_by(const struct connection_pair *pair)
{
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(pair->ends[0], &stats), 0);
    return stats;
}

/* Returns the time that the send took. */
static lh_time send_one(struct connection_pair *pair, size_t bytes)
{
    uint8_t *data = connection_pair_bytes(bytes, 3), *buffer = malloc(bytes);
    struct lh_request *receive = connection_pair_recv(pair, 1, buffer, bytes);
    connection_pair_run(pair, RTT); /* it is cleared to be sent */
    struct lh_result sent = connection_pair_finish(pair, connection_pair_send(pair, 0, data, bytes));
    connection_pair_finish(pair, receive);
    assert_memory_equal(buffer, data, bytes);
    free(data);
    free(buffer);
    assert_int_equal(sent.error, 0);
    return sent.ended_ns - sent.started_ns;
}

static lh_time ideal_ns(size_t bytes)
{
    return (lh_time)bytes * 8 + (lh_time)bytes * 8 / 10 +
           RTT; /* with headers, some 7 % at an MTU of 1024 */
}

/* Nothing is lost: parity of a code takes no time, and where a segment was whole before, it is not even
 * sent. */
static void parity_delays_no_data(void **state)
{
    (void)state;
    struct connection_pair pair = open_with("ec:mds,k=8,m=4", CLEAN);
    lh_time took = send_one(&pair, 20 * SLOT); /* 42 ms of injection, two round trips */
    assert_in_range(took, 20 * SLOT * 8 + RTT, ideal_ns(20 * SLOT));
    assert_true(sent_by(&pair).parity_chunks_sent < 15 * SLOT / 1024 / 2);
    connection_pair_close(&pair);
}

/* Parity of a segment with half of the slots behind it does not wait. */
static void parity_frees_slots(void **state)
{
    (void)state;
    struct connection_pair pair = open_with("ec:mds,k=8,m=4", LOSSY);
    lh_time took = send_one(&pair, 200 * SLOT);
    assert_true(took < 2 * ideal_ns(200 * SLOT));
    connection_pair_close(&pair);
}

/* Of a long message the end has parity, and only that. */
static void only_the_end_is_covered(void **state)
{
    (void)state;
    struct connection_pair pair = open_with("hybrid", LOSSY);
    for (int i = 0; i < 4; i++)
        send_one(&pair, 8 * SLOT); /* the loss is known */
    struct lh_stats before = sent_by(&pair);
    lh_time took = send_one(&pair, 60 * SLOT); /* six round trips */
    struct lh_stats after = sent_by(&pair);
    uint64_t parity = after.parity_chunks_sent - before.parity_chunks_sent;
    uint64_t chunks = 60 * SLOT / 1024;
    assert_in_range(parity, 1, chunks / 40);
    assert_true(after.tx_retransmitted_packets - before.tx_retransmitted_packets > chunks / 200);
    assert_true(took < ideal_ns(60 * SLOT) + RTT / 5);
    connection_pair_close(&pair);
}

/* A stream of messages pays once: data of the next one goes before parity of the last. */
static void a_stream_pays_once(void **state)
{
    (void)state;
    struct connection_pair pair = open_with("hybrid", CLEAN);
    uint8_t *data = connection_pair_bytes(2 * SLOT, 3), *buffer = malloc(2 * SLOT);
    struct lh_request *receives[20], *sends[20];
    for (int i = 0; i < 20; i++)
        receives[i] = connection_pair_recv(&pair, 1, buffer, 2 * SLOT);
    connection_pair_run(&pair, RTT);
    for (int i = 0; i < 20; i++)
        sends[i] = connection_pair_send(&pair, 0, data, 2 * SLOT);
    for (int i = 0; i < 20; i++) {
        connection_pair_finish(&pair, receives[i]);
        connection_pair_finish(&pair, sends[i]);
    }
    /* Of 84 ms of injection, the last 22 or so: 11 segments of 256 chunks, with some 3 % of parity. */
    assert_in_range(sent_by(&pair).parity_chunks_sent, 1, 14 * 256 / 20);
    free(data);
    free(buffer);
    connection_pair_close(&pair);
}

/* The loss is measured, so parity follows it. */
static void parity_follows_the_loss(void **state)
{
    (void)state;
    uint64_t parity[3] = {0};
    static const char *const links[] = {CLEAN, LOSSY, "rtt=20ms,rate=1Gbit,loss=0.08"};
    for (int i = 0; i < 3; i++) {
        struct connection_pair pair = open_with("hybrid", links[i]);
        for (int n = 0; n < 12; n++)
            send_one(&pair, 4 * SLOT);
        struct lh_stats before = sent_by(&pair);
        for (int n = 0; n < 12; n++)
            send_one(&pair, 4 * SLOT);
        struct lh_stats after = sent_by(&pair);
        parity[i] = after.parity_chunks_sent - before.parity_chunks_sent;
        assert_true(after.fallbacks - before.fallbacks <= 1);
        connection_pair_close(&pair);
    }
    assert_true(parity[1] > 2 * parity[0] && parity[2] > 3 * parity[1]);
}

/* One that receives by `reliability` from a sender that shows what it knows by its blob's flags. */
struct strangers {
    struct connection_pair pair;
    uint8_t blobs[2][LH_BLOB_MAX];
    size_t bytes[2];
};

static struct strangers open_strangers(const char *reliability, const char *text)
{
    static const char *const devices[] = {"sim:hybrid/0", "sim:hybrid/1"};
    struct strangers s;
    struct lh_attr attr;
    struct lh_link_spec link;
    connection_pair_attr(&attr);
    attr.workers = LH_NO_WORKERS;
    assert_int_equal(lh_link_parse(text, &link), 0);
    s.pair = (struct connection_pair){.world = sim_world_create("hybrid", 1, &link)};
    for (int i = 0; i < 2; i++) {
        attr.device = devices[i];
        attr.reliability = i == 0 ? "sr-nack" : reliability;
        assert_int_equal(lh_open(&attr, &s.pair.ends[i]), 0);
        s.bytes[i] = sizeof s.blobs[i];
        assert_int_equal(lh_blob(s.pair.ends[i], s.blobs[i], &s.bytes[i]), 0);
        assert_true(s.blobs[i][7] & WIRE_ANNOUNCES_HYBRID);
        s.blobs[i][7] &= (uint8_t)~WIRE_ANNOUNCES_HYBRID;
    }
    assert_int_equal(lh_attach(s.pair.ends[0], s.blobs[1], s.bytes[1]), 0); /* it receives by sr-nack */
    return s;
}

/* A release that does not know the scheme has 0 where its blob has a flag since: who receives by it learns
 * that at once, and can use another one. */
static void a_peer_without_it(void **state)
{
    (void)state;
    struct strangers s = open_strangers("hybrid", CLEAN);
    assert_int_equal(lh_attach(s.pair.ends[1], s.blobs[0], s.bytes[0]), -LH_EVERSION);
    assert_non_null(strstr(lh_last_error(), "hybrid: unknown to the peer"));
    s.blobs[0][7] |= WIRE_ANNOUNCES_HYBRID;
    assert_int_equal(lh_attach(s.pair.ends[1], s.blobs[0], s.bytes[0]), 0); /* nothing of it was kept */
    connection_pair_transfer(&s.pair, 0, 3000, 3000);
    connection_pair_transfer(&s.pair, 1, 3000, 3000);
    connection_pair_close(&s.pair);
}

/* `auto` does: messages that would come by hybrid come by a code. */
static void auto_of_a_peer_without_it(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct strangers s = open_strangers("auto", LOSSY);
        struct lh_scheme_report report;
        s.blobs[0][7] |= known ? WIRE_ANNOUNCES_HYBRID : 0;
        assert_int_equal(lh_attach(s.pair.ends[1], s.blobs[0], s.bytes[0]), 0);
        for (int i = 0; i < 8; i++)
            send_one(&s.pair, 16 * SLOT);
        assert_int_equal(lh_connection_scheme(s.pair.ends[1], &report), 0);
        assert_int_equal(strncmp(report.scheme, known ? "hybrid" : "ec:", known ? 6 : 3), 0);
        assert_int_equal(sent_by(&s.pair).bad_control, 0);
        connection_pair_close(&s.pair);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parity_delays_no_data),     cmocka_unit_test(parity_frees_slots),
        cmocka_unit_test(only_the_end_is_covered),   cmocka_unit_test(a_stream_pays_once),
        cmocka_unit_test(parity_follows_the_loss),   cmocka_unit_test(a_peer_without_it),
        cmocka_unit_test(auto_of_a_peer_without_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
