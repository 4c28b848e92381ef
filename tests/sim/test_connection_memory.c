/*
 * test_connection_memory.c - memory of a connection: taken for its messages, given back when it is idle,
 * refused beyond the limit of the engine.
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

#include "message/connection_state.h"
#include "message/rx_state.h"
#include "sdr/qp.h"
#include "sdr/sdr_driver.h"
#include "support/connection_pair.h"
#include "support/sanitized.h"

#define LINK    "rtt=2ms,rate=1Gbit,loss=1e-2"
#define MS      LH_NS_PER_MS
#define IDLE_NS (3 * STORE_IDLE_NS)
#define LONG    200000u /* bytes: many slots */
#define HELD    100u    /* requests: several blocks */

static struct store *store_of(struct connection_pair *pair, int end)
{
    return sdr_context_store(pair->ends[end]->context);
}

static uint64_t opened_bytes[2]; /* of connections whose ends have heard of each other */

/* Those, the handles of receives of the SDR layer, which stay valid, and what `auto` has learned. */
static uint64_t idle_bytes(struct connection_pair *pair, int end)
{
    const struct sdr_qp *qp = pair->ends[end]->qp;
    const struct auto_scheme *automatic = pair->ends[end]->rx.automatic;
    size_t handles = qp->shape.slots * (sizeof *qp->recvs + sizeof *qp->free_slots);
    return opened_bytes[end] + (qp->recvs ? handles : 0) + (automatic ? sizeof *automatic : 0);
}

/* Beside those. */
static uint64_t bytes_of(struct connection_pair *pair, int end)
{
    return store_bytes(store_of(pair, end)) - idle_bytes(pair, end);
}

static void expect_idle(struct connection_pair *pair)
{
    connection_pair_run(pair, IDLE_NS);
    assert_int_equal(bytes_of(pair, 0), 0);
    assert_int_equal(bytes_of(pair, 1), 0);
}

static void open_pair(struct connection_pair *pair, const char *reliability, const char *link)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = reliability;
    connection_pair_open(pair, "memory", 7, link, &attr, NULL);
    connection_pair_run(pair, 20 * MS);
    for (int end = 0; end < 2; end++)
        opened_bytes[end] = store_bytes(store_of(pair, end));
}

static void use_and_idle(const char *reliability)
{
    struct connection_pair pair;
    open_pair(&pair, reliability, LINK);
    expect_idle(&pair);
    for (uint32_t turn = 0; turn < 3; turn++) {
        connection_pair_transfer(&pair, 0, 1, 1);
        uint64_t small = bytes_of(&pair, 1);
        connection_pair_transfer(&pair, 0, LONG, LONG + 5000);
        connection_pair_transfer(&pair, 1, LONG, LONG);
        connection_pair_transfer(&pair, 1, 0, 0);
        assert_true(small > 0 && small < bytes_of(&pair, 1));
        expect_idle(&pair);
    }
    connection_pair_close(&pair);
}

static void test_idle_takes_nothing(void **state)
{
    (void)state;
    use_and_idle("sr-nack");
}

static void test_idle_keeps_no_parity(void **state)
{
    (void)state;
    use_and_idle("ec:mds,k=4,m=2");
}

static void test_idle_keeps_no_plan(void **state)
{
    (void)state;
    use_and_idle("auto");
}

/* However many messages there were, and numbers that have passed the end of the rings. */
static void test_many_messages(void **state)
{
    (void)state;
    struct connection_pair pair;
    static struct lh_request *sends[HELD], *recvs[HELD];
    static uint8_t out[HELD], in[HELD];
    open_pair(&pair, NULL, "rtt=100us");
    for (uint32_t turn = 0; turn < (SANITIZED ? 10 : 60); turn++) {
        for (uint32_t i = 0; i < HELD; i++) {
            out[i] = (uint8_t)(turn + i);
            recvs[i] = connection_pair_recv(&pair, 1, &in[i], 1);
            sends[i] = connection_pair_send(&pair, 0, &out[i], 1);
        }
        for (uint32_t i = 0; i < HELD; i++) {
            assert_int_equal(connection_pair_finish(&pair, sends[i]).error, 0);
            assert_int_equal(connection_pair_finish(&pair, recvs[i]).error, 0);
        }
        assert_memory_equal(in, out, HELD);
    }
    expect_idle(&pair);
    connection_pair_close(&pair);
}

