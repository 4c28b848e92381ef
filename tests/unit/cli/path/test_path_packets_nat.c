/*
 * test_path_packets_nat.c - what leaves has another address and port, answers find back, all else stays
 * outside, and
 * checksums are right.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/path/path_packets.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { IP_BYTES = 20, BYTES = 64, RIGHT = 2 };

static uint32_t add(uint32_t sum, const uint8_t *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 2)
        sum += read16(at + i);
    return sum;
}

static uint16_t fold(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return (uint16_t)sum;
}

/* 0xFFFF: right. */
static uint16_t ip_sum(const uint8_t *packet)
{
    return fold(add(0, packet, IP_BYTES));
}

static uint16_t payload_sum(const uint8_t *packet)
{
    return fold(
        add(add(packet[9] + BYTES - IP_BYTES, packet + 12, 8), packet + IP_BYTES, BYTES - IP_BYTES));
}

static void put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void make(uint8_t *packet, uint8_t protocol, uint8_t from, uint16_t from_port, uint8_t to,
                 uint16_t to_port)
{
    const uint8_t header[IP_BYTES] = {0x45, 0, 0,  BYTES, 0, 0,    0x40, 0,  64, protocol,
                                      0,    0, 10, 99,    0, from, 10,   99, 0,  to};
    uint8_t *sum = packet + IP_BYTES + (protocol == IPPROTO_UDP ? UDP_CHECKSUM : TCP_CHECKSUM);
    memset(packet, 0x5A, BYTES);
    memcpy(packet, header, sizeof header);
    put16(packet + IP_BYTES, from_port);
    put16(packet + IP_BYTES + 2, to_port);
    put16(packet + IPV4_CHECKSUM, (uint16_t)~ip_sum(packet));
    put16(sum, 0);
    put16(sum, (uint16_t)~payload_sum(packet));
}

static struct path_nat nat;

static bool out(uint8_t *packet, struct path_packet_view *view)
{
    assert_true(path_packet_read(packet, BYTES, view));
    return path_nat_outbound(&nat, packet, BYTES, view);
}

static bool in(uint8_t *packet, struct path_packet_view *view)
{
    assert_true(path_packet_read(packet, BYTES, view));
    return path_nat_inbound(&nat, packet, BYTES, view);
}

/* Of which the view says what the packet has. */
static void assert_sound(const uint8_t *packet, const struct path_packet_view *view)
{
    struct path_packet_view again;
    assert_int_equal(ip_sum(packet), 0xFFFF);
    assert_int_equal(payload_sum(packet), 0xFFFF);
    assert_true(path_packet_read(packet, BYTES, &again));
    assert_int_equal(again.from_host, view->from_host);
    assert_int_equal(again.from_port, view->from_port);
    assert_int_equal(again.to_host, view->to_host);
    assert_int_equal(again.to_port, view->to_port);
}

static void answers_find_back(void **state)
{
    (void)state;
    const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_TCP};
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned port = 1; port <= 400; port++) {
            uint8_t packet[BYTES];
            struct path_packet_view view;
            make(packet, protocols[i], 1, (uint16_t)port, RIGHT, 4791);
            assert_true(out(packet, &view));
            assert_sound(packet, &view);
            assert_int_equal(view.from_host, PATH_NAT_HOST);
            assert_int_equal(view.to_port, 4791);
            make(packet, protocols[i], RIGHT, 4791, PATH_NAT_HOST, view.from_port);
            assert_true(in(packet, &view));
            assert_sound(packet, &view);
            assert_int_equal(view.to_host, 1);
            assert_int_equal(view.to_port, port);
        }
    }
}

static void one_socket_has_one_port(void **state)
{
    (void)state;
    uint8_t packet[BYTES];
    struct path_packet_view first, second, other;
    make(packet, IPPROTO_UDP, 1, 1000, RIGHT, 5000);
    assert_true(out(packet, &first));
    make(packet, IPPROTO_UDP, 1, 1000, RIGHT, 6000);
    assert_true(out(packet, &second));
    assert_int_equal(first.from_port, second.from_port);
    make(packet, IPPROTO_UDP, 3, 1000, RIGHT, 5000);
    assert_true(out(packet, &other));
    assert_true(other.from_port != first.from_port);
}

