/*
 * test_connection_ends.c - messages and connections that end early: refused, canceled, closed, cut off.
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

#include "support/connection_pair.h"

#define SLOT  16384u
#define BYTES (6 * SLOT + 5)
#define LINK  "rtt=10ms,rate=10Gbit,loss=0.02"
#define MS    LH_NS_PER_MS

static struct connection_pair pair;
static uint8_t *data;
static uint8_t *buffer;
static uint8_t untouched[BYTES];

static int setup(void **state)
{
    (void)state;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    connection_pair_open(&pair, "ends", 3, LINK, &attr, NULL);
    data = connection_pair_bytes(BYTES, 1);
    buffer = malloc(BYTES);
    memset(buffer, 0xEE, BYTES);
    memset(untouched, 0xEE, BYTES);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    connection_pair_close(&pair);
    free(data);
    free(buffer);
    return 0;
}

static struct lh_request *send_all(void)
{
    return connection_pair_send(&pair, 0, data, BYTES);
}

static struct lh_request *recv_all(void)
{
    return connection_pair_recv(&pair, 1, buffer, BYTES);
}

static int error_of(struct lh_request *request)
{
    return connection_pair_finish(&pair, request).error;
}

/* Whatever happened to the messages before, the next one arrives whole. */
static void next_one_arrives(void)
{
    memset(buffer, 0xEE, BYTES);
    struct lh_request *recv = recv_all();
    struct lh_request *send = send_all();
    assert_int_equal(error_of(send), 0);
    assert_int_equal(error_of(recv), 0);
    assert_memory_equal(buffer, data, BYTES);
}

/* ---- refused ----------------------------------------------------------------------------------------- */

static void too_long(void **state)
{
    (void)state;
    static const size_t rooms[] = {0, 1, SLOT - 1, SLOT, BYTES - 1};
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, rooms[i]);
        struct lh_request *send = send_all();
        assert_int_equal(error_of(send), -LH_ETRUNCATED);
        assert_int_equal(error_of(recv), -LH_ETRUNCATED);
        assert_memory_equal(buffer, untouched, BYTES); /* nothing was sent in vain */
    }
    next_one_arrives();
}

/* ---- canceled ---------------------------------------------------------------------------------------- */

static void cancel_send_before_its_receive(void **state)
{
    (void)state;
    struct lh_request *send = send_all();
    connection_pair_run(&pair, 50 * MS);
    lh_cancel(send);
    assert_true(lh_test(send, NULL)); /* at once */
    assert_int_equal(error_of(send), -LH_ECANCELED);
    connection_pair_run(&pair, 100 * MS); /* the receiver hears of a message that it has no receive for */
    struct lh_request *recv = recv_all();
    assert_int_equal(error_of(recv), -LH_ECANCELED);
    next_one_arrives();
}

static void cancel_receive_before_its_send(void **state)
{
    (void)state;
    struct lh_request *recv = recv_all();
    connection_pair_run(&pair, 50 * MS);
    lh_cancel(recv);
    assert_true(lh_test(recv, NULL));
    assert_int_equal(error_of(recv), -LH_ECANCELED);
    connection_pair_run(&pair, 100 * MS);
    struct lh_request *send = send_all();
    assert_int_equal(error_of(send), -LH_ECANCELED);
    next_one_arrives();
}

/* At every moment of a transfer, by either side. */
static void cancel_in_progress(void **state)
{
    (void)state;
    for (lh_time at = 0; at < 40 * MS; at += 700 * LH_NS_PER_US)
        for (int sender = 0; sender < 2; sender++) {
            memset(buffer, 0xEE, BYTES);
            struct lh_request *recv = recv_all();
            struct lh_request *send = send_all();
            connection_pair_run(&pair, at + 1);
            lh_cancel(sender ? send : recv);
            int sent = sender ? error_of(send) : 0;
            int received = error_of(recv);
            sent = sender ? sent : error_of(send);
            assert_true(sent == 0 || sent == -LH_ECANCELED);
            assert_true(received == 0 || received == -LH_ECANCELED);
            assert_true(sent != 0 || received == 0); /* what was acknowledged was delivered */
            if (received == 0)
                assert_memory_equal(buffer, data, BYTES);
        }
    next_one_arrives();
}

static void canceled_buffers_are_the_users_again(void **state)
{
    (void)state;
    struct lh_request *recv = recv_all();
    struct lh_request *send = send_all();
    connection_pair_run(&pair, 7 * MS); /* chunks are on the way */
    lh_cancel(recv);
    memset(buffer, 0xEE, BYTES);
    error_of(recv);
    assert_int_equal(error_of(send), -LH_ECANCELED);
    connection_pair_run(&pair, 100 * MS);
    assert_memory_equal(buffer, untouched, BYTES);
    next_one_arrives();
}