/* Requests that are done stay until the user frees them, whatever is given back, and after the close. */
static void test_requests_stay(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_result result;
    static struct lh_request *sends[HELD], *recvs[HELD];
    static uint8_t out[HELD], in[HELD];
    open_pair(&pair, NULL, LINK);
    for (uint32_t i = 0; i < HELD; i++) {
        recvs[i] = connection_pair_recv(&pair, 1, &in[i], 1);
        sends[i] = connection_pair_send(&pair, 0, &out[i], 1);
    }
    connection_pair_run(&pair, IDLE_NS);
    for (uint32_t i = 0; i < HELD; i += 2)
        lh_request_free(sends[i]);
    uint64_t held = bytes_of(&pair, 0);
    connection_pair_transfer(&pair, 0, 10, 10);
    connection_pair_run(&pair, IDLE_NS);
    assert_int_equal(bytes_of(&pair, 0), held);
    assert_int_equal(held % sizeof(struct request_block), 0);
    for (uint32_t i = 1; i < HELD; i += 2) {
        assert_int_equal(lh_test(sends[i], &result), 1);
        assert_int_equal(result.error, 0);
        if (i != HELD - 1)
            lh_request_free(sends[i]);
    }
    connection_pair_run(&pair, IDLE_NS); /* freed at rest: no message is needed */
    assert_int_equal(bytes_of(&pair, 0), sizeof(struct request_block));
    connection_pair_close(&pair);
    assert_int_equal(lh_test(sends[HELD - 1], &result), 1);
    lh_request_free(sends[HELD - 1]);
    for (uint32_t i = 0; i < HELD; i++)
        lh_request_free(recvs[i]);
}

/* A small message that is held for its receive, and the sender's that is not delivered. */
static void test_held_messages_are_counted(void **state)
{
    (void)state;
    struct connection_pair pair;
    uint8_t out = 7, in = 0;
    open_pair(&pair, NULL, LINK);
    struct lh_request *send = connection_pair_send(&pair, 0, &out, 1);
    connection_pair_run(&pair, IDLE_NS);
    assert_true(bytes_of(&pair, 0) >= sizeof(struct outgoing_message));
    assert_true(bytes_of(&pair, 1) >= sizeof(struct early_memory));
    struct lh_request *recv = connection_pair_recv(&pair, 1, &in, 1);
    assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    assert_true(bytes_of(&pair, 1) < sizeof(struct early_memory));
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(in, out);
    expect_idle(&pair);
    connection_pair_close(&pair);
}

/* Receives that wait for hours. */
static void test_pending_stays(void **state)
{
    (void)state;
    struct connection_pair pair;
    uint8_t *data = connection_pair_bytes(LONG, 3);
    uint8_t *buffer = malloc(LONG);
    assert_non_null(buffer);
    open_pair(&pair, NULL, LINK);
    connection_pair_transfer(&pair, 0, LONG, LONG);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, LONG);
    connection_pair_run(&pair, 10 * IDLE_NS);
    struct lh_request *send = connection_pair_send(&pair, 0, data, LONG);
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
    assert_memory_equal(buffer, data, LONG);
    expect_idle(&pair);
    connection_pair_close(&pair);
    free(buffer);
    free(data);
}

/* What a peer canceled ahead is known when the message is asked for, however much later. */
static void test_notices_stay(void **state)
{
    (void)state;
    struct connection_pair pair;
    uint8_t byte = 1;
    open_pair(&pair, NULL, "rtt=2ms");
    for (int from = 0; from < 2; from++) {
        struct lh_request *ahead =
            from == 0 ? connection_pair_send(&pair, 0, &byte, 1) : connection_pair_recv(&pair, 1, &byte, 1);
        connection_pair_run(&pair, 20 * MS);
        assert_int_equal(lh_cancel(ahead), 0);
        connection_pair_run(&pair, IDLE_NS);
        assert_int_equal(connection_pair_finish(&pair, ahead).error, -LH_ECANCELED);
        connection_pair_run(&pair, IDLE_NS);
        struct lh_request *late =
            from == 0 ? connection_pair_recv(&pair, 1, &byte, 1) : connection_pair_send(&pair, 0, &byte, 1);
        assert_int_equal(connection_pair_finish(&pair, late).error, -LH_ECANCELED);
        connection_pair_transfer(&pair, 0, LONG, LONG);
        expect_idle(&pair);
    }
    connection_pair_close(&pair);
}