static void strangers_stay_outside(void **state)
{
    (void)state;
    uint8_t packet[BYTES];
    struct path_packet_view view;
    make(packet, IPPROTO_UDP, RIGHT, 5000, PATH_NAT_HOST, PATH_NAT_FIRST_PORT);
    assert_false(in(packet, &view));
    make(packet, IPPROTO_UDP, 1, 1000, RIGHT, 5000);
    assert_true(out(packet, &view));
    uint16_t port = view.from_port;
    make(packet, IPPROTO_UDP, RIGHT, 5001, PATH_NAT_HOST, port);
    assert_false(in(packet, &view));
    make(packet, IPPROTO_UDP, 3, 5000, PATH_NAT_HOST, port);
    assert_false(in(packet, &view));
    make(packet, IPPROTO_TCP, RIGHT, 5000, PATH_NAT_HOST, port);
    assert_false(in(packet, &view));
    /* Not by the address inside, either. */
    make(packet, IPPROTO_UDP, RIGHT, 5000, 1, 1000);
    assert_false(in(packet, &view));
    make(packet, IPPROTO_UDP, RIGHT, 5000, PATH_NAT_HOST, port);
    assert_true(in(packet, &view));
}

static void what_has_no_ports_does_not_pass(void **state)
{
    (void)state;
    uint8_t packet[BYTES];
    struct path_packet_view view;
    make(packet, IPPROTO_ICMP, 1, 1000, RIGHT, 5000);
    assert_false(out(packet, &view));
    make(packet, IPPROTO_TCP, 1, 1000, RIGHT, 5000);
    packet[7] = 8; /* a later fragment */
    assert_false(out(packet, &view));
    make(packet, IPPROTO_TCP, 1, 1000, RIGHT, 5000);
    assert_true(path_packet_read(packet, IP_BYTES + TCP_CHECKSUM + 1, &view));
    assert_false(path_nat_outbound(&nat, packet, IP_BYTES + TCP_CHECKSUM + 1, &view));
}

static void udp_without_a_checksum_stays_without(void **state)
{
    (void)state;
    uint8_t packet[BYTES];
    struct path_packet_view view;
    make(packet, IPPROTO_UDP, 1, 1000, RIGHT, 5000);
    put16(packet + IP_BYTES + UDP_CHECKSUM, 0);
    assert_true(out(packet, &view));
    assert_int_equal(read16(packet + IP_BYTES + UDP_CHECKSUM), 0);
    assert_int_equal(ip_sum(packet), 0xFFFF);
}

static void a_full_table_refuses_new_flows_only(void **state)
{
    (void)state;
    uint8_t packet[BYTES];
    struct path_packet_view view;
    for (unsigned port = 1; port <= PATH_NAT_FLOWS; port++) {
        make(packet, IPPROTO_UDP, 1, (uint16_t)port, RIGHT, 5000);
        assert_true(out(packet, &view));
    }
    make(packet, IPPROTO_UDP, 1, PATH_NAT_FLOWS + 1, RIGHT, 5000);
    assert_false(out(packet, &view));
    make(packet, IPPROTO_UDP, 1, 7, RIGHT, 5000);
    assert_true(out(packet, &view));
}

static int forget(void **state)
{
    (void)state;
    nat = (struct path_nat){0};
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(answers_find_back, forget),
        cmocka_unit_test_setup(one_socket_has_one_port, forget),
        cmocka_unit_test_setup(strangers_stay_outside, forget),
        cmocka_unit_test_setup(what_has_no_ports_does_not_pass, forget),
        cmocka_unit_test_setup(udp_without_a_checksum_stays_without, forget),
        cmocka_unit_test_setup(a_full_table_refuses_new_flows_only, forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
