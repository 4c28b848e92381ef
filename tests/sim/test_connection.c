/*
 * test_connection.c - reliable messages over a simulated network in virtual time: what arrives.
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

#include "base/min_max.h"
#include "support/connection_pair.h"
#include "wire/qp_info.h"

#define MTU   1024u
#define SLOT  16384u
#define SLOTS 8u

#define CLEAN_LINK "rtt=10ms,rate=10Gbit"
#define BAD_LINK   "rtt=10ms,rate=10Gbit,loss=0.05,reorder=0.02,duplicate=0.02,corrupt=0.01,jitter=200us"

static struct connection_pair open_pair(const char *link)
{
    struct connection_pair pair;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    connection_pair_open(&pair, "connection", 7, link, &attr, NULL);
    return pair;
}

static const size_t sizes[] = {0,    1,        MTU - 1,  MTU,          MTU + 1,          SLOT - 1,
                               SLOT, SLOT + 1, 3 * SLOT, 3 * SLOT + 5, SLOTS *SLOT + 17, 40 * SLOT};
#define SIZES (sizeof sizes / sizeof sizes[0])

static void every_size(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(CLEAN_LINK);
    for (size_t i = 0; i < SIZES; i++)
        connection_pair_transfer(&pair, (int)(i % 2), sizes[i], sizes[i]);
    connection_pair_close(&pair);
}

static void receives_larger_than_messages(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(CLEAN_LINK);
    for (size_t i = 0; i < SIZES; i++) {
        connection_pair_transfer(&pair, 0, sizes[i], sizes[i] + 1);
        connection_pair_transfer(&pair, 1, sizes[i], sizes[i] + 20 * SLOT + 3);
    }
    connection_pair_close(&pair);
}

static void lossy_link(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(BAD_LINK);
    for (size_t i = 0; i < SIZES; i++)
        connection_pair_transfer(&pair, (int)(i % 2), sizes[i], sizes[i] + (i % 3) * SLOT);
    connection_pair_close(&pair);
}

/* The queue pair has as many slots as were asked for: a single one too. */
static void check_slots(struct lh_connection *connection, uint32_t slots)
{
    uint8_t blob[LH_BLOB_MAX];
    size_t bytes = sizeof blob;
    struct qp_info info;
    assert_int_equal(lh_blob(connection, blob, &bytes), 0);
    assert_int_equal(qp_info_decode(blob + 8, bytes - 8, &info), 0);
    assert_int_equal(info.slots, slots);
}

/* A slot that is one chunk, one slot, one chunk of window: everything at its smallest. */
static void smallest_of_all(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.slots = 1;
    attr.slot_bytes = MTU;
    attr.window_bytes = MTU;
    connection_pair_open(&pair, "connection", 7, BAD_LINK, &attr, NULL);
    check_slots(pair.ends[0], 1);
    connection_pair_transfer(&pair, 0, 10 * MTU + 1, 12 * MTU);
    connection_pair_transfer(&pair, 1, 0, 0);
    connection_pair_close(&pair);
}

/* Chunks wait for many round trips before the pace lets them out: nothing is sent again meanwhile, and
 * nobody asks to be called for ever while the queue is full. */
static void pace_far_below_the_path(void **state)
{
    (void)state;
    const char *const schemes[] = {"sr-rto,alpha=0.25", "sr-nack"};
    for (int i = 0; i < 2; i++) {
        struct connection_pair pair;
        struct lh_attr attr;
        struct lh_stats stats;
        connection_pair_attr(&attr);
        attr.reliability = schemes[i];
        attr.rate_bps = 10000000;
        connection_pair_open(&pair, "connection", 7, "rtt=20us", &attr, NULL);
        connection_pair_run(&pair, LH_NS_PER_MS); /* the path is measured */
        connection_pair_transfer(&pair, 0, 100 * SLOT, 100 * SLOT);
        assert_int_equal(lh_connection_stats(pair.ends[0], &stats), 0);
        assert_int_equal(stats.tx_retransmitted_packets, 0);
        assert_int_equal(stats.tx_packets, 100 * SLOT / MTU);
        assert_true(pair.turns < 40 * stats.tx_packets);
        connection_pair_close(&pair);
    }
}

/* A message that had left at once did not wait, whenever the sender looks next: its timer runs for three
 * round trips and not for one more. Clear-to-send and data take one and a half. Nor does what is sent again
 * wait until the next timer is due: whoever drives the connection is told to call at once. */
static void a_timeout_waits_no_longer_than_it_says(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_attr attr;
    lh_time shortest = LH_TIME_NEVER;
    connection_pair_attr(&attr);
    attr.reliability = "sr-rto,alpha=2";
    connection_pair_open(&pair, "connection", 8, "rtt=25ms,loss=0.01", &attr, NULL);
    for (int i = 0; i < 50; i++) {
        lh_time started = connection_pair_now(&pair);
        connection_pair_transfer(&pair, 0, SLOT, SLOT);
        lh_time took = connection_pair_now(&pair) - started;
        if (took > 90 * LH_NS_PER_MS)
            shortest = lh_earlier(shortest, took);
    }
    assert_in_range(shortest, 100 * LH_NS_PER_MS, 113 * LH_NS_PER_MS);
    connection_pair_close(&pair);
}

