/*
 * test_xp_udp_refused.c - what XP objects over sockets refuse, and with which error: each number of the
 * attributes, addresses of peers that are none, queue pairs, memory and requests.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "unit/xp/udp/xp_udp_pair.h"

#include <stdio.h>

#include <longhaul/error.h>

#define HOST "127.0.0.1"

static struct lh_xp *xp;
static struct xp_udp_end end;
static uint8_t memory[64];

static int start(void **state)
{
    (void)state;
    struct lh_xp_attr attr = xp_udp_attr(HOST);
    attr.qps = 3;
    attr.works = 2;
    attr.regions = 2;
    attr.peers = 1;
    xp = xp_udp_create(&attr);
    end = xp_udp_open(xp);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    lh_xp_destroy(xp);
    return 0;
}

static void expect_error(int got, int wanted, const char *text)
{
    assert_int_equal(got, wanted);
    if (!strstr(lh_last_error(), text))
        fail_msg("\"%s\" is not in \"%s\"", text, lh_last_error());
}

/* ---- attributes --------------------------------------------------------------------------------------- */

static void test_defaults(void **state)
{
    (void)state;
    struct lh_xp_attr attr;
    memset(&attr, 0xA5, sizeof attr);
    lh_xp_attr_init(&attr);
    assert_int_equal(attr.struct_bytes, sizeof attr);
    assert_null(attr.address);
    assert_int_equal(attr.qps, 1024);
    assert_int_equal(attr.works, 4096);
    assert_int_equal(attr.responses, 64);
    assert_int_equal(attr.regions, 64);
    assert_int_equal(attr.peers, 64);
    assert_int_equal(attr.mtu_bytes, 4096);
    assert_int_equal(attr.rate_bps, 100 * UINT64_C(1000000000));
    assert_int_equal(attr.tick_ns, 10000);
    attr.address = HOST;
    lh_xp_destroy(xp_udp_create(&attr));
    lh_xp_destroy(NULL);
}

/* A number of the attributes; `largest` 0: that many would take all memory of the machine. */
struct number {
    const char *name;
    size_t offset, size;
    uint64_t least, most, largest;
};

#define NUMBER(field, least, most, largest)                                                                \
    {                                                                                                      \
#field, offsetof(struct lh_xp_attr, field), sizeof((struct lh_xp_attr *)0)->field, least, most,    \
            largest                                                                                        \
    }

static const struct number numbers[] = {
    NUMBER(qps, 1, (1 << 24) - 1, 0),
    NUMBER(works, 1, 1 << 30, 0),
    NUMBER(responses, 0, 1 << 30, 0),
    NUMBER(regions, 0, 65535, 65535),
    NUMBER(peers, 1, 1 << 20, 1 << 20),
    NUMBER(mtu_bytes, 64, 4096, 4096),
    NUMBER(rate_bps, 1000000, UINT64_C(4000000000000), UINT64_C(4000000000000)),
    NUMBER(tick_ns, 1000, 100000000, 100000000),
};

static struct lh_xp_attr with(const struct number *number, uint64_t value)
{
    struct lh_xp_attr attr = xp_udp_attr(HOST);
    uint32_t narrow = (uint32_t)value;
    memcpy((char *)&attr + number->offset,
           number->size == sizeof narrow ? (const void *)&narrow : (const void *)&value, number->size);
    return attr;
}

static void expect_out_of_range(const struct number *number, uint64_t value)
{
    char text[200];
    struct lh_xp *none = NULL;
    struct lh_xp_attr attr = with(number, value);
    snprintf(text, sizeof text, "lh_xp_attr.%s is %llu: out of range (%llu to %llu)", number->name,
             (unsigned long long)value, (unsigned long long)number->least,
             (unsigned long long)number->most);
    expect_error(lh_xp_create(&attr, &none), -LH_EINVAL, text);
    assert_null(none);
}

