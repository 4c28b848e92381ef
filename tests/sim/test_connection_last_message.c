/*
 * test_connection_last_message.c - what a connection's last message says, which its control connection
 * brings.
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

#include "message/connection_state.h"
#include "support/connection_pair.h"
#include "support/echo_scheme.h"
#include "wire/eager_packets.h"

#define BYTES 100003u
#define MS    LH_NS_PER_MS

/* A wire between the two control connections: faster than any packet. */
struct wire {
    bool closed;
    uint8_t last[TRANSFER_BYTES_MAX];
    size_t bytes;
};

static int look(void *control_connection, uint8_t *last, size_t *bytes)
{
    const struct wire *wire = control_connection;
    if (!wire->closed)
        return 0;
    memcpy(last, wire->last, wire->bytes);
    *bytes = wire->bytes;
    return -LH_ECLOSED;
}

static void close_wire(void *control_connection, const uint8_t *last, size_t bytes)
{
    struct wire *wire = control_connection;
    wire->closed = true;
    memcpy(wire->last, last, bytes);
    wire->bytes = bytes;
}

static void refuse_nothing(void *control_connection, const char *reason)
{
    (void)control_connection;
    fail_msg("refused: %s", reason);
}

static const struct control_connection_ops ops = {look, refuse_nothing, close_wire};

/* End 1 fails while it receives, and is closed. What it had not received must not count as arrived. */
static void failed_end_acknowledges_nothing_more(void **state)
{
    (void)state;
    struct connection_pair pair;
    struct lh_attr attr[2];
    struct wire wire = {.closed = false};
    uint8_t *data = connection_pair_bytes(BYTES, 1);
    uint8_t *buffer = malloc(BYTES);
    uint8_t few[EAGER_MAX + 1]; /* a small message would need no scheme */
    connection_pair_attr(&attr[0]);
    attr[1] = attr[0];
    attr[0].scheme = &echo_scheme; /* end 1 does not know it */
    connection_pair_open(&pair, "lifeline", 5, "rtt=10ms,rate=10Mbit", &attr[0], &attr[1]);
    connection_set_control_connection(pair.ends[0], &ops, &wire, "end 1");
    connection_set_control_connection(pair.ends[1], &ops, &wire, "end 0");

    struct lh_request *back = connection_pair_recv(&pair, 0, few, sizeof few);
    struct lh_request *recv = connection_pair_recv(&pair, 1, buffer, BYTES);
    connection_pair_run(&pair, 20 * MS);
    struct lh_request *send = connection_pair_send(&pair, 0, data, BYTES);
    connection_pair_run(&pair, 45 * MS); /* a part of it arrives */
    struct lh_request *doomed = connection_pair_send(&pair, 1, data, sizeof few);
    assert_int_equal(connection_pair_finish(&pair, doomed).error, -LH_EPROTOCOL);
    assert_int_equal(connection_pair_finish(&pair, recv).error, -LH_EPROTOCOL);
    lh_close(pair.ends[1]);
    pair.ends[1] = NULL;
    assert_true(wire.closed);
    assert_int_equal(connection_pair_finish(&pair, send).error, -LH_ECLOSED);
    assert_int_equal(connection_pair_finish(&pair, back).error, -LH_ECLOSED);
    wire.closed = false;
    connection_pair_close(&pair);
    free(data);
    free(buffer);
}

/* All had arrived when end 1 was closed: its last message, of long and of small ones, tells that before any
 * packet could. */
static void last_message_of_all_that_arrived(void **state)
{
    (void)state;
    enum { SMALL = 5 };
    struct connection_pair pair;
    struct lh_attr attr;
    struct wire wire = {.closed = false};
    struct lh_request *sends[SMALL + 1], *receives[SMALL + 1];
    struct lh_stats stats;
    uint8_t *data = connection_pair_bytes(BYTES, 1);
    uint8_t *buffer = malloc(BYTES), small[SMALL][100];
    connection_pair_attr(&attr);
    connection_pair_open(&pair, "lifeline", 5, "rtt=200ms", &attr, NULL);
    connection_set_control_connection(pair.ends[0], &ops, &wire, "end 1");
    connection_set_control_connection(pair.ends[1], &ops, &wire, "end 0");
    receives[SMALL] = connection_pair_recv(&pair, 1, buffer, BYTES);
    for (uint32_t i = 0; i < SMALL; i++)
        receives[i] = connection_pair_recv(&pair, 1, small[i], sizeof small[i]);
    connection_pair_run(&pair, 300 * MS); /* clear to send */
    sends[SMALL] = connection_pair_send(&pair, 0, data, BYTES);
    for (uint32_t i = 0; i < SMALL; i++)
        sends[i] = connection_pair_send(&pair, 0, data + i, sizeof small[i]);
    for (uint32_t i = 0; i <= SMALL; i++)
        assert_int_equal(connection_pair_finish(&pair, receives[i]).error, 0);
    lh_close(pair.ends[1]);
    pair.ends[1] = NULL;
    assert_true(wire.closed);
    for (uint32_t i = 0; i <= SMALL; i++)
        assert_int_equal(connection_pair_finish(&pair, sends[i]).error, 0);
    assert_int_equal(lh_connection_stats(pair.ends[0], &stats), 0);
    assert_int_equal(stats.bad_control, 0);
    wire.closed = false;
    connection_pair_close(&pair);
    free(data);
    free(buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_end_acknowledges_nothing_more),
        cmocka_unit_test(last_message_of_all_that_arrived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
