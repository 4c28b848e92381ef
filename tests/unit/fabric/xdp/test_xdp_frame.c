/*
 * test_xdp_frame.c - Ethernet frames around UDP datagrams: headers, checksums, what a parser accepts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "fabric/udp/udp_address.h"
#include "fabric/xdp/xdp_frame.h"

static const uint8_t here_mac[6] = {2, 0, 0, 0, 0, 1}, there_mac[6] = {2, 0, 0, 0, 0, 2};

/* The addresses and ports of the golden packets in the next test. */
static union udp_address host(bool ipv4, uint8_t last, uint16_t port)
{
    union udp_address address = {0};
    char text[32];
    address.any.sa_family = ipv4 ? AF_INET : AF_INET6;
    if (ipv4) {
        snprintf(text, sizeof text, "10.77.0.%u", last);
        assert_int_equal(inet_pton(AF_INET, text, &address.v4.sin_addr), 1);
    } else {
        snprintf(text, sizeof text, "fd77::%u", last);
        assert_int_equal(inet_pton(AF_INET6, text, &address.v6.sin6_addr), 1);
    }
    udp_address_set_port(&address, port);
    return address;
}

static struct xdp_flow make_flow(bool ipv4, bool ecn)
{
    const union udp_address from = host(ipv4, 1, 49152), to = host(ipv4, 2, 4791);
    struct xdp_flow flow;
    xdp_flow_make(&flow, here_mac, there_mac, &from, &to, ecn);
    return flow;
}

static uint32_t unhex(const char *text, uint8_t *out)
{
    uint32_t count = 0;
    for (; text[0] != '\0'; text += 2) {
        const char byte[3] = {text[0], text[1], '\0'};
        out[count++] = (uint8_t)strtoul(byte, NULL, 16);
    }
    return count;
}

/* Datagrams of Linux sockets that Soft-RoCE accepted, as captured. The flow label is the sender's choice, the
 * UDP checksum, too: it was captured before the kernel filled it in. */
static void test_headers_are_those_of_the_kernel(void **state)
{
    (void)state;
    static const char payload_text[] = "2b40ffff0000001100000abc0000000000001010000002f000000008deadbeef"
                                       "9c9fa2a5a8abaeb1b31e25cc";
    static const char ipv6_text[] = "6000000000341140fd770000000000000000000000000001"
                                    "fd770000000000000000000000000002c00012b70034fb37";
    static const char ipv4_text[] = "4500004800004000401126090a4d00010a4d0002c00012b700340000";
    uint8_t payload[64], wanted[64], frame[256];
    uint32_t bytes = unhex(payload_text, payload);
    for (int ipv4 = 0; ipv4 < 2; ipv4++) {
        const struct xdp_flow flow = make_flow(ipv4, false);
        uint32_t headers = unhex(ipv4 ? ipv4_text : ipv6_text, wanted);
        memcpy(frame + flow.header_bytes, payload, bytes);
        assert_int_equal(xdp_frame_finish(&flow, frame, bytes, 0), XDP_ETHERNET_BYTES + headers + bytes);
        assert_memory_equal(frame, there_mac, 6);
        assert_memory_equal(frame + 6, here_mac, 6);
        assert_int_equal(lh_get_be16(frame + 12), ipv4 ? XDP_ETHERTYPE_IPV4 : XDP_ETHERTYPE_IPV6);
        assert_memory_equal(frame + XDP_ETHERNET_BYTES, wanted, headers - 2);
        assert_memory_equal(frame + flow.header_bytes, payload, bytes);
    }
}

/* RFC 1071, word by word. */
static uint16_t plain_sum(const uint8_t *data, uint32_t bytes, uint32_t sum)
{
    for (uint32_t i = 0; i < bytes; i += 2)
        sum += (uint32_t)data[i] << 8 | (i + 1 < bytes ? data[i + 1] : 0u);
    while (sum > 0xFFFF)
        sum = (sum >> 16) + (sum & 0xFFFF);
    return (uint16_t)sum;
}

static void test_checksums_of_all_lengths(void **state)
{
    (void)state;
    uint8_t frame[2048];
    for (uint32_t bytes = 0; bytes <= 1500; bytes++) {
        const struct xdp_flow six = make_flow(false, true), four = make_flow(true, true);
        for (uint32_t i = 0; i < bytes; i++)
            frame[six.header_bytes + i] = (uint8_t)(rand() | (bytes % 3 == 0 ? 0xFF : 0));
        xdp_frame_finish(&six, frame, bytes, 0);
        const uint8_t *ip = frame + XDP_ETHERNET_BYTES;
        assert_int_equal(plain_sum(ip + 40, 8 + bytes, plain_sum(ip + 8, 32, 17 + 8 + bytes)), 0xFFFF);
        assert_int_not_equal(lh_get_be16(ip + 46), 0);
        xdp_frame_finish(&four, frame, bytes, (uint16_t)rand());
        assert_int_equal(plain_sum(ip, 20, 0), 0xFFFF);
        assert_int_equal(lh_get_be16(ip + 26), 0);
    }
}