static void test_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct lh_xp_attr attr = with(&numbers[i], numbers[i].least);
        lh_xp_destroy(xp_udp_create(&attr));
        if (numbers[i].least > 0)
            expect_out_of_range(&numbers[i], numbers[i].least - 1);
        expect_out_of_range(&numbers[i], numbers[i].most + 1);
        if (numbers[i].largest) {
            attr = with(&numbers[i], numbers[i].largest);
            lh_xp_destroy(xp_udp_create(&attr));
        }
    }
}

static void test_no_attributes(void **state)
{
    (void)state;
    struct lh_xp *none = NULL;
    struct lh_xp_attr attr = xp_udp_attr(NULL);
    expect_error(lh_xp_create(&attr, &none), -LH_EINVAL, "address is NULL");
    attr.address = "192.0.2.77";
    expect_error(lh_xp_create(&attr, &none), -LH_EADDR, "192.0.2.77");
    attr.address = "nowhere";
    expect_error(lh_xp_create(&attr, &none), -LH_EADDR, "nowhere");
    attr.address = HOST;
    attr.struct_bytes = sizeof attr - 1;
    expect_error(lh_xp_create(&attr, &none), -LH_EINVAL, "lh_xp_attr_init()");
    attr.struct_bytes = sizeof attr + 1;
    expect_error(lh_xp_create(&attr, &none), -LH_EINVAL, "lh_xp_attr_init()");
    assert_null(none);
}

/* ---- queue pairs -------------------------------------------------------------------------------------- */

/* The socket is that of the address, the state that of the paper. */
static void test_what_it_tells(void **state)
{
    (void)state;
    char address[LH_XP_ADDRESS_MAX], wanted[LH_XP_ADDRESS_MAX];
    struct sockaddr_in bound;
    socklen_t bytes = sizeof bound;
    assert_int_equal(getsockname(lh_xp_fd(xp), (struct sockaddr *)&bound, &bytes), 0);
    snprintf(wanted, sizeof wanted, HOST ":%u", ntohs(bound.sin_port));
    assert_ptr_equal(lh_xp_address(xp, address), address);
    assert_string_equal(address, wanted);
    uint32_t nic = 0, host = 0;
    lh_xp_qp_bytes(&nic, &host);
    assert_int_equal(nic, 52);
    assert_int_equal(host, sizeof(struct xp_host_qp) + 3 * (sizeof(struct wheel_timer) + 4));
}

/* Each begins with a message that nobody can guess, and the peer has to know. */
static void test_open(void **state)
{
    (void)state;
    struct xp_udp_end others[2];
    uint32_t qpn = 77, seq = 77;
    for (unsigned i = 0; i < 2; i++) {
        others[i] = xp_udp_open(xp);
        assert_int_equal(others[i].qpn, i + 2);
    }
    assert_int_equal(end.qpn, 1);
    expect_error(lh_xp_open(xp, &qpn, &seq), -LH_EAGAIN, "all 3 queue pairs are open");
    assert_true(qpn == 77 && seq == 77);
    assert_int_equal(lh_xp_close(xp, 2), 0);
    uint32_t begun[16], same = 0, all = 0;
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(lh_xp_open(xp, &qpn, &begun[i]), 0);
        assert_int_equal(qpn, 2);
        assert_int_equal(xp->nic.memory.qps[1].transport.tx_seq, begun[i]);
        assert_int_equal(lh_xp_close(xp, 2), 0);
        same += begun[i] == begun[0];
        all |= begun[i];
    }
    assert_in_range(same, 1, 2);
    assert_in_range(all, 1 << 23, (1 << 24) - 1); /* 24 bits of them are drawn */
}

static void test_close(void **state)
{
    (void)state;
    expect_error(lh_xp_close(xp, 0), -LH_EINVAL, "no queue pair 0");
    expect_error(lh_xp_close(xp, 2), -LH_EINVAL, "no queue pair 2");
    expect_error(lh_xp_close(xp, 4), -LH_EINVAL, "no queue pair 4");
    assert_int_equal(lh_xp_close(xp, 1), 0);
    expect_error(lh_xp_close(xp, 1), -LH_EINVAL, "no queue pair 1");
}

