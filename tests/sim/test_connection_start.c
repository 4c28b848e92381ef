/*
 * test_connection_start.c - how the first message fares where many packets are lost: it takes some round
 * trips more, and nobody concludes that nothing passes at all.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/connection_pair.h"

#define MS LH_NS_PER_MS

/* One byte from end 0 to end 1, its receive posted `late` before it. Returns how long it took. */
static lh_time first_byte(uint64_t seed, const char *link, lh_time late)
{
    struct connection_pair pair;
    struct lh_attr attr;
    char world[32];
    uint8_t out = 7, in = 0;
    connection_pair_attr(&attr);
    snprintf(world, sizeof world, "start%llu", (unsigned long long)seed);
    connection_pair_open(&pair, world, seed, link, &attr, NULL);
    struct lh_request *recv = connection_pair_recv(&pair, 1, &in, 1);
    connection_pair_run(&pair, late);
    lh_time begin = connection_pair_now(&pair);
    struct lh_request *send = connection_pair_send(&pair, 0, &out, 1);
    struct lh_result result = connection_pair_finish(&pair, recv);
    if (result.error)
        fail_msg("seed %llu: %s", (unsigned long long)seed, lh_strerror(result.error));
    assert_int_equal(in, out);
    lh_time took = connection_pair_now(&pair) - begin;
    connection_pair_finish(&pair, send);
    connection_pair_close(&pair);
    return took;
}

/* A lost clear-to-send is repeated after a round trip, and so are the next ones that are lost: that it takes
 * longer than 16 round trips is rare. */
static void lost_announcements_cost_round_trips(void **state)
{
    (void)state;
    uint32_t slow = 0;
    for (uint64_t seed = 1000; seed < 2000; seed++)
        slow += first_byte(seed, "rtt=300ms,loss=0.3", 0) > 16 * 300 * MS;
    assert_in_range(slow, 0, 10);
}

/* A few announcements come before the only packet does. */
static void losses_are_no_firewall(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 2000; seed++)
        first_byte(seed, "rtt=300ms,loss=0.4", 3000 * MS);
}

/* A burst swallows many pings, not all of them: of 100 pairs this many come together at least. */
static void bursts_delay_the_proof(void **state)
{
    (void)state;
    uint32_t proven = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct connection_pair pair;
        struct lh_attr attr;
        struct lh_path_view path;
        char world[32];
        connection_pair_attr(&attr);
        snprintf(world, sizeof world, "burst%llu", (unsigned long long)seed);
        connection_pair_open(&pair, world, seed, "rtt=10ms,loss=0.3,burst=10", &attr, NULL);
        connection_pair_run(&pair, 2100 * MS);
        assert_int_equal(lh_connection_path(pair.ends[0], &path), 0);
        proven += path.rtt_ns > 0;
        connection_pair_close(&pair);
    }
    assert_in_range(proven, 80, 100);
}

/* Of a message that does not fit its receive the peer sends no packet, though it announces it. */
static void refused_messages_are_no_firewall(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_attr attr;
    static const uint8_t data[100];
    uint8_t buffer[10];
    connection_pair_attr(&attr);
    connection_pair_open(&pair, "refused", 1, "rtt=1ms", &attr, NULL);
    for (uint32_t i = 0; i < 40; i++) {
        struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, sizeof buffer);
        struct lh_request *send = connection_pair_send(&pair, 0, data, sizeof data);
        assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_ETRUNCATED);
        assert_int_equal(connection_pair_finish(&pair, send).error, -LH_ETRUNCATED);
        connection_pair_run(&pair, 500 * MS);
    }
    connection_pair_transfer(&pair, 0, 10, 10);
    connection_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_announcements_cost_round_trips),
        cmocka_unit_test(losses_are_no_firewall),
        cmocka_unit_test(bursts_delay_the_proof),
        cmocka_unit_test(refused_messages_are_no_firewall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
