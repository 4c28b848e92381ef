/*
 * test_connection_small.c - small messages, which need no clear-to-send, over a simulated network.
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
#include "sdr/sdr_driver.h"
#include "support/connection_pair.h"
#include "wire/eager_packets.h"

#define RTT  (20 * LH_NS_PER_MS)
#define LINK "rtt=20ms,rate=10Gbit"
#define SIZE 64u

static struct connection_pair open_with_mtu(const char *link, uint32_t mtu_bytes)
{
    struct connection_pair pair;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.mtu_bytes = mtu_bytes;
    connection_pair_open(&pair, "small", 11, link, &attr, NULL);
    connection_pair_run(&pair, 5 * RTT); /* the path is measured */
    return pair;
}

static struct connection_pair open_pair(const char *link)
{
    return open_with_mtu(link, 1024);
}

static struct lh_stats stats_of(struct connection_pair *pair, int end)
{
    struct lh_stats stats;
    assert_int_equal(lh_connection_stats(pair->ends[end], &stats), 0);
    return stats;
}

/* No round trip before the data: it arrives half of one after it was sent, posted in time or not. */
static void one_way_is_half_a_round_trip(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(LINK);
    uint8_t *data = connection_pair_bytes(EAGER_MAX, 1), buffer[EAGER_MAX];
    struct lh_result result;
    const size_t sizes[] = {0, 1, SIZE, EAGER_UNIT_BYTES, EAGER_UNIT_BYTES + 1, EAGER_MAX};
    for (int i = 0; i < 6; i++) {
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, i % 2 ? sizeof buffer : sizes[i]);
        struct lh_request *send = connection_pair_send(&pair, 0, data, sizes[i]);
        assert_true(connection_pair_wait(&pair, recv, RTT / 2 + LH_NS_PER_MS, &result));
        assert_int_equal(result.bytes, sizes[i]);
        assert_memory_equal(buffer, data, sizes[i]);
        lh_request_free(recv);
        result = connection_pair_finish(&pair, send);
        assert_int_equal(result.error, 0);
        assert_true(result.ended_ns - result.started_ns < RTT + LH_NS_PER_MS);
    }
    assert_int_equal(stats_of(&pair, 0).tx_packets, 0); /* no data packet */
    connection_pair_close(&pair);
    free(data);
}

/* While nothing else is in flight all units of a message leave in the call: none waits for a step. */
static void check_that_units_leave(uint32_t mtu_bytes, const uint64_t carriers[4])
{
    struct connection_pair pair = open_with_mtu(LINK, mtu_bytes);
    uint8_t *data = connection_pair_bytes(EAGER_MAX, 3), buffer[EAGER_MAX];
    const size_t sizes[] = {SIZE, EAGER_UNIT_BYTES, 1024, EAGER_MAX};
    for (int i = 0; i < 4; i++) {
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, sizeof buffer);
        uint64_t before = stats_of(&pair, 0).tx_control;
        struct lh_request *send = connection_pair_send(&pair, 0, data, sizes[i]);
        assert_int_equal(stats_of(&pair, 0).tx_control, before + carriers[i]);
        assert_int_equal(connection_pair_finish(&pair, recv).bytes, sizes[i]);
        assert_memory_equal(buffer, data, sizes[i]);
        assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    }
    connection_pair_close(&pair);
    free(data);
}

/* In as few carriers as packets of the MTU hold. */
static void all_units_leave_in_the_call(void **state)
{
    (void)state;
    check_that_units_leave(1024, (const uint64_t[]){1, 1, 2, 5});
    check_that_units_leave(2048, (const uint64_t[]){1, 1, 1, 3});
    check_that_units_leave(4096, (const uint64_t[]){1, 1, 1, 2});
}

/* One buffer is late: messages wait at the receiver, and then at the sender. None is lost or out of order. */
static void receives_that_are_posted_late(void **state)
{
    (void)state;
    enum { COUNT = 2 * EAGER_CELLS };
    struct connection_pair pair = open_pair(LINK);
    uint8_t *data = connection_pair_bytes(COUNT + SIZE, 2), buffer[SIZE];
    struct lh_request **sends = calloc(COUNT, sizeof(struct lh_request *));
    for (uint32_t i = 0; i < COUNT; i++)
        sends[i] = connection_pair_send(&pair, 0, data + i, SIZE);
    connection_pair_run(&pair, 10 * RTT);
    assert_int_equal(lh_test(sends[0], NULL), 0); /* it is not in a receive's buffer */
    assert_int_equal(stats_of(&pair, 1).bad_control, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, sizeof buffer);
        assert_true(i >= EAGER_CELLS || lh_test(recv, NULL) == 1); /* it was there */
        assert_int_equal(connection_pair_finish(&pair, recv).bytes, SIZE);
        assert_memory_equal(buffer, data + i, SIZE);
    }
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(connection_pair_finish(&pair, sends[i]).error, 0);
    connection_pair_close(&pair);
    free(sends);
    free(data);
}

