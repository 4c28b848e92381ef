/*
 * test_connection_calls.c - what the calls of a connection refuse, and what they say of requests that are
 * pending, done, canceled or freed; registered memory.
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

#include <longhaul/engine.h>
#include <longhaul/queue.h>

#include "support/connection_pair.h"
#include "support/sim_engines.h"

#define KIB  ((size_t)1024)
#define LONG (64 * KIB)
#define MS   LH_NS_PER_MS

static void open_pair(struct connection_pair *pair, bool match_tags)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.match_tags = match_tags;
    connection_pair_open(pair, "calls", 1, "rtt=2ms", &attr, NULL);
    connection_pair_run(pair, 20 * MS);
}

static void refused(int error, int wanted, const char *words)
{
    assert_int_equal(error, wanted);
    if (!strstr(lh_last_error(), words))
        fail_msg("\"%s\" is not in: %s", words, lh_last_error());
}

/* ---- messages that are refused ----------------------------------------------------------------------- */

static void parts_are_checked(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_part parts[LH_PARTS_MAX + 1];
    struct lh_request *request;
    uint8_t byte = 0;
    open_pair(&pair, false);
    for (uint32_t i = 0; i <= LH_PARTS_MAX; i++)
        parts[i] = (struct lh_part){&byte, 1, NULL};
    struct lh_message message = {.parts = parts, .count = LH_PARTS_MAX + 1};
    refused(lh_sendmsg(pair.ends[0], &message, &request), -LH_EINVAL,
            "message of 17 parts: out of range (at most 16)");
    refused(lh_recvmsg(pair.ends[1], &message, &request), -LH_EINVAL, "message of 17 parts");
    message = (struct lh_message){.count = 1};
    refused(lh_sendmsg(pair.ends[0], &message, &request), -LH_EINVAL, "lh_message.parts is NULL");
    message = (struct lh_message){.parts = parts, .count = 2};
    parts[1].address = NULL;
    refused(lh_sendmsg(pair.ends[0], &message, &request), -LH_EINVAL, "part 1: 1 bytes without an address");
    parts[1] = (struct lh_part){&byte, SIZE_MAX, NULL};
    refused(lh_sendmsg(pair.ends[0], &message, &request), -LH_EINVAL,
            "the message is longer than 2^64 - 1");
    refused(lh_send(pair.ends[0], NULL, 1, NULL, &request), -LH_EINVAL, "without an address");
    refused(lh_recv(pair.ends[1], NULL, 1, NULL, &request), -LH_EINVAL, "without an address");
    connection_pair_transfer(&pair, 0, 0, 0); /* none of that was sent */
    connection_pair_transfer(&pair, 0, 1, 1);
    connection_pair_close(&pair);
}

static void tags_are_checked(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_request *requests[2];
    struct lh_result result;
    uint8_t byte = 7, got = 0;
    const struct lh_part part = {&byte, 1, NULL}, room = {&got, 1, NULL};
    struct lh_message message = {.parts = &room, .count = 1, .tag = 5};
    open_pair(&pair, false);
    refused(lh_recvmsg(pair.ends[1], &message, &requests[1]), -LH_EINVAL,
            "receive with tag 0x5, ignore 0x0");
    message.tag = 0;
    message.ignore = 1;
    refused(lh_recvmsg(pair.ends[1], &message, &requests[1]), -LH_EINVAL,
            "receive with tag 0x0, ignore 0x1");
    refused(lh_sendmsg(pair.ends[0], &message, &requests[0]), -LH_EINVAL, "send with ignore 0x1");
    message.ignore = UINT64_MAX;
    assert_int_equal(lh_recvmsg(pair.ends[1], &message, &requests[1]), 0);
    message = (struct lh_message){.parts = &part, .count = 1, .tag = 9};
    assert_int_equal(lh_sendmsg(pair.ends[0], &message, &requests[0]), 0);
    result = connection_pair_finish(&pair, requests[1]);
    assert_int_equal(result.error, 0);
    assert_true(result.tag == 9); /* reported, though not matched */
    assert_int_equal(got, 7);
    assert_int_equal(connection_pair_finish(&pair, requests[0]).error, 0);
    connection_pair_close(&pair);
}

