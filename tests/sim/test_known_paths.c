/*
 * test_known_paths.c - a connection starts from what others of its engine have measured of the path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/congestion.h>
#include <longhaul/connection.h>
#include <longhaul/engine.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/connection_pair.h"
#include "support/sim_engines.h"

#define LINK   "rtt=20ms,rate=1Gbit"
#define RTT_NS (20 * LH_NS_PER_MS)
#define BYTES  ((size_t)16 << 20) /* 6 times what the path holds */
#define SETTLE 10                 /* round trips, in which another connection gets to know the path, too */

static uint8_t payload[BYTES], buffer[BYTES];

static void open_engines(struct sim_engines *net)
{
    struct lh_engine_attr attrs[2];
    for (int i = 0; i < 2; i++)
        lh_engine_attr_init(&attrs[i]);
    sim_engines_open(net, "known", 7, LINK, 2, attrs);
}

static void open_connection(const struct sim_engines *net, struct lh_connection *ends[2])
{
    struct lh_attr attr, other;
    connection_pair_attr(&attr);
    attr.slot_bytes = (uint64_t)1 << 20;
    attr.slots = 64;
    attr.congestion = "bbr";
    attr.engine = net->engines[0];
    other = attr;
    other.engine = net->engines[1];
    sim_engines_join(ends, &attr, &other);
}

static void close_connection(struct lh_connection *ends[2])
{
    for (int i = 0; i < 2; i++)
        lh_close(ends[i]);
}

/* How long it took, from the call to the last acknowledgement; the receive is there before. */
static lh_time transfer(struct sim_engines *net, struct lh_connection *ends[2], size_t bytes)
{
    struct lh_request *send, *recv;
    sim_engines_must(lh_recv(ends[1], buffer, bytes, NULL, &recv), "lh_recv");
    sim_engines_run(net, 2 * RTT_NS);
    lh_time began_ns = sim_world_now(net->world);
    sim_engines_must(lh_send(ends[0], payload, bytes, NULL, &send), "lh_send");
    sim_engines_must(sim_engines_finish(net, send).error, "the send");
    lh_time took_ns = sim_world_now(net->world) - began_ns;
    sim_engines_must(sim_engines_finish(net, recv).error, "the receive");
    return took_ns;
}

static uint64_t remembered_bps(struct lh_connection *connection)
{
    struct lh_congestion_report report;
    assert_int_equal(lh_connection_congestion(connection, &report), 0);
    return report.remembered_rate_bps;
}

/* Its first message takes half a round trip longer than one of a connection that knows the path. */
static void the_second_starts_where_the_first_is(void **state)
{
    (void)state;
    struct sim_engines net;
    struct lh_connection *first[2], *second[2];
    open_engines(&net);
    open_connection(&net, first);
    for (int i = 0; i < 2; i++)
        transfer(&net, first, BYTES);
    assert_true(remembered_bps(first[0]) == 0);
    lh_time settled_ns = transfer(&net, first, BYTES);
    open_connection(&net, second);
    sim_engines_run(&net, SETTLE * RTT_NS);
    lh_time fresh_ns = transfer(&net, second, BYTES);
    assert_true(remembered_bps(second[0]) > 0);
    assert_in_range(fresh_ns, settled_ns / 2, settled_ns + RTT_NS * 3 / 4);
    close_connection(first);
    close_connection(second);
    sim_engines_close(&net);
}

/* Of those that come together one alone starts so: all of them would fill the path more than once. */
static void one_at_a_time(void **state)
{
    (void)state;
    struct sim_engines net;
    struct lh_connection *first[2], *others[3][2];
    uint32_t count = 0;
    open_engines(&net);
    open_connection(&net, first);
    for (int i = 0; i < 2; i++)
        transfer(&net, first, BYTES);
    close_connection(first); /* what it knew stays */
    for (int i = 0; i < 3; i++)
        open_connection(&net, others[i]);
    sim_engines_run(&net, SETTLE * RTT_NS);
    for (int i = 0; i < 3; i++)
        count += remembered_bps(others[i][0]) > 0;
    assert_int_equal(count, 1);
    for (int i = 0; i < 3; i++)
        close_connection(others[i]);
    sim_engines_close(&net);
}

/* What the application limited says nothing about a path. */
static void few_bytes_are_not_noted(void **state)
{
    (void)state;
    struct sim_engines net;
    struct lh_connection *first[2], *second[2];
    open_engines(&net);
    open_connection(&net, first);
    for (int i = 0; i < 20; i++)
        transfer(&net, first, 10000);
    open_connection(&net, second);
    sim_engines_run(&net, SETTLE * RTT_NS);
    assert_true(remembered_bps(second[0]) == 0);
    close_connection(first);
    close_connection(second);
    sim_engines_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_starts_where_the_first_is),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(few_bytes_are_not_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