static void test_calls_are_refused(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_request *request;
    uint8_t byte;
    open_pair(&pair, NULL, LINK);
    expect_idle(&pair);
    store_of(&pair, 0)->limit_bytes = idle_bytes(&pair, 0) + 20000;
    /* The first takes what there is; a hundred do not fit. */
    uint32_t taken = 0;
    int error = 0;
    static struct lh_request *requests[1000];
    while (taken < 1000 && (error = lh_recv(pair.ends[0], &byte, 1, NULL, &request)) == 0)
        requests[taken++] = request;
    assert_int_equal(error, -LH_ENOMEM);
    assert_non_null(strstr(lh_last_error(), "limit of the engine's memory"));
    assert_int_equal(lh_send(pair.ends[0], &byte, 1, NULL, &request), -LH_ENOMEM);
    for (uint32_t i = 0; i < taken; i++)
        lh_request_free(requests[i]);
    connection_pair_run(&pair, IDLE_NS);
    store_of(&pair, 0)->limit_bytes = UINT64_MAX;
    for (uint32_t i = 0; i < taken; i++) { /* the peer's, that were refused */
        request = connection_pair_send(&pair, 1, &byte, 1);
        assert_int_equal(connection_pair_finish(&pair, request).error, -LH_ECANCELED);
    }
    connection_pair_transfer(&pair, 0, LONG, LONG);
    connection_pair_transfer(&pair, 1, LONG, LONG);
    expect_idle(&pair);
    connection_pair_close(&pair);
}

/* Whatever is missing on the way, at either end: a message that was accepted waits, and arrives once there is
 * memory again. */
static void test_messages_wait_for_memory(void **state)
{
    (void)state;
    uint8_t *data = connection_pair_bytes(LONG, 4);
    uint8_t *buffer = malloc(LONG);
    assert_non_null(buffer);
    uint32_t waited = 0;
    for (uint64_t room = 0; room < 24000; room += SANITIZED ? 4800 : 800) {
        for (int end = 0; end < 2; end++) {
            struct connection_pair pair;
            struct lh_result result;
            open_pair(&pair, room % 1600 == 0 ? "sr-nack" : "sr-rto", LINK);
            connection_pair_run(&pair, 100 * MS);
            memset(buffer, 0, LONG);
            struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, LONG);
            struct lh_request *send = connection_pair_send(&pair, 0, data, LONG);
            store_of(&pair, end)->limit_bytes = store_bytes(store_of(&pair, end)) + room;
            bool done = connection_pair_wait(&pair, send, LH_NS_PER_S, &result);
            store_of(&pair, end)->limit_bytes = UINT64_MAX;
            waited += !done;
            assert_int_equal(connection_pair_finish(&pair, send).error, 0);
            assert_int_equal(connection_pair_finish(&pair, recv).error, 0);
            assert_memory_equal(buffer, data, LONG);
            expect_idle(&pair);
            connection_pair_close(&pair);
        }
    }
    assert_true(waited > 0);
    free(buffer);
    free(data);
}

/* Where much is lost, hybrid would have as much parity as data. Nobody asked for that: without memory for it
 * there is less. */
static void test_measured_parity_is_no_reason_to_fail(void **state)
{
    (void)state;
    enum { SEGMENT = 256 << 10, ROOM = 160 << 10 };
    struct connection_pair pair;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = "hybrid";
    attr.slot_bytes = SEGMENT;
    attr.slots = 8;
    connection_pair_open(&pair, "memory", 7, "rtt=2ms,rate=1Gbit,loss=0.2", &attr, NULL);
    for (int i = 0; i < 10; i++)
        connection_pair_transfer(&pair, 0, SEGMENT, SEGMENT);
    struct store *store = store_of(&pair, 1);
    uint64_t used = store_bytes(store);
    connection_pair_run(&pair, IDLE_NS);
    assert_true(used - store_bytes(store) > ROOM + (64 << 10)); /* that is what it took */
    store->limit_bytes = store_bytes(store) + ROOM;
    for (int i = 0; i < 10; i++)
        connection_pair_transfer(&pair, 0, SEGMENT, SEGMENT);
    assert_true(store_bytes(store) <= store->limit_bytes);
    connection_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_takes_nothing),
        cmocka_unit_test(test_idle_keeps_no_parity),
        cmocka_unit_test(test_idle_keeps_no_plan),
        cmocka_unit_test(test_many_messages),
        cmocka_unit_test(test_requests_stay),
        cmocka_unit_test(test_held_messages_are_counted),
        cmocka_unit_test(test_pending_stays),
        cmocka_unit_test(test_notices_stay),
        cmocka_unit_test(test_calls_are_refused),
        cmocka_unit_test(test_messages_wait_for_memory),
        cmocka_unit_test(test_measured_parity_is_no_reason_to_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