static void queues_are_checked(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_completion_queue *foreign;
    struct lh_request *request;
    uint8_t byte = 0;
    open_pair(&pair, false);
    struct lh_engine *other = sim_engine_create("sim:calls/0", NULL);
    refused(lh_post_send(pair.ends[0], &byte, 1, NULL, NULL, 0, &request), -LH_EINVAL,
            "no completion queue");
    refused(lh_post_recv(pair.ends[0], &byte, 1, NULL, NULL, 0, &request), -LH_EINVAL,
            "no completion queue");
    assert_int_equal(lh_completion_queue_create(other, 4, &foreign), 0);
    assert_int_equal(lh_post_send(pair.ends[0], &byte, 1, NULL, foreign, 0, &request), -LH_EINVAL);
    assert_int_equal(lh_completion_queue_destroy(foreign), 0);
    assert_int_equal(lh_engine_destroy(other), 0);
    connection_pair_close(&pair);
}

/* ---- requests ---------------------------------------------------------------------------------------- */

static void what_a_request_says(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_result result;
    struct lh_delivery delivery;
    struct lh_range range;
    uint8_t *data = connection_pair_bytes(LONG, 1), *buffer = calloc(1, LONG);
    open_pair(&pair, false);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, LONG);
    assert_int_equal(lh_test(recv, &result), 0);
    refused(lh_wait(recv, 0, &result), -LH_ESTATE, "this connection has no workers");
    refused(lh_delivery(recv, &delivery), -LH_ESTATE, "request is pending");
    refused((int)lh_missing(recv, 0, &range, 1), -LH_ESTATE, "request is pending");
    struct lh_request *send = connection_pair_send(&pair, 0, data, LONG - 1);
    assert_true(connection_pair_wait(&pair, send, 100 * MS, &result));
    assert_true(connection_pair_wait(&pair, recv, 100 * MS, NULL));
    assert_int_equal(lh_wait(recv, 0, &result), 0);
    assert_int_equal(result.error, 0);
    assert_int_equal(result.bytes, LONG - 1);
    assert_int_equal(result.missing_bytes, 0);
    refused(lh_delivery(send, &delivery), -LH_ESTATE, "request is a send");
    memset(&delivery, 0xff, sizeof delivery);
    assert_int_equal(lh_delivery(recv, &delivery), 0);
    assert_int_equal(delivery.arrived_bytes, LONG - 1);
    assert_true(delivery.missing_bytes == 0 && delivery.missing_ranges == 0);
    assert_int_equal(lh_missing(recv, 0, &range, 1), 0);
    assert_memory_equal(buffer, data, LONG - 1);
    assert_int_equal(lh_cancel(recv), 0); /* it is done already */
    assert_int_equal(lh_test(recv, &result), 1);
    assert_int_equal(result.error, 0);
    lh_request_free(recv);
    lh_request_free(send);
    lh_request_free(NULL);
    connection_pair_close(&pair);
    free(data);
    free(buffer);
}

/* A receive that is canceled takes no message; one that is freed is canceled, too. */
static void receives_that_are_canceled(void **state)
{
    (void)state;
    static const size_t sizes[] = {10, LONG};
    for (size_t i = 0; i < 2; i++) {
        for (int match_tags = 0; match_tags < 2; match_tags++) {
            struct connection_pair pair;
            struct lh_result result;
            struct lh_delivery delivery;
            uint8_t *buffers = calloc(3, sizes[i]);
            open_pair(&pair, match_tags);
            struct lh_request *recv[3];
            for (int k = 0; k < 3; k++)
                recv[k] = connection_pair_recv(&pair, 1, buffers + (size_t)k * sizes[i], sizes[i]);
            assert_int_equal(lh_cancel(recv[0]), 0);
            lh_request_free(recv[1]);
            assert_true(connection_pair_wait(&pair, recv[0], 500 * MS, &result));
            assert_int_equal(result.error, -LH_ECANCELED);
            refused(lh_delivery(recv[0], &delivery), -LH_ESTATE, "receive has failed");
            lh_request_free(recv[0]);
            assert_int_equal(lh_test(recv[2], NULL), 0);
            lh_request_free(recv[2]);
            connection_pair_close(&pair);
            free(buffers);
        }
    }
}