/* ---- peers -------------------------------------------------------------------------------------------- */

static void test_addresses(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",         ":",        "5",           HOST,
        "::1",      HOST ":",   HOST ":0",     HOST ":x",
        HOST ":5x", HOST ":5 ", HOST ":-1",    HOST ":-18446744073709551611",
        HOST ":+5", HOST ": 5", HOST ":65536", HOST ":99999999999999999999999"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(texts[i], "::1") == 0) /* a host ":" and a port 1 */
            expect_error(lh_xp_connect(xp, end.qpn, texts[i], 1, 0), -LH_EADDR, "");
        else
            expect_error(lh_xp_connect(xp, end.qpn, texts[i], 1, 0), -LH_EADDR, "no address and port");
    }
    expect_error(lh_xp_connect(xp, end.qpn, ":5", 1, 0), -LH_EADDR, "");
    expect_error(lh_xp_connect(xp, end.qpn, "nowhere:5", 1, 0), -LH_EADDR, "nowhere");
    expect_error(lh_xp_connect(xp, end.qpn, "[::1]:5", 1, 0), -LH_EADDR, "IP version");
    assert_int_equal(xp->peers.count, 0);
    assert_int_equal(lh_xp_connect(xp, end.qpn, HOST ":65535", 1, 0), 0);
    assert_int_equal(udp_address_port(&xp->peers.addresses[0]), 65535);
}

/* The longest host that is looked at, and one longer. */
static void test_a_long_address(void **state)
{
    (void)state;
    char text[LH_XP_ADDRESS_MAX + 100];
    for (unsigned length = LH_XP_ADDRESS_MAX - 1; length < LH_XP_ADDRESS_MAX + 90; length++) {
        memset(text, '1', length);
        strcpy(text + length, ":5");
        int failed = lh_xp_connect(xp, end.qpn, text, 1, 0);
        assert_int_equal(failed, -LH_EADDR);
        assert_int_equal(strstr(lh_last_error(), "no address and port") != NULL,
                         length >= LH_XP_ADDRESS_MAX);
    }
}

/* What is refused takes no place: there is only one. */
static void test_numbers_of_a_peer(void **state)
{
    (void)state;
    static const uint32_t ours[] = {0, 4, UINT32_MAX};
    static const uint32_t peers[][2] = {{0, 5}, {1 << 24, 5}, {1, 1 << 24}, {0, 1 << 24}, {UINT32_MAX, 5}};
    for (unsigned i = 0; i < sizeof ours / sizeof *ours; i++)
        expect_error(lh_xp_connect(xp, ours[i], HOST ":5", 1, 0), -LH_EINVAL, "is open");
    for (unsigned i = 0; i < sizeof peers / sizeof *peers; i++)
        expect_error(lh_xp_connect(xp, end.qpn, HOST ":5", peers[i][0], peers[i][1]), -LH_EINVAL,
                     "of a peer");
    assert_int_equal(xp->peers.count, 0);
    expect_error(lh_xp_connect(xp, 2, HOST ":5", 1, 0), -LH_EINVAL, "no queue pair 2 is open");
    assert_int_equal(lh_xp_connect(xp, end.qpn, HOST ":1", (1 << 24) - 1, (1 << 24) - 1), 0);
    const struct xp_transport *transport = &xp->nic.memory.qps[0].transport;
    assert_int_equal(transport->peer_qpn, (1 << 24) - 1);
    assert_int_equal(transport->rx_seq, (1 << 24) - 1);
    assert_int_equal(transport->tx_seq, end.seq);
    assert_int_equal(udp_address_port(&xp->peers.addresses[0]), 1);
    expect_error(lh_xp_connect(xp, end.qpn, HOST ":1", 1, 0), -LH_ESTATE, "connected");
    struct xp_udp_end last = xp_udp_open(xp), one_more = xp_udp_open(xp);
    expect_error(lh_xp_connect(xp, last.qpn, HOST ":2", 1, 0), -LH_EAGAIN, "1 peers");
    assert_int_equal(one_more.qpn, 3);
    assert_int_equal(lh_xp_connect(xp, one_more.qpn, HOST ":1", 1, 0), 0);
}