static void each_side_its_scheme(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_attr attr;
    struct lh_attr other;
    connection_pair_attr(&attr);
    other = attr;
    attr.reliability = "sr-rto,alpha=1";
    other.reliability = "sr-nack";
    connection_pair_open(&pair, "connection", 7, BAD_LINK, &attr, &other);
    connection_pair_transfer(&pair, 0, 20 * SLOT, 20 * SLOT);
    connection_pair_transfer(&pair, 1, 20 * SLOT, 20 * SLOT);
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(pair.ends[0], &stats), 0);
    assert_true(stats.nacks_received > 0 && stats.nacks_sent == 0);
    assert_int_equal(lh_connection_stats(pair.ends[1], &stats), 0);
    assert_true(stats.nacks_sent > 0 && stats.nacks_received == 0 && stats.timeouts > 0);
    connection_pair_close(&pair);
}

#define MANY 300u

/* More messages than slots, both ways at once, all posted before anything moves. */
static void many_in_flight(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(BAD_LINK);
    static struct lh_request *send[2][MANY];
    static struct lh_request *recv[2][MANY];
    static uint8_t *data[2][MANY];
    static uint8_t *buffer[2][MANY];
    for (int from = 0; from < 2; from++)
        for (uint32_t i = 0; i < MANY; i++) {
            data[from][i] = connection_pair_bytes(i * 37, i + 1);
            buffer[from][i] = connection_pair_bytes(i * 37, 5);
            send[from][i] = connection_pair_send(&pair, from, data[from][i], i * 37);
        }
    for (int from = 0; from < 2; from++)
        for (uint32_t i = 0; i < MANY; i++)
            recv[from][i] = connection_pair_recv(&pair, 1 - from, buffer[from][i], i * 37);
    for (int from = 0; from < 2; from++)
        for (uint32_t i = 0; i < MANY; i++) {
            assert_int_equal(connection_pair_finish(&pair, send[from][i]).error, 0);
            assert_int_equal(connection_pair_finish(&pair, recv[from][i]).error, 0);
            assert_memory_equal(buffer[from][i], data[from][i], i * 37);
            free(data[from][i]);
            free(buffer[from][i]);
        }
    connection_pair_close(&pair);
}

/* On a clean link a message takes its injection and one round trip, and nothing is sent twice. */
static void ideal_on_a_clean_link(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=10ms,rate=1Gbit");
    size_t bytes = 100 * SLOT;
    uint8_t *data = connection_pair_bytes(bytes, 1);
    uint8_t *buffer = malloc(bytes);
    connection_pair_run(&pair, 100 * LH_NS_PER_MS); /* the round trip is measured */
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, bytes);
    connection_pair_run(&pair, 100 * LH_NS_PER_MS); /* the first clear-to-sends are there */
    struct lh_request *send = connection_pair_send(&pair, 0, data, bytes);
    struct lh_result sent = connection_pair_finish(&pair, send);
    connection_pair_finish(&pair, recv);
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(pair.ends[0], &stats), 0);
    assert_int_equal(stats.tx_retransmitted_packets, 0);
    assert_int_equal(stats.tx_packets, bytes / MTU);
    /* 8 slots of 16 KiB are less than the pipe holds, so clear-to-sends set the pace: a round trip each 8.
     */
    assert_true(sent.ended_ns - sent.started_ns < (100 / SLOTS + 2) * 11 * LH_NS_PER_MS);
    free(data);
    free(buffer);
    connection_pair_close(&pair);
}

static void registered_memory(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(CLEAN_LINK);
    uint8_t *data = connection_pair_bytes(4 * SLOT, 1);
    uint8_t *buffer = malloc(4 * SLOT);
    struct lh_memory *source = NULL;
    struct lh_memory *target = NULL;
    struct lh_request *send = NULL;
    struct lh_request *recv = NULL;
    assert_int_equal(lh_register(pair.ends[0], data, 4 * SLOT, &source), 0);
    assert_int_equal(lh_register(pair.ends[1], buffer, 4 * SLOT, &target), 0);
    assert_int_equal(lh_send(pair.ends[0], data + 1, 4 * SLOT, source, &send), -LH_EINVAL);
    assert_int_equal(lh_send(pair.ends[0], data - 1, 1, source, &send), -LH_EINVAL);
    assert_int_equal(lh_send(pair.ends[0], data, 1, target, &send), -LH_EINVAL);
    assert_int_equal(lh_send(pair.ends[0], NULL, 1, NULL, &send), -LH_EINVAL);
    assert_int_equal(lh_recv(pair.ends[1], buffer + SLOT, 3 * SLOT, target, &recv), 0);
    assert_int_equal(lh_send(pair.ends[0], data + 7, 3 * SLOT - 7, source, &send), 0);
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv).bytes, 3 * SLOT - 7);
    assert_memory_equal(buffer + SLOT, data + 7, 3 * SLOT - 7);
    assert_int_equal(lh_deregister(source), 0); /* the other one goes with its connection */
    free(data);
    connection_pair_close(&pair);
    free(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size),
        cmocka_unit_test(receives_larger_than_messages),
        cmocka_unit_test(lossy_link),
        cmocka_unit_test(smallest_of_all),
        cmocka_unit_test(pace_far_below_the_path),
        cmocka_unit_test(a_timeout_waits_no_longer_than_it_says),
        cmocka_unit_test(many_in_flight),
        cmocka_unit_test(each_side_its_scheme),
        cmocka_unit_test(registered_memory),
        cmocka_unit_test(ideal_on_a_clean_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
