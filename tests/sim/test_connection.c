/*
 * test_connection.c - reliable messages over a simulated network in virtual time.
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

#include "base/prng.h"
#include "support/connection_pair.h"

#define MTU   1024u
#define SLOT  16384u
#define SLOTS 8u
#define LONG  (600 * LH_NS_PER_S) /* virtual: only a hang reaches it */

static void fill(uint8_t *data, size_t bytes, uint64_t seed)
{
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)lh_prng_next(&prng);
}

static uint8_t *make(size_t bytes, uint64_t seed)
{
    uint8_t *data = malloc(bytes + 1);
    assert_non_null(data);
    fill(data, bytes, seed);
    return data;
}

static struct connection_pair open_pair(const char *link)
{
    struct connection_pair pair;
    struct lh_attr attr;
    connection_pair_attr(&attr);
    connection_pair_open(&pair, "connection", 7, link, &attr, NULL);
    return pair;
}

static struct lh_request *send_one(struct connection_pair *pair, int end, const uint8_t *data, size_t bytes)
{
    struct lh_request *request = NULL;
    assert_int_equal(lh_send(pair->ends[end], data, bytes, NULL, &request), 0);
    return request;
}

static struct lh_request *recv_one(struct connection_pair *pair, int end, uint8_t *data, size_t room)
{
    struct lh_request *request = NULL;
    assert_int_equal(lh_recv(pair->ends[end], data, room, NULL, &request), 0);
    return request;
}

static struct lh_result finish(struct connection_pair *pair, struct lh_request *request)
{
    struct lh_result result = {0};
    assert_true(connection_pair_wait(pair, request, LONG, &result));
    lh_request_free(request);
    return result;
}

/* One message into a larger buffer: exact, and nothing behind it is touched. */
static void transfer(struct connection_pair *pair, int from, size_t bytes, size_t room)
{
    uint8_t *data = make(bytes, bytes + 1);
    uint8_t *buffer = make(room, 99);
    uint8_t *before = make(room, 99);
    struct lh_request *recv = recv_one(pair, 1 - from, buffer, room);
    struct lh_request *send = send_one(pair, from, data, bytes);
    struct lh_result sent = finish(pair, send);
    struct lh_result received = finish(pair, recv);
    assert_int_equal(sent.error, 0);
    assert_int_equal(received.error, 0);
    assert_int_equal(sent.bytes, bytes);
    assert_int_equal(received.bytes, bytes);
    assert_memory_equal(buffer, data, bytes);
    assert_memory_equal(buffer + bytes, before + bytes, room - bytes);
    assert_true(sent.ended_ns > sent.started_ns);
    free(data);
    free(buffer);
    free(before);
}

static const size_t sizes[] = {0,    1,        MTU - 1,  MTU,          MTU + 1,          SLOT - 1,
                               SLOT, SLOT + 1, 3 * SLOT, 3 * SLOT + 5, SLOTS *SLOT + 17, 40 * SLOT};

static void every_size(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=10ms,rate=10Gbit");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        transfer(&pair, (int)(i % 2), sizes[i], sizes[i]);
    connection_pair_close(&pair);
}

static void receives_larger_than_messages(void **state)
{
    (void)state;
    struct connection_pair pair = open_pair("rtt=10ms,rate=10Gbit");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        transfer(&pair, 0, sizes[i], sizes[i] + 1);
        transfer(&pair, 1, sizes[i], sizes[i] + 20 * SLOT + 3);
    }
    connection_pair_close(&pair);
}

static void lossy_link(void **state)
{
    (void)state;
    struct connection_pair pair =
        open_pair("rtt=10ms,rate=10Gbit,loss=0.05,reorder=0.02,duplicate=0.02,corrupt=0.01,jitter=200us");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        transfer(&pair, (int)(i % 2), sizes[i], sizes[i] + (i % 3) * SLOT);
    connection_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size),
        cmocka_unit_test(receives_larger_than_messages),
        cmocka_unit_test(lossy_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
