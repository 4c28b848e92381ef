/*
 * test_connection_udp.c - reliable messages over real sockets with real workers.
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
#include "support/sanitized.h"

#define PATIENCE (60 * LH_NS_PER_S) /* only a hang reaches it */

struct pair {
    struct lh_connection *ends[2];
};

static void must(int code, const char *what)
{
    if (code != 0)
        fail_msg("%s: %d, %s", what, code, lh_last_error());
}

static struct pair open_pair(const char *device, const struct lh_attr *attr)
{
    struct pair pair;
    struct lh_attr own = *attr;
    own.device = device;
    for (int i = 0; i < 2; i++)
        must(lh_open(&own, &pair.ends[i]), "lh_open");
    for (int i = 0; i < 2; i++) {
        uint8_t blob[LH_BLOB_MAX];
        size_t bytes = sizeof blob;
        must(lh_blob(pair.ends[1 - i], blob, &bytes), "lh_blob");
        must(lh_attach(pair.ends[i], blob, bytes), "lh_attach");
    }
    return pair;
}

static void close_pair(struct pair *pair)
{
    lh_close(pair->ends[0]);
    lh_close(pair->ends[1]);
}

static uint8_t *make(size_t bytes, uint64_t seed)
{
    uint8_t *data = malloc(bytes + 1);
    struct lh_prng prng;
    assert_non_null(data);
    lh_prng_seed(&prng, seed);
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word = lh_prng_next(&prng);
        memcpy(data + i, &word, 8);
    }
    return data;
}

static struct lh_result finish(struct lh_request *request)
{
    struct lh_result result = {0};
    must(lh_wait(request, PATIENCE, &result), "lh_wait");
    lh_request_free(request);
    return result;
}

static void transfer(struct pair *pair, int from, size_t bytes)
{
    uint8_t *data = make(bytes, bytes);
    uint8_t *buffer = make(bytes, 1);
    struct lh_request *send, *recv;
    must(lh_recv(pair->ends[1 - from], buffer, bytes, NULL, &recv), "lh_recv");
    must(lh_send(pair->ends[from], data, bytes, NULL, &send), "lh_send");
    struct lh_result sent = finish(send);
    struct lh_result received = finish(recv);
    assert_int_equal(sent.error, 0);
    assert_int_equal(received.error, 0);
    assert_int_equal(received.bytes, bytes);
    assert_memory_equal(buffer, data, bytes);
    free(data);
    free(buffer);
}

static void sizes(struct pair *pair)
{
    static const size_t all[] = {0,    1,        4095,           4096,
                                 4097, 1u << 20, (4u << 20) + 1, (SANITIZED ? 16u : 64u) << 20};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        transfer(pair, (int)(i % 2), all[i]);
}

static void ipv4(void **state)
{
    (void)state;
    struct lh_attr attr;
    lh_attr_init(&attr);
    struct pair pair = open_pair("udp:127.0.0.1", &attr);
    sizes(&pair);
    close_pair(&pair);
}

static void ipv6_channels_and_workers(void **state)
{
    (void)state;
    struct lh_attr attr;
    lh_attr_init(&attr);
    attr.channels = 4;
    attr.workers = 2;
    struct pair pair = open_pair("udp:[::1]", &attr);
    sizes(&pair);
    close_pair(&pair);
}

static void lossy_ocean(void **state)
{
    (void)state;
    struct lh_attr attr;
    lh_attr_init(&attr);
    must(lh_link_parse("rtt=25ms,rate=10Gbit,loss=1e-3", &attr.link), "lh_link_parse");
    struct pair pair = open_pair("udp:[::1]", &attr);
    sizes(&pair);
    close_pair(&pair);
}

#define ROOM      ((size_t)5 << 20) /* more than one segment */
#define UNTOUCHED 0x5A

/* Messages that are shorter than the buffers posted for them, several in flight: not a byte behind the end of
 * any changes, whatever was placed before it was validated. */
static void shorter_than_the_room(void **state)
{
    (void)state;
    static const size_t all[] = {0, 1, 100, 4095, 4097, 50000, 300001, 3 << 20, (4u << 20) + 77};
    const size_t count = sizeof all / sizeof all[0];
    struct lh_attr attr;
    lh_attr_init(&attr);
    struct pair pair = open_pair("udp:[::1]", &attr);
    uint8_t *data = make(ROOM + 16, 3);
    uint8_t *buffers[sizeof all / sizeof all[0]];
    struct lh_request *recv[sizeof all / sizeof all[0]], *send[sizeof all / sizeof all[0]];
    for (size_t i = 0; i < count; i++)
        buffers[i] = make(ROOM, 1);
    for (uint32_t turn = 0; turn < (SANITIZED ? 9 : 20); turn++) {
        for (size_t i = 0; i < count; i++) {
            memset(buffers[i], UNTOUCHED, ROOM);
            must(lh_recv(pair.ends[1], buffers[i], ROOM, NULL, &recv[i]), "lh_recv");
        }
        for (size_t i = 0; i < count; i++)
            must(lh_send(pair.ends[0], data + i, all[(i + turn) % count], NULL, &send[i]), "lh_send");
        for (size_t i = 0; i < count; i++) {
            size_t bytes = all[(i + turn) % count];
            struct lh_result received = finish(recv[i]);
            assert_int_equal(finish(send[i]).error, 0);
            assert_int_equal(received.error, 0);
            assert_int_equal(received.bytes, bytes);
            assert_memory_equal(buffers[i], data + i, bytes);
            for (size_t at = bytes; at < ROOM; at++)
                if (buffers[i][at] != UNTOUCHED)
                    fail_msg("message of %zu bytes: byte %zu behind it changed", bytes, at - bytes);
        }
    }
    for (size_t i = 0; i < count; i++)
        free(buffers[i]);
    free(data);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ipv4),
        cmocka_unit_test(ipv6_channels_and_workers),
        cmocka_unit_test(lossy_ocean),
        cmocka_unit_test(shorter_than_the_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