/* Messages that are not acknowledged in carriers take no places from those that are. */
static void after_many_long_ones(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=100us");
    for (uint32_t i = 0; i <= EAGER_CELLS; i++)
        connection_pair_transfer(&pair, 0, EAGER_MAX + 1, EAGER_MAX + 1);
    connection_pair_transfer(&pair, 0, SIZE, SIZE);
    connection_pair_close(&pair);
}

/* Held at the receiver, and canceled: their receives end so, and their places are free again. link: where the
 * report of that is lost, the sender asks. */
static void cancel_what_is_held(const char *link)
{
    struct connection_pair pair = open_pair(link);
    uint8_t data[SIZE] = {1}, buffer[SIZE];
    static struct lh_request *requests[EAGER_CELLS];
    for (uint32_t i = 0; i < EAGER_CELLS; i++)
        requests[i] = connection_pair_send(&pair, 0, data, SIZE);
    connection_pair_run(&pair, LH_NS_PER_S);
    for (uint32_t i = 0; i < EAGER_CELLS; i++) {
        lh_cancel(requests[i]);
        assert_int_equal(connection_pair_finish(&pair, requests[i]).error, -LH_ECANCELED);
    }
    connection_pair_run(&pair, LH_NS_PER_S);
    for (uint32_t i = 0; i < EAGER_CELLS; i++)
        requests[i] = connection_pair_recv(&pair, 1, buffer, SIZE);
    for (uint32_t i = 0; i < EAGER_CELLS; i++)
        assert_int_equal(connection_pair_finish(&pair, requests[i]).error, -LH_ECANCELED);
    connection_pair_transfer(&pair, 0, SIZE, SIZE);
    assert_int_equal(stats_of(&pair, 1).bad_control, 0);
    connection_pair_close(&pair);
}

static void canceled_at_the_receiver(void **state)
{
    (void)state;
    cancel_what_is_held("rtt=100us");
    cancel_what_is_held("rtt=100us,loss=0.5");
}

/* An entry as a hostile peer writes it. */
static void put(struct connection_pair *pair, const struct eager_entry *entry)
{
    static uint32_t carrier;
    uint8_t out[EAGER_BYTES_MAX], *payload;
    struct eager_writer writer;
    eager_write_begin(&writer, out, sizeof out, carrier++, NULL);
    assert_true(eager_write_entry(&writer, entry, &payload));
    memset(payload, 0xFF, entry->data_bytes);
    assert_int_equal(lh_sdr_message_send(pair->ends[0]->qp, out, writer.bytes), 0);
    connection_pair_run(pair, LH_NS_PER_MS);
}

/* A peer that sends units of a message, and announces it as a long one of as many bytes. */
static void contradicting_kinds(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=100us");
    uint8_t buffer[1000];
    put(&pair, &(struct eager_entry){.bytes = 1000, .unit = 1, .data_bytes = 104});
    put(&pair, &(struct eager_entry){.bytes = 1000, .is_long = true});
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, sizeof buffer);
    connection_pair_run(&pair, LH_NS_PER_S);
    assert_int_equal(lh_test(recv, NULL), 0); /* the first unit never came */
    assert_int_equal(stats_of(&pair, 1).bad_control, 1);
    for (uint32_t i = 1; i <= EAGER_CELLS; i++)
        put(&pair, &(struct eager_entry){.message = i, .bytes = 128, .data_bytes = 128});
    connection_pair_finish(&pair, connection_pair_recv(&pair, 1, buffer, sizeof buffer));
    const uint32_t last = EAGER_CELLS + 1;
    put(&pair, &(struct eager_entry){.message = last, .bytes = 2000, .is_long = true});
    put(&pair, &(struct eager_entry){.message = last, .bytes = 2000, .unit = 1, .data_bytes = 896});
    assert_int_equal(stats_of(&pair, 1).bad_control, 2);
    lh_request_free(recv);
    connection_pair_close(&pair);
}

static void expect_refused(struct connection_pair *pair, struct lh_request *send, struct lh_request *recv)
{
    assert_int_equal(connection_pair_finish(pair, send).error, -LH_ETRUNCATED);
    assert_int_equal(connection_pair_finish(pair, recv).error, -LH_ETRUNCATED);
}

/* A message that exceeds its receive: small or long, the receive posted before or after it. */
static void too_long_for_its_receive(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair(LINK);
    uint8_t *data = connection_pair_bytes(5 * EAGER_MAX, 3), buffer[SIZE];
    const size_t sizes[] = {SIZE + 1, EAGER_MAX, EAGER_MAX + 1, 5 * EAGER_MAX};
    for (int i = 0; i < 8; i++) {
        struct lh_request *recv = i < 4 ? connection_pair_recv(&pair, 1, buffer, SIZE) : NULL;
        struct lh_request *send = connection_pair_send(&pair, 0, data, sizes[i % 4]);
        if (i >= 4) {
            connection_pair_run(&pair, 4 * RTT);
            recv = connection_pair_recv(&pair, 1, buffer, SIZE);
        }
        expect_refused(&pair, send, recv);
        connection_pair_transfer(&pair, 0, SIZE, SIZE); /* the connection goes on */
        connection_pair_transfer(&pair, 0, 2 * EAGER_MAX, 3 * EAGER_MAX);
    }
    connection_pair_close(&pair);
    free(data);
}

