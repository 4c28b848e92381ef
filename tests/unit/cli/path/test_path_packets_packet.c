/*
 * test_path_packets_packet.c - what a path reads in IP packets, and the bits that it writes.
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

static uint16_t checksum(const uint8_t *header)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < 20; i += 2)
        sum += read16(header + i);
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return (uint16_t)sum;
}

/* UDP from 10.99.0.1:1000 to 10.99.0.2:4791, ECT(0). */
static void make_ipv4(uint8_t *packet, uint16_t id)
{
    const uint8_t header[] = {0x45,        2,          0,         40,        (uint8_t)(id >> 8),
                              (uint8_t)id, 0x40,       0,         64,        IPPROTO_UDP,
                              0,           0,          10,        99,        0,
                              1,           10,         99,        0,         2,
                              1000 >> 8,   1000 & 255, 4791 >> 8, 4791 & 255};
    memset(packet, 0, 40);
    memcpy(packet, header, sizeof header);
    uint16_t sum = (uint16_t)~checksum(packet);
    packet[10] = (uint8_t)(sum >> 8);
    packet[11] = (uint8_t)sum;
}

static void make_ipv6(uint8_t *packet)
{
    memset(packet, 0, 60);
    packet[0] = 0x6A;
    packet[1] = 0xA5; /* traffic class 0xAA, which ends in ECT(0); flow label 5… */
    packet[6] = IPPROTO_UDP;
    packet[23] = 1;
    packet[39] = 2;
    packet[40] = 4791 >> 8;
    packet[41] = 4791 & 255;
}

static void reads_ipv4(void **state)
{
    (void)state;
    uint8_t packet[40];
    struct path_packet_view view;
    make_ipv4(packet, 7);
    assert_true(path_packet_read(packet, sizeof packet, &view));
    assert_int_equal(view.version, 4);
    assert_int_equal(view.ecn, 2);
    assert_int_equal(view.protocol, IPPROTO_UDP);
    assert_int_equal(view.from_port, 1000);
    assert_int_equal(view.to_port, 4791);
    assert_int_equal(view.from_host, 1);
    assert_int_equal(view.to_host, 2);
    assert_false(view.multicast);
    packet[16] = 224;
    assert_true(path_packet_read(packet, sizeof packet, &view) && view.multicast);
    packet[7] = 1; /* a later fragment has no ports */
    assert_true(path_packet_read(packet, sizeof packet, &view) && !view.protocol && !view.to_port);
}

static void reads_ipv6(void **state)
{
    (void)state;
    uint8_t packet[60];
    struct path_packet_view view;
    make_ipv6(packet);
    assert_true(path_packet_read(packet, sizeof packet, &view));
    assert_int_equal(view.version, 6);
    assert_int_equal(view.ecn, 2);
    assert_int_equal(view.from_port, 4791);
    assert_int_equal(view.to_host, 2);
    packet[24] = 0xFF;
    assert_true(path_packet_read(packet, sizeof packet, &view) && view.multicast);
}

static void what_is_too_short_is_no_packet(void **state)
{
    (void)state;
    uint8_t packet[60];
    struct path_packet_view view;
    make_ipv4(packet, 7);
    for (size_t bytes = 0; bytes < 20; bytes++)
        assert_false(path_packet_read(packet, bytes, &view));
    assert_true(path_packet_read(packet, 23, &view) && !view.to_port);
    packet[0] = 0x4F;
    assert_false(path_packet_read(packet, 40, &view));
    packet[0] = 0x44;
    assert_false(path_packet_read(packet, 40, &view));
    make_ipv6(packet);
    assert_false(path_packet_read(packet, 39, &view));
    packet[0] = 0x50;
    assert_false(path_packet_read(packet, 60, &view));
}

static void the_checksum_follows_the_mark(void **state)
{
    (void)state;
    for (unsigned id = 0; id <= 0xFFFF; id++) {
        uint8_t packet[40], before[40];
        struct path_packet_view view;
        make_ipv4(packet, (uint16_t)id);
        memcpy(before, packet, sizeof packet);
        path_packet_read(packet, sizeof packet, &view);
        path_packet_set_ecn(packet, &view, PATH_ECN_CONGESTION);
        assert_int_equal(packet[1], 3);
        assert_int_equal(checksum(packet), 0xFFFF);
        path_packet_set_ecn(packet, &view, 2);
        assert_memory_equal(packet, before, sizeof packet);
    }
}

static void a_mark_changes_nothing_else_in_ipv6(void **state)
{
    (void)state;
    uint8_t packet[60], before[60];
    struct path_packet_view view;
    make_ipv6(packet);
    memcpy(before, packet, sizeof packet);
    path_packet_read(packet, sizeof packet, &view);
    path_packet_set_ecn(packet, &view, PATH_ECN_CONGESTION);
    before[1] = 0xB5;
    assert_memory_equal(packet, before, sizeof packet);
}

static void filters_drop_what_they_say(void **state)
{
    (void)state;
    uint8_t packet[40];
    struct path_packet_view view;
    const struct path_filter none = {.udp = false}, udp = {.udp = true},
                             but = {.udp = true, .but_port = 4791};
    const struct path_filter other = {.udp = true, .but_port = 4792}, large = {.above_bytes = 1400};
    make_ipv4(packet, 7);
    path_packet_read(packet, sizeof packet, &view);
    assert_false(path_filter_drops(&none, &view, 9000));
    assert_true(path_filter_drops(&udp, &view, 40));
    assert_false(path_filter_drops(&but, &view, 40));
    assert_true(path_filter_drops(&other, &view, 40));
    assert_false(path_filter_drops(&large, &view, 1400));
    assert_true(path_filter_drops(&large, &view, 1401));
    view.protocol = IPPROTO_TCP;
    assert_false(path_filter_drops(&udp, &view, 40));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_ipv4),
        cmocka_unit_test(reads_ipv6),
        cmocka_unit_test(what_is_too_short_is_no_packet),
        cmocka_unit_test(the_checksum_follows_the_mark),
        cmocka_unit_test(a_mark_changes_nothing_else_in_ipv6),
        cmocka_unit_test(filters_drop_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
