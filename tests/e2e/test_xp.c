/*
 * test_xp.c - XP over UDP sockets: all verbs between two objects, foreign and damaged packets, and what is
 * refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/xp.h>

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "xp/udp/xp_udp.h"

#define BYTES (1u << 20)
#define LONG  (20 * LH_NS_PER_S)

static struct lh_xp *ends[2];
static uint32_t qpn[2];
static uint8_t *source, *target;

static void create(struct lh_xp **xp, const char *address)
{
    struct lh_xp_attr attr;
    lh_xp_attr_init(&attr);
    attr.address = address;
    attr.qps = 8;
    assert_int_equal(lh_xp_create(&attr, xp), 0);
}

static void join(void)
{
    uint32_t seq[2];
    char address[2][LH_XP_ADDRESS_MAX];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lh_xp_open(ends[i], &qpn[i], &seq[i]), 0);
        lh_xp_address(ends[i], address[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(lh_xp_connect(ends[i], qpn[i], address[!i], qpn[!i], seq[!i]), 0);
}

static int start_on(const char *address)
{
    create(&ends[0], address);
    create(&ends[1], address);
    join();
    source = malloc(BYTES);
    target = calloc(1, BYTES);
    assert_true(source && target);
    for (uint32_t i = 0; i < BYTES; i++)
        source[i] = (uint8_t)(i * 7 + i / 4099);
    return 0;
}

static int start(void **state)
{
    (void)state;
    return start_on("::1");
}

static int start_v4(void **state)
{
    (void)state;
    return start_on("127.0.0.1");
}

static int stop(void **state)
{
    (void)state;
    lh_xp_destroy(ends[0]);
    lh_xp_destroy(ends[1]);
    free(source);
    free(target);
    return 0;
}

static void post(int end, enum lh_xp_verb verb, void *buffer, uint32_t bytes, uint32_t key, lh_time timeout)
{
    const struct lh_xp_request request = {.verb = verb,
                                          .buffer = buffer,
                                          .bytes = bytes,
                                          .key = key,
                                          .immediate = 77,
                                          .timeout_ns = timeout,
                                          .user = (uint64_t)verb};
    assert_int_equal(lh_xp_post(ends[end], qpn[end], &request), 0);
}

/* Sleeps while there is nothing to do. */
static void progress(void)
{
    int any = 0;
    for (int i = 0; i < 2; i++) {
        int did = lh_xp_progress(ends[i]);
        assert_true(did >= 0);
        any |= did;
    }
    if (any)
        return;
    lh_time a = lh_xp_wait_ns(ends[0]), b = lh_xp_wait_ns(ends[1]);
    lh_time wait = a < b ? a : b;
    struct pollfd fds[] = {{lh_xp_fd(ends[0]), POLLIN, 0}, {lh_xp_fd(ends[1]), POLLIN, 0}};
    poll(fds, 2, wait == LH_TIME_NEVER ? 1000 : (int)(wait / LH_NS_PER_MS));
}

static struct lh_xp_completion await(int end)
{
    struct lh_xp_completion completion;
    while (lh_xp_poll(ends[end], &completion, 1) == 0)
        progress();
    return completion;
}

/* Some may be lost when the socket's buffer is full, hence no longer messages than it holds. */
static void test_send(void **state)
{
    (void)state;
    post(1, LH_XP_RECV, target, BYTES, 0, LONG);
    post(0, LH_XP_SEND, source, BYTES, 0, LONG);
    struct lh_xp_completion sent = await(0), came = await(1);
    assert_int_equal(sent.status, LH_XP_COMPLETE);
    assert_int_equal(sent.bytes, BYTES);
    assert_int_equal(came.status, LH_XP_COMPLETE);
    assert_int_equal(came.length, BYTES);
    struct lh_xp_counters counters;
    lh_xp_counters(ends[1], &counters);
    assert_int_equal(counters.rx_packets, BYTES / 4096);
    assert_int_equal(counters.bad_packets, 0);
    assert_int_equal(came.bytes, BYTES);
    assert_memory_equal(target, source, BYTES);
}

/* What nobody sends ends by its deadline. */
static void test_deadline(void **state)
{
    (void)state;
    post(1, LH_XP_RECV, target, BYTES, 0, 5 * LH_NS_PER_MS);
    struct lh_xp_completion completion = await(1);
    assert_int_equal(completion.status, LH_XP_TIMED_OUT);
    assert_int_equal(completion.bytes, 0);
}

static void test_one_sided(void **state)
{
    (void)state;
    uint32_t writable, readable;
    assert_int_equal(lh_xp_expose(ends[1], target, BYTES, LH_XP_REMOTE_WRITE, &writable), 0);
    assert_int_equal(lh_xp_expose(ends[1], source, BYTES, LH_XP_REMOTE_READ, &readable), 0);
    post(1, LH_XP_RECV, NULL, 0, 0, LONG);
    post(0, LH_XP_WRITE, source, BYTES / 2, writable, LONG);
    post(0, LH_XP_WRITE_IMM, source, 10, writable, LONG);
    assert_int_equal(await(0).status, LH_XP_COMPLETE);
    assert_int_equal(await(0).status, LH_XP_COMPLETE);
    struct lh_xp_completion told = await(1);
    assert_true(told.has_immediate && told.immediate == 77 && told.bytes == 10);
    assert_memory_equal(target, source, BYTES / 2);
    memset(target, 0, BYTES);
    post(0, LH_XP_READ, target, BYTES, readable, LONG);
    struct lh_xp_completion read = await(0);
    assert_int_equal(read.status, LH_XP_COMPLETE);
    assert_int_equal(read.bytes, BYTES);
    assert_memory_equal(target, source, BYTES);
}