/* ---- registered memory ------------------------------------------------------------------------------- */

static void registered_memory(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_memory *mine, *peers, *more;
    struct lh_request *request, *send;
    uint8_t *data = connection_pair_bytes(2 * LONG, 1), *buffer = calloc(1, LONG);
    open_pair(&pair, false);
    assert_int_equal(lh_register(pair.ends[0], data, LONG, &mine), 0);
    assert_int_equal(lh_register(pair.ends[0], data + LONG, LONG, &more), 0);
    assert_int_equal(lh_register(pair.ends[1], buffer, LONG, &peers), 0);
    assert_int_not_equal(lh_register(pair.ends[0], NULL, 1, &mine), 0);
    refused(lh_send(pair.ends[0], data, LONG, peers, &request), -LH_EINVAL,
            "memory is registered with another engine");
    refused(lh_send(pair.ends[0], data + 1, LONG, mine, &request), -LH_EINVAL, "are not within the 65536");
    refused(lh_send(pair.ends[0], data, LONG + 1, mine, &request), -LH_EINVAL, "are not within the 65536");
    refused(lh_send(pair.ends[0], data + LONG, 1, mine, &request), -LH_EINVAL, "are not within the 65536");
    refused(lh_send(pair.ends[0], data, 1, more, &request), -LH_EINVAL, "are not within the 65536");
    /* To the last byte, and any part of it. */
    for (size_t bytes = 1; bytes <= LONG; bytes *= 16) {
        assert_int_equal(lh_recv(pair.ends[1], buffer, bytes, peers, &request), 0);
        assert_int_equal(lh_send(pair.ends[0], data + LONG - bytes, bytes, mine, &send), 0);
        assert_int_equal(connection_pair_finish(&pair, request).error, 0);
        assert_int_equal(connection_pair_finish(&pair, send).error, 0);
        assert_memory_equal(buffer, data + LONG - bytes, bytes);
    }
    /* Parts of several registrations, and of none. */
    const struct lh_part parts[] = {{data + LONG, 20 * KIB, more},
                                    {NULL, 0, NULL},
                                    {data, 20 * KIB, mine},
                                    {data + 2 * LONG - 10 * KIB, 10 * KIB, NULL}};
    const struct lh_message message = {.parts = parts, .count = 4};
    assert_int_equal(lh_recv(pair.ends[1], buffer, LONG, peers, &request), 0);
    assert_int_equal(lh_sendmsg(pair.ends[0], &message, &send), 0);
    assert_int_equal(connection_pair_finish(&pair, request).bytes, 50 * KIB);
    assert_int_equal(connection_pair_finish(&pair, send).error, 0);
    assert_memory_equal(buffer, data + LONG, 20 * KIB);
    assert_memory_equal(buffer + 20 * KIB, data, 20 * KIB);
    assert_memory_equal(buffer + 40 * KIB, data + 2 * LONG - 10 * KIB, 10 * KIB);
    assert_int_equal(lh_deregister(mine), 0);
    assert_int_equal(lh_deregister(NULL), 0);
    connection_pair_close(&pair); /* frees the others */
    free(data);
    free(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_checked),          cmocka_unit_test(tags_are_checked),
        cmocka_unit_test(queues_are_checked),         cmocka_unit_test(what_a_request_says),
        cmocka_unit_test(receives_that_are_canceled), cmocka_unit_test(registered_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
