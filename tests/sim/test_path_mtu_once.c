/*
 * test_path_mtu_once.c - a path that takes shorter packets than the connection's, for one message: the sender
 * finds that out, and the message arrives. (At length, and up again: test_path_mtu.c.)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/connection_pair.h"

#define KIB 1024u
/* IPv6 and UDP headers, which datagrams of the simulated fabric do not have. */
#define IP_UDP_BYTES 48u

static uint32_t path_bytes;

static bool pass_short(void *context, struct sim_datagram *datagram)
{
    (void)context;
    return datagram->bytes + IP_UDP_BYTES <= path_bytes;
}

/* Sends 512 KiB over a path of that MTU; what the sender reports then. */
static struct lh_stats send_over(uint32_t mtu_bytes, uint32_t path, uint32_t *packet_bytes)
{
    struct connection_pair pair;
    struct lh_attr attr;
    struct lh_stats stats;
    struct lh_congestion_report report;
    connection_pair_attr(&attr);
    attr.mtu_bytes = mtu_bytes;
    attr.chunk_bytes = 16 * mtu_bytes;
    attr.slot_bytes = 256 * KIB;
    attr.reliability = "sr-nack";
    connection_pair_open(&pair, "once", 1, "rtt=2ms,rate=1Gbit", &attr, NULL);
    path_bytes = path;
    sim_world_tap(pair.world, pass_short, NULL);
    for (int i = 0; i < 3; i++) {
        connection_pair_transfer(&pair, 0, 512 * KIB, 512 * KIB);
        connection_pair_run(&pair, LH_NS_PER_S / 2);
    }
    assert_int_equal(lh_connection_stats(pair.ends[0], &stats), 0);
    assert_int_equal(lh_connection_congestion(pair.ends[0], &report), 0);
    *packet_bytes = report.packet_bytes;
    connection_pair_close(&pair);
    return stats;
}

static void long_packets_become_shorter(void **state)
{
    (void)state;
    uint32_t packet_bytes;
    struct lh_stats stats = send_over(4096, 1500, &packet_bytes);
    assert_int_equal(packet_bytes, 1024);
    assert_int_equal(stats.path_mtu_lowered, 1);
    assert_int_equal(stats.path_mtu_raised, 0);
    assert_true(stats.tx_pieces > 0 && stats.path_mtu_probes > 0);
}

static void packets_that_pass_stay(void **state)
{
    (void)state;
    uint32_t packet_bytes;
    struct lh_stats stats = send_over(4096, 9000, &packet_bytes);
    assert_int_equal(packet_bytes, 4096);
    assert_int_equal(stats.path_mtu_lowered, 0);
    assert_int_equal(stats.tx_pieces, 0);
    assert_true(stats.path_mtu_probes > 0); /* that they do is asked for */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_packets_become_shorter),
        cmocka_unit_test(packets_that_pass_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
