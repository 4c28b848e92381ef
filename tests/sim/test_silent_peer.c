/*
 * test_silent_peer.c - what a peer gets that does not answer: fewer and fewer packets, whatever the round
 * trip; and a path that comes back goes on soon.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/connection_pair.h"

#define BYTES    100000u /* some segments */
#define MESSAGES 4u
/* In spans in which the silence grows eightfold: 8 segments, 18 probes of 1/8 of it for each, as many
 * announcements of lengths between them, and what both ends send beside that. */
#define PACKETS_MAX 400u
#define REPAIR_NS                                                                                          \
    (10 * LH_NS_PER_MS) /* after which a flight without reports counts as lost (rate_control.h) */

struct load {
    struct connection_pair pair;
    uint8_t *data;
    uint8_t *room;
    struct lh_request *requests[2 * MESSAGES];
};

static void begin(struct load *load, const char *link, const char *reliability, size_t bytes)
{
    struct lh_attr attr;
    connection_pair_attr(&attr);
    attr.reliability = reliability;
    connection_pair_open(&load->pair, "silent", 1, link, &attr, NULL);
    connection_pair_transfer(&load->pair, 0, BYTES, BYTES);
    load->data = connection_pair_bytes(bytes, 1);
    load->room = malloc(bytes);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        load->requests[i] = connection_pair_send(&load->pair, 0, load->data, bytes);
        load->requests[MESSAGES + i] = connection_pair_recv(&load->pair, 1, load->room, bytes);
    }
    if (bytes == BYTES) /* some chunks have arrived, and others have not left */
        connection_pair_run(&load->pair, 150 * LH_NS_PER_US);
}

static void end(struct load *load)
{
    for (uint32_t i = 0; i < 2 * MESSAGES; i++)
        lh_request_free(load->requests[i]);
    connection_pair_close(&load->pair);
    free(load->data);
    free(load->room);
}

static void cut(const struct load *load, bool is_cut)
{
    sim_world_cut(load->pair.world, 0, 1, is_cut);
    sim_world_cut(load->pair.world, 1, 0, is_cut);
}

static uint64_t control_sent(const struct load *load)
{
    struct lh_stats stats[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(lh_connection_stats(load->pair.ends[i], &stats[i]), 0);
    return stats[0].tx_control + stats[1].tx_control;
}

static const char *const schemes[] = {"sr-nack", "sr-rto", "ec:mds"};
static const size_t sizes[] = {BYTES, 64};

/* About as many in each span that is eight times as long as the one before. */
static void test_a_peer_that_is_gone(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct load load;
        begin(&load, "rtt=20us,rate=10Gbit", schemes[i % 3], sizes[i / 3]);
        cut(&load, true);
        connection_pair_run(&load.pair, LH_NS_PER_S / 8);
        uint64_t before = control_sent(&load);
        connection_pair_run(&load.pair, 7 * LH_NS_PER_S / 8);
        uint64_t first = control_sent(&load) - before;
        connection_pair_run(&load.pair, 8 * LH_NS_PER_S);
        uint64_t rest = control_sent(&load) - before - first;
        assert_in_range(first, 1, PACKETS_MAX);
        assert_in_range(rest, 1, PACKETS_MAX);
        end(&load);
    }
}

/* Within 1/8 of the time for which it was down, and what the messages take. */
static void test_a_path_that_comes_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 6; i++)
        for (lh_time span = LH_NS_PER_MS; span < 8 * LH_NS_PER_S; span *= 8) {
            struct load load;
            struct lh_result result;
            begin(&load, "rtt=20us,rate=10Gbit", schemes[i % 3], sizes[i / 3]);
            cut(&load, true);
            connection_pair_run(&load.pair, span);
            cut(&load, false);
            lh_time healed = connection_pair_now(&load.pair);
            for (uint32_t r = 0; r < 2 * MESSAGES; r++)
                assert_true(
                    connection_pair_wait(&load.pair, load.requests[r], span * 8 + LH_NS_PER_S, &result));
            assert_in_range(connection_pair_now(&load.pair) - healed, 1, span / 8 + REPAIR_NS);
            end(&load);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_peer_that_is_gone),
        cmocka_unit_test(test_a_path_that_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