static void test_what_is_built_is_parsed(void **state)
{
    (void)state;
    for (int ipv4 = 0; ipv4 < 2; ipv4++) {
        const union udp_address from = host(ipv4, 1, 49152), to = host(ipv4, 2, 4791);
        const struct xdp_flow flow = make_flow(ipv4, true);
        uint8_t frame[256] = {0};
        struct xdp_datagram datagram;
        uint32_t bytes = xdp_frame_finish(&flow, frame, 100, 0xABCD);
        assert_true(xdp_frame_parse(frame, bytes + 9, &datagram)); /* padding is ignored */
        assert_int_equal(datagram.bytes, 100);
        assert_ptr_equal(datagram.payload, frame + flow.header_bytes);
        assert_int_equal(datagram.ip_id, ipv4 ? 0xABCD : 0);
        assert_false(datagram.marked);
        assert_true(udp_address_same_host(&datagram.from, &from) &&
                    udp_address_same_host(&datagram.to, &to));
        assert_int_equal(udp_address_port(&datagram.from), 49152);
        assert_int_equal(udp_address_port(&datagram.to), 4791);
        frame[XDP_ETHERNET_BYTES + 1] |= ipv4 ? 3 : 0x30; /* a router marks it */
        assert_true(xdp_frame_parse(frame, bytes, &datagram));
        assert_true(datagram.marked);
        for (uint32_t cut = 0; cut < bytes; cut++)
            assert_false(xdp_frame_parse(frame, cut, &datagram));
    }
}

static void expect_refused(bool ipv4, uint32_t at, uint8_t value)
{
    const struct xdp_flow flow = make_flow(ipv4, false);
    uint8_t frame[256] = {0};
    struct xdp_datagram datagram;
    uint32_t bytes = xdp_frame_finish(&flow, frame, 100, 0);
    frame[at] = value;
    assert_false(xdp_frame_parse(frame, bytes, &datagram));
}

static void test_hostile_frames(void **state)
{
    (void)state;
    const uint32_t ip = XDP_ETHERNET_BYTES;
    expect_refused(true, 13, 0x06);
    expect_refused(true, ip, 0x45 + 1);
    expect_refused(true, ip, 0x65);
    expect_refused(true, ip + 2, 1);    /* a total length beyond the frame */
    expect_refused(true, ip + 3, 19);   /* within the header */
    expect_refused(true, ip + 6, 0x20); /* fragments */
    expect_refused(true, ip + 7, 1);
    expect_refused(true, ip + 9, 6);
    expect_refused(true, ip + 20 + 4, 1); /* UDP length beyond the IP packet */
    expect_refused(true, ip + 20 + 5, 7); /* within the header */
    expect_refused(false, ip, 0x45);
    expect_refused(false, ip + 4, 1);
    expect_refused(false, ip + 5, 7);
    expect_refused(false, ip + 6, 44); /* a fragment header */
    expect_refused(false, ip + 40 + 4, 1);
    expect_refused(false, ip + 40 + 5, 7);
}

static void test_gathering(void **state)
{
    (void)state;
    uint8_t first[] = "abc", second[] = "defgh", out[16] = {0};
    const struct iovec pieces[] = {{first, 3}, {NULL, 0}, {second, 5}};
    struct xdp_gather gather = {.pieces = pieces, .count = 3};
    assert_int_equal(xdp_gather_copy(&gather, out, 2), 2);
    assert_int_equal(xdp_gather_copy(&gather, out + 2, 1), 1); /* to the end of a piece */
    assert_int_equal(xdp_gather_copy(&gather, out + 3, 4), 4);
    assert_int_equal(xdp_gather_copy(&gather, out + 7, 9), 1);
    assert_int_equal(xdp_gather_copy(&gather, out + 8, 1), 0);
    assert_string_equal((const char *)out, "abcdefgh");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_are_those_of_the_kernel),
        cmocka_unit_test(test_checksums_of_all_lengths),
        cmocka_unit_test(test_what_is_built_is_parsed),
        cmocka_unit_test(test_hostile_frames),
        cmocka_unit_test(test_gathering),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