/* From a host that is no peer, and from a peer with a bit turned over. */
static void test_foreign(void **state)
{
    (void)state;
    struct lh_xp *stranger, *own = ends[0];
    struct lh_xp_counters counters;
    uint32_t others[2] = {qpn[0], qpn[1]}, seq;
    char address[LH_XP_ADDRESS_MAX];
    post(1, LH_XP_RECV, target, BYTES, 0, LONG);
    create(&stranger, "::1");
    assert_int_equal(lh_xp_open(stranger, &qpn[0], &seq), 0);
    assert_int_equal(lh_xp_connect(stranger, qpn[0], lh_xp_address(ends[1], address), others[1], 0), 0);
    ends[0] = stranger;
    post(0, LH_XP_SEND, source, 100, 0, LONG);
    await(0);
    do {
        progress();
        lh_xp_counters(ends[1], &counters);
    } while (counters.bad_packets == 0);
    assert_int_equal(counters.rx_packets, 0);
    lh_xp_destroy(stranger);
    ends[0] = own;
    qpn[0] = others[0];

    uint8_t packet[XP_OVERHEAD + 4] = {0};
    struct xp_packet forged = {.opcode = XP_SEND,
                               .last = true,
                               .dest_qpn = qpn[1],
                               .wqe_seq = ends[0]->nic.memory.qps[qpn[0] - 1].transport.tx_seq,
                               .length = 4,
                               .payload = source,
                               .payload_bytes = 4};
    xp_encode_header(&forged, packet);
    union udp_address *to = &ends[0]->peers.addresses[0];
    assert_int_equal(sendto(lh_xp_fd(ends[0]), packet, sizeof packet, 0, &to->any, udp_address_size(to)),
                     sizeof packet);
    do {
        progress();
        lh_xp_counters(ends[1], &counters);
    } while (counters.bad_packets < 2);
    assert_int_equal(counters.rx_packets, 0);
    struct lh_xp_completion completion;
    assert_int_equal(lh_xp_poll(ends[1], &completion, 1), 0);
}

/* Peers come and go: a place is that of a peer as long as a queue pair is connected to it. */
static void test_many_peers(void **state)
{
    (void)state;
    for (unsigned port = 1000; port < 1200; port++) {
        uint32_t number, seq;
        char address[LH_XP_ADDRESS_MAX];
        snprintf(address, sizeof address, "[::1]:%u", port);
        assert_int_equal(lh_xp_open(ends[0], &number, &seq), 0);
        assert_int_equal(lh_xp_connect(ends[0], number, address, 1, 0), 0);
        assert_int_equal(lh_xp_close(ends[0], number), 0);
    }
    test_send(state);
}

static void test_refused(void **state)
{
    (void)state;
    struct lh_xp_attr attr;
    struct lh_xp *none = NULL;
    uint32_t key;
    lh_xp_attr_init(&attr);
    assert_int_equal(lh_xp_create(&attr, &none), -LH_EINVAL); /* no address */
    attr.address = "192.0.2.77";
    assert_int_equal(lh_xp_create(&attr, &none), -LH_EADDR);
    attr.address = "::1";
    attr.qps = 1 << 24;
    assert_int_equal(lh_xp_create(&attr, &none), -LH_EINVAL);
    attr.qps = 1;
    attr.rate_bps = 1;
    assert_int_equal(lh_xp_create(&attr, &none), -LH_EINVAL);
    attr.struct_bytes = 1;
    assert_int_equal(lh_xp_create(&attr, &none), -LH_EINVAL);
    assert_null(none);
    static const char *const addresses[] = {
        "", "::1", "[::1]", "[::1]:", "[::1]:0", "[::1]:65536", "[::1]:1x", "127.0.0.1:5"};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        assert_int_equal(lh_xp_connect(ends[0], qpn[0], addresses[i], 1, 0), -LH_EADDR);
    assert_int_equal(lh_xp_connect(ends[0], 0, "[::1]:5", 1, 0), -LH_EINVAL);
    assert_int_equal(lh_xp_connect(ends[0], qpn[0], "[::1]:5", 0, 0), -LH_EINVAL);
    assert_int_equal(lh_xp_connect(ends[0], qpn[0], "[::1]:5", 1, 0), -LH_ESTATE);
    assert_int_equal(lh_xp_expose(ends[0], source, BYTES, 0, &key), -LH_EINVAL);
    assert_int_equal(lh_xp_withdraw(ends[0], 5), -LH_EKEY);
    const struct lh_xp_request request = {.verb = LH_XP_RECV, .bytes = 1, .timeout_ns = 1};
    assert_int_equal(lh_xp_post(ends[0], qpn[0], &request), -LH_EINVAL);
    assert_int_equal(lh_xp_close(ends[0], qpn[0]), 0);
    assert_int_equal(lh_xp_close(ends[0], qpn[0]), -LH_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_send, start, stop),
        cmocka_unit_test_setup_teardown(test_send, start_v4, stop),
        cmocka_unit_test_setup_teardown(test_deadline, start, stop),
        cmocka_unit_test_setup_teardown(test_one_sided, start, stop),
        cmocka_unit_test_setup_teardown(test_one_sided, start_v4, stop),
        cmocka_unit_test_setup_teardown(test_foreign, start, stop),
        cmocka_unit_test_setup_teardown(test_many_peers, start, stop),
        cmocka_unit_test_setup_teardown(test_refused, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