/* Many ends in a row, with nothing between them: each takes its place, and none is kept for ever. */
static void more_cancels_than_there_is_room_for(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2 * LH_REQUESTS_MAX; i++) {
        struct lh_request *recv = NULL;
        int error = lh_recv(pair.ends[1], buffer, BYTES, NULL, &recv);
        while (error == -LH_EAGAIN) { /* the sender has not heard of the oldest yet */
            connection_pair_run(&pair, 20 * MS);
            error = lh_recv(pair.ends[1], buffer, BYTES, NULL, &recv);
        }
        assert_int_equal(error, 0);
        lh_request_free(recv); /* cancels */
    }
    connection_pair_run(&pair, 1000 * MS);
    for (uint32_t i = 0; i < 2 * LH_REQUESTS_MAX; i++) {
        struct lh_request *send = NULL;
        int error = lh_send(pair.ends[0], data, i % 3 ? BYTES : 0, NULL, &send);
        while (error == -LH_EAGAIN) {
            connection_pair_run(&pair, 20 * MS);
            error = lh_send(pair.ends[0], data, i % 3 ? BYTES : 0, NULL, &send);
        }
        assert_int_equal(error, 0);
        assert_int_equal(error_of(send), -LH_ECANCELED);
    }
    next_one_arrives();
}

/* ---- limits ------------------------------------------------------------------------------------------ */

static void too_many_requests(void **state)
{
    (void)state;
    static struct lh_request *requests[LH_REQUESTS_MAX];
    struct lh_request *one_more = NULL;
    for (uint32_t i = 0; i < LH_REQUESTS_MAX; i++)
        requests[i] = connection_pair_recv(&pair, 1, buffer, 1);
    assert_int_equal(lh_recv(pair.ends[1], buffer, 1, NULL, &one_more), -LH_EAGAIN);
    assert_int_equal(lh_send(pair.ends[1], buffer, 1, NULL, &one_more), -LH_EAGAIN);
    assert_null(one_more);
    for (uint32_t i = 0; i < LH_REQUESTS_MAX; i++)
        lh_request_free(requests[i]);
    lh_request_free(NULL);
}

static void waiting_needs_workers(void **state)
{
    (void)state;
    struct lh_result result;
    struct lh_request *recv = recv_all();
    struct lh_request *send = send_all();
    assert_int_equal(lh_wait(recv, 0, &result), -LH_ESTATE);
    assert_int_equal(lh_test(recv, &result), 0);
    assert_true(connection_pair_wait(&pair, recv, 1000 * MS, NULL));
    assert_int_equal(lh_wait(recv, 0, &result), 0); /* it is done: nothing to wait for */
    assert_int_equal(result.bytes, BYTES);
    lh_cancel(recv); /* too late, and no harm */
    assert_int_equal(error_of(recv), 0);
    assert_int_equal(error_of(send), 0);
}

/* ---- closed ------------------------------------------------------------------------------------------ */

static void close_end(int end)
{
    lh_close(pair.ends[end]);
    pair.ends[end] = NULL;
}

static void close_ends_what_is_pending(void **state)
{
    (void)state;
    struct lh_result result;
    struct lh_request *recv = recv_all();
    struct lh_request *send = connection_pair_send(&pair, 1, data, BYTES);
    struct lh_request *waits = connection_pair_recv(&pair, 0, buffer, BYTES);
    connection_pair_run(&pair, 13 * MS); /* the peer is known, and nothing has arrived */
    close_end(1);
    assert_int_equal(lh_test(recv, &result), 1); /* requests outlive their connection */
    assert_int_equal(result.error, -LH_ECLOSED);
    assert_int_equal(lh_test(send, &result), 1);
    assert_int_equal(result.error, -LH_ECLOSED);
    lh_cancel(send);
    lh_request_free(recv);
    lh_request_free(send);
    assert_int_equal(error_of(waits), -LH_ECLOSED);
    assert_int_equal(lh_connection_error(pair.ends[0]), -LH_ECLOSED);
    assert_int_equal(lh_send(pair.ends[0], data, 1, NULL, &send), -LH_ECLOSED);
    assert_int_equal(lh_recv(pair.ends[0], buffer, 1, NULL, &recv), -LH_ECLOSED);
}

static bool lose_all_control(void *context, struct sim_datagram *datagram)
{
    (void)context;
    return !datagram->control || datagram->from != 1;
}

/* The receiver has everything and closes at once, and its DONE was lost. The sender's data counts. */
static void last_words_count(void **state)
{
    (void)state;
    struct lh_link_spec clean;
    assert_int_equal(lh_link_parse("rtt=10ms,rate=10Gbit", &clean), 0);
    sim_world_set_link(pair.world, &clean);
    struct lh_request *recv = recv_all();
    struct lh_request *send = send_all();
    while (!lh_test(recv, NULL)) {
        struct lh_stats stats;
        lh_connection_stats(pair.ends[1], &stats);
        if (stats.rx_bytes > BYTES - SLOT)
            sim_world_tap(pair.world, lose_all_control, NULL);
        connection_pair_turn(&pair, LH_TIME_NEVER);
    }
    connection_pair_run(&pair, 4 * MS); /* DONE and its repetitions are lost */
    assert_false(lh_test(send, NULL));
    sim_world_tap(pair.world, NULL, NULL);
    close_end(1);
    assert_int_equal(error_of(recv), 0);
    assert_int_equal(error_of(send), 0);
    connection_pair_run(&pair, 50 * MS);
    assert_int_equal(lh_connection_error(pair.ends[0]), -LH_ECLOSED);
}