/* ---- memory and requests ------------------------------------------------------------------------------- */

static void test_memory(void **state)
{
    (void)state;
    uint32_t key = 0, other = 0, third = 0;
    expect_error(lh_xp_expose(xp, NULL, 5, LH_XP_REMOTE_READ, &key), -LH_EINVAL, "with access 2");
    expect_error(lh_xp_expose(xp, memory, 5, 0, &key), -LH_EINVAL, "with access 0");
    expect_error(lh_xp_expose(xp, memory, 5, 4, &key), -LH_EINVAL, "with access 4");
    assert_int_equal(key, 0);
    assert_int_equal(lh_xp_expose(xp, memory, 5, LH_XP_REMOTE_WRITE | LH_XP_REMOTE_READ, &key), 0);
    assert_int_equal(lh_xp_expose(xp, memory, 0, LH_XP_REMOTE_WRITE, &other), 0);
    assert_true(key != other);
    expect_error(lh_xp_expose(xp, memory, 5, 1, &third), -LH_EAGAIN, "2 regions");
    expect_error(lh_xp_withdraw(xp, 0), -LH_EKEY, "0x0");
    expect_error(lh_xp_withdraw(xp, key ^ 0x10000), -LH_EKEY, "no region");
    assert_int_equal(lh_xp_withdraw(xp, key), 0);
    expect_error(lh_xp_withdraw(xp, key), -LH_EKEY, "no region");
    assert_int_equal(lh_xp_expose(xp, memory, 5, 1, &third), 0);
    assert_true(key != third || key == other); /* drawn anew: 16 bits of it */
}

static void test_requests(void **state)
{
    (void)state;
    struct lh_xp_request request = {
        .verb = LH_XP_RECV, .buffer = memory, .bytes = 5, .timeout_ns = LH_NS_PER_S};
    struct lh_xp_completion completions[3];
    expect_error(lh_xp_post(xp, end.qpn, &request), -LH_ESTATE, "not connected");
    assert_int_equal(lh_xp_connect(xp, end.qpn, HOST ":5", 1, 0), 0);
    expect_error(lh_xp_post(xp, 0, &request), -LH_EINVAL, "no queue pair 0");
    request.buffer = NULL;
    expect_error(lh_xp_post(xp, end.qpn, &request), -LH_EINVAL, "5 bytes without a buffer");
    request.bytes = 0;
    assert_int_equal(lh_xp_post(xp, end.qpn, &request), 0);
    request = (struct lh_xp_request){.verb = LH_XP_RECV, .buffer = memory, .timeout_ns = LH_NS_PER_S};
    assert_int_equal(lh_xp_post(xp, end.qpn, &request), 0);
    expect_error(lh_xp_post(xp, end.qpn, &request), -LH_EAGAIN, "poll first");
    assert_int_equal(lh_xp_close(xp, end.qpn), 0);
    assert_int_equal(lh_xp_poll(xp, completions, 1), 1);
    assert_int_equal(lh_xp_poll(xp, completions + 1, 2), 1);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(completions[i].status, LH_XP_FLUSHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_no_attributes),
        cmocka_unit_test_setup_teardown(test_what_it_tells, start, stop),
        cmocka_unit_test_setup_teardown(test_open, start, stop),
        cmocka_unit_test_setup_teardown(test_close, start, stop),
        cmocka_unit_test_setup_teardown(test_addresses, start, stop),
        cmocka_unit_test_setup_teardown(test_a_long_address, start, stop),
        cmocka_unit_test_setup_teardown(test_numbers_of_a_peer, start, stop),
        cmocka_unit_test_setup_teardown(test_memory, start, stop),
        cmocka_unit_test_setup_teardown(test_requests, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