/* Small and long ones meet their receives in order, whatever the receives hold. */
static void small_among_long_ones(void **state)
{
    (void)state;
    enum { COUNT = 60 };
    struct connection_pair pair = open_pair("rtt=20ms,rate=1Gbit,loss=0.03,reorder=0.05");
    uint8_t *data = connection_pair_bytes(COUNT + 3 * EAGER_MAX, 4);
    static uint8_t buffers[COUNT][3 * EAGER_MAX];
    struct lh_request *sends[COUNT], *recvs[COUNT];
    for (int i = 0; i < COUNT; i++) {
        size_t size = i % 3 == 0 ? 3 * EAGER_MAX : (size_t)i * 7;
        recvs[i] = connection_pair_recv(&pair, 1, buffers[i], i % 2 ? 3 * EAGER_MAX : size);
        sends[i] = connection_pair_send(&pair, 0, data + i, size);
    }
    for (int i = 0; i < COUNT; i++) {
        size_t size = i % 3 == 0 ? 3 * EAGER_MAX : (size_t)i * 7;
        assert_int_equal(connection_pair_finish(&pair, sends[i]).error, 0);
        assert_int_equal(connection_pair_finish(&pair, recvs[i]).bytes, size);
        assert_memory_equal(buffers[i], data + i, size);
    }
    connection_pair_close(&pair);
    free(data);
}

/* A single loss costs no round trip: of 400 messages one at a time, at most one in a hundred takes more than
 * 1.2 of it. */
static void losses_cost_no_round_trip(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=20ms,rate=10Gbit,loss=0.01");
    uint8_t *data = connection_pair_bytes(SIZE, 5), buffer[SIZE];
    uint32_t slow = 0;
    for (uint32_t i = 0; i < 400; i++) {
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, SIZE);
        lh_time started = connection_pair_now(&pair);
        assert_int_equal(connection_pair_finish(&pair, connection_pair_send(&pair, 0, data, SIZE)).error,
                         0);
        slow += connection_pair_now(&pair) - started > RTT + RTT / 5;
        assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    }
    assert_true(slow <= 4);
    connection_pair_close(&pair);
    free(data);
}

/* 256 of them in flight, beyond the window: each window takes a round trip and the time of its bytes on the
 * link, none waits for a timer, and no carrier is sent twice. */
static void many_at_once(size_t size, uint32_t mtu_bytes, uint32_t carriers)
{
    enum { COUNT = 5000, FLIGHT = 256 };
    static struct lh_request *sends[FLIGHT], *recvs[FLIGHT];
    static uint8_t buffers[FLIGHT][EAGER_MAX];
    const lh_time rtt = 200 * LH_NS_PER_US;
    struct connection_pair pair = open_with_mtu("rtt=200us,rate=10Gbit", mtu_bytes);
    uint8_t *data = connection_pair_bytes(FLIGHT + EAGER_MAX, 6);
    uint64_t before = stats_of(&pair, 0).tx_control;
    lh_time started = connection_pair_now(&pair);
    for (uint32_t i = 0; i < COUNT + FLIGHT; i++) {
        uint32_t at = i % FLIGHT;
        if (i >= FLIGHT) {
            assert_int_equal(connection_pair_finish(&pair, sends[at]).error, 0);
            assert_int_equal(connection_pair_finish(&pair, recvs[at]).bytes, size);
            assert_memory_equal(buffers[at], data + at, size);
        }
        if (i < COUNT) {
            recvs[at] = connection_pair_recv(&pair, 1, buffers[at], size);
            sends[at] = connection_pair_send(&pair, 0, data + at, size);
        }
    }
    lh_time took = connection_pair_now(&pair) - started;
    assert_in_range(stats_of(&pair, 0).tx_control - before, 1, carriers);
    assert_int_equal(stats_of(&pair, 1).rx_inbox_overflow, 0);
    assert_true(took < (COUNT * size / 65536 + 1) * 2 * rtt);
    connection_pair_close(&pair);
    free(data);
}

static void many_of_a_kilobyte(void **state)
{
    (void)state;
    many_at_once(1024, 1024, 6000); /* seven messages in eight, and pings */
    many_at_once(1024, 4096, 2300); /* seven in three */
}

static void many_of_four_kilobytes(void **state)
{
    (void)state;
    many_at_once(EAGER_MAX, 1024, 25100); /* five each, and pings */
    many_at_once(EAGER_MAX, 4096, 8000);  /* at most two */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_way_is_half_a_round_trip),  cmocka_unit_test(all_units_leave_in_the_call),
        cmocka_unit_test(receives_that_are_posted_late), cmocka_unit_test(after_many_long_ones),
        cmocka_unit_test(canceled_at_the_receiver),      cmocka_unit_test(contradicting_kinds),
        cmocka_unit_test(too_long_for_its_receive),      cmocka_unit_test(small_among_long_ones),
        cmocka_unit_test(losses_cost_no_round_trip),     cmocka_unit_test(many_of_a_kilobyte),
        cmocka_unit_test(many_of_four_kilobytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