/* ---- cut off ----------------------------------------------------------------------------------------- */

#define PEER_TIMEOUT (10 * LH_NS_PER_S) /* the default */

static void blackout(void **state)
{
    (void)state;
    for (int end = 0; end < 2; end++) {
        struct lh_request *recv = recv_all();
        struct lh_request *send = send_all();
        connection_pair_run(&pair, 8 * MS);
        sim_world_partition(pair.world, true);
        lh_time cut = connection_pair_now(&pair);
        struct lh_result sent = connection_pair_finish(&pair, send);
        struct lh_result received = connection_pair_finish(&pair, recv);
        assert_int_equal(sent.error, -LH_EPEER);
        assert_int_equal(received.error, -LH_EPEER);
        lh_time took = sent.ended_ns - cut;
        assert_true(took > PEER_TIMEOUT - 200 * MS && took < PEER_TIMEOUT + PEER_TIMEOUT / 8);
        took = received.ended_ns - cut;
        assert_true(took > PEER_TIMEOUT - 200 * MS && took < PEER_TIMEOUT + PEER_TIMEOUT / 8);
        assert_int_equal(lh_connection_error(pair.ends[0]), -LH_EPEER);
        assert_int_equal(lh_connection_error(pair.ends[1]), -LH_EPEER);
        assert_non_null(strstr(lh_last_error(), "no packet from the peer"));
        sim_world_partition(pair.world, false);
        teardown(NULL);
        setup(NULL);
    }
}

static void short_blackout(void **state)
{
    (void)state;
    struct lh_request *recv = recv_all();
    struct lh_request *send = send_all();
    connection_pair_run(&pair, 8 * MS);
    sim_world_partition(pair.world, true);
    connection_pair_run(&pair, PEER_TIMEOUT / 2);
    sim_world_partition(pair.world, false);
    assert_int_equal(error_of(send), 0);
    assert_int_equal(error_of(recv), 0);
    assert_memory_equal(buffer, data, BYTES);
}

/* A slow application is no silent peer. */
static void waiting_for_ever_is_no_silence(void **state)
{
    (void)state;
    struct lh_request *recv = recv_all();
    connection_pair_run(&pair, 20 * PEER_TIMEOUT);
    assert_false(lh_test(recv, NULL));
    struct lh_request *send = send_all();
    assert_int_equal(error_of(send), 0);
    assert_int_equal(error_of(recv), 0);
}

/* One side gives up, and all its goodbyes are lost. Its program still holds it, so it hears the other side
 * ask: the answer is another goodbye, not a sign of life. */
static void goodbyes_are_lost(void **state)
{
    (void)state;
    struct connection_pair uneven;
    struct lh_attr hasty;
    struct lh_attr patient;
    connection_pair_attr(&hasty);
    connection_pair_attr(&patient);
    hasty.peer_timeout_ns = 500 * MS;
    connection_pair_open(&uneven, "uneven", 3, "rtt=10ms", &hasty, &patient);
    connection_pair_run(&uneven, 100 * MS);
    sim_world_partition(uneven.world, true);
    struct lh_request *send = connection_pair_send(&uneven, 0, data, BYTES);
    struct lh_request *recv = connection_pair_recv(&uneven, 1, buffer, BYTES);
    connection_pair_run(&uneven, 1000 * MS);
    assert_int_equal(lh_connection_error(uneven.ends[0]), -LH_EPEER);
    assert_int_equal(lh_connection_error(uneven.ends[1]), 0);
    sim_world_partition(uneven.world, false);
    struct lh_result result;
    assert_true(connection_pair_wait(&uneven, recv, 2 * LH_NS_PER_S, &result));
    assert_int_equal(result.error, -LH_ECLOSED);
    lh_request_free(send);
    lh_request_free(recv);
    connection_pair_close(&uneven);
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PAIR(too_long),
        WITH_PAIR(cancel_send_before_its_receive),
        WITH_PAIR(cancel_receive_before_its_send),
        WITH_PAIR(cancel_in_progress),
        WITH_PAIR(canceled_buffers_are_the_users_again),
        WITH_PAIR(more_cancels_than_there_is_room_for),
        WITH_PAIR(too_many_requests),
        WITH_PAIR(waiting_needs_workers),
        WITH_PAIR(close_ends_what_is_pending),
        WITH_PAIR(last_words_count),
        WITH_PAIR(blackout),
        WITH_PAIR(short_blackout),
        WITH_PAIR(goodbyes_are_lost),
        WITH_PAIR(waiting_for_ever_is_no_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
