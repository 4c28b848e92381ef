/*
 * test_requests.c - threads that wait for requests: over sockets, as only a connection with workers lets a
 * thread wait; and what a connection tells of itself.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "message/completion_queue.h"
#include "support/connection_pair.h"

/* Far beyond what any of these takes. */
#define PATIENCE_NS (60 * LH_NS_PER_S)
#define WAITERS     3u

static struct lh_attr attr_of(uint32_t workers)
{
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.workers = workers;
    attr.slots = 2;
    attr.slot_bytes = 16384;
    return attr;
}

struct client {
    char where[32];
    struct lh_connection *connection;
    int error;
};

static void *run(void *argument)
{
    struct client *client = argument;
    const struct lh_attr attr = attr_of(1);
    client->error = lh_connect(client->where, &attr, PATIENCE_NS, &client->connection);
    return NULL;
}

/* ends[0] has connected, ends[1] has accepted. */
static void open_ends(struct lh_connection *ends[2])
{
    struct lh_listener *listener;
    struct client client;
    pthread_t thread;
    const struct lh_attr attr = attr_of(1);
    assert_int_equal(lh_listen("127.0.0.1:0", &attr, &listener), 0);
    snprintf(client.where, sizeof client.where, "127.0.0.1:%u", lh_listener_port(listener));
    assert_int_equal(pthread_create(&thread, NULL, run, &client), 0);
    assert_int_equal(lh_accept(listener, PATIENCE_NS, &ends[1]), 0);
    pthread_join(thread, NULL);
    assert_int_equal(client.error, 0);
    ends[0] = client.connection;
    lh_listener_close(listener);
}

struct waiter {
    struct lh_request *request;
    lh_time timeout_ns;
    int error;
    struct lh_result result;
    pthread_t thread;
};

static void *waits(void *argument)
{
    struct waiter *waiter = argument;
    waiter->error = lh_wait(waiter->request, waiter->timeout_ns, &waiter->result);
    return NULL;
}

static void threads_wait(void **state)
{
    (void)state;
    struct lh_connection *ends[2];
    struct waiter waiters[WAITERS];
    struct lh_request *receive, *send;
    uint8_t in = 0, out = 9;
    open_ends(ends);
    assert_int_equal(lh_recv(ends[0], &in, 1, NULL, &receive), 0);
    assert_int_equal(lh_wait(receive, 0, NULL), -LH_ETIMEDOUT);
    assert_string_equal(lh_last_error(), "request is not done after 0 ms");
    assert_int_equal(lh_wait(receive, 20 * LH_NS_PER_MS, NULL), -LH_ETIMEDOUT);
    assert_string_equal(lh_last_error(), "request is not done after 20 ms");
    for (uint32_t i = 0; i < WAITERS; i++) {
        waiters[i] =
            (struct waiter){.request = receive, .timeout_ns = i == 0 ? LH_TIME_NEVER : PATIENCE_NS};
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, waits, &waiters[i]), 0);
    }
    assert_int_equal(lh_send(ends[1], &out, 1, NULL, &send), 0);
    assert_int_equal(lh_wait(send, PATIENCE_NS, NULL), 0);
    for (uint32_t i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].error, 0);
        assert_int_equal(waiters[i].result.error, 0);
        assert_int_equal(waiters[i].result.bytes, 1);
    }
    assert_int_equal(in, 9);
    assert_int_equal(lh_wait(receive, 0, NULL), 0); /* it is done */
    lh_request_free(send);
    lh_request_free(receive);
    lh_close(ends[0]);
    lh_close(ends[1]);
}

/* Whoever waits learns that the connection was closed. */
static void a_connection_that_ends(void **state)
{
    (void)state;
    struct lh_connection *ends[2];
    struct waiter waiter = {.timeout_ns = PATIENCE_NS};
    uint8_t in = 0;
    open_ends(ends);
    assert_int_equal(lh_recv(ends[0], &in, 1, NULL, &waiter.request), 0);
    assert_int_equal(pthread_create(&waiter.thread, NULL, waits, &waiter), 0);
    lh_close(ends[1]);
    pthread_join(waiter.thread, NULL);
    assert_int_equal(waiter.error, 0);
    assert_int_equal(waiter.result.error, -LH_ECLOSED);
    lh_request_free(waiter.request);
    lh_close(ends[0]);
}

static void without_workers_no_thread_can_wait(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_attr attr;
    uint8_t in = 0, out = 4;
    connection_pair_attr(&attr);
    connection_pair_open(&pair, "requests", 1, "delay=1ms", &attr, NULL);
    struct lh_request *receive = connection_pair_recv(&pair, 0, &in, 1);
    assert_int_equal(lh_wait(receive, 0, NULL), -LH_ESTATE);
    assert_string_equal(lh_last_error(),
                        "this connection has no workers: call lh_progress() and lh_test()");
    connection_pair_finish(&pair, connection_pair_send(&pair, 1, &out, 1));
    assert_int_equal(connection_pair_finish(&pair, receive).bytes, 1);
    connection_pair_close(&pair);
}

/* ---- reports ------------------------------------------------------------------------------------------ */

static void what_a_connection_tells(void **state)
{
    (void)state;
    static const struct {
        const char *link;
        uint64_t rate_bps, wanted_bps;
    } cases[] = {{"delay=2ms", 50000000, 50000000}, {"delay=2ms", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct connection_pair pair;
        struct lh_attr attr, told;
        struct lh_bottleneck_report report;
        connection_pair_attr(&attr);
        attr.rate_bps = cases[i].rate_bps;
        attr.congestion = "fixed";
        attr.window_bytes = 100000;
        connection_pair_open(&pair, "told", 1, cases[i].link, &attr, NULL);
        connection_pair_transfer(&pair, 0, 200000, 200000);
        memset(&report, 0xEE, sizeof report);
        assert_int_equal(lh_connection_bottleneck(pair.ends[0], &report), 0);
        assert_int_equal(report.window_bytes, 100000);
        assert_int_equal(report.slots, attr.slots);
        assert_int_equal(report.slot_bytes, attr.slot_bytes);
        assert_int_equal(report.rate_bps, cases[i].wanted_bps);
        assert_int_equal(report.rate_best_bps, cases[i].wanted_bps);
        assert_in_range(report.rtt_ns, 4 * LH_NS_PER_MS, 5 * LH_NS_PER_MS);
        assert_true(report.retransmitted <= 0 && report.retransmitted >= 0);
        assert_int_equal(report.receiver_drops, 0);
        assert_int_equal(report.policed_rate_bps, 0);
        assert_false(report.coded || report.emulated);
        assert_int_equal(lh_connection_attr(pair.ends[1], &told), 0);
        assert_int_equal(told.slots, attr.slots);
        assert_int_equal(told.rate_bps, cases[i].rate_bps);
        connection_pair_close(&pair);
    }
}

/* Sends are over when the peer has received them, or the connection has ended. */
static void sends_that_are_over(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_attr attr;
    uint8_t in[2] = {0}, out = 6;
    connection_pair_attr(&attr);
    connection_pair_open(&pair, "over", 1, "delay=1ms", &attr, NULL);
    connection_pair_run(&pair, 10 * LH_NS_PER_MS);
    assert_true(sends_are_over(pair.ends[0]));
    struct lh_request *receive = connection_pair_recv(&pair, 1, in, 1);
    struct lh_request *send = connection_pair_send(&pair, 0, &out, 1);
    assert_false(sends_are_over(pair.ends[0]));
    assert_true(sends_are_over(pair.ends[1]));
    connection_pair_finish(&pair, receive);
    connection_pair_finish(&pair, send);
    connection_pair_run(&pair, 10 * LH_NS_PER_MS);
    assert_true(sends_are_over(pair.ends[0]));
    connection_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_wait),
        cmocka_unit_test(a_connection_that_ends),
        cmocka_unit_test(without_workers_no_thread_can_wait),
        cmocka_unit_test(what_a_connection_tells),
        cmocka_unit_test(sends_that_are_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
