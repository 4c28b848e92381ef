/*
 * test_sdr_many.c - many QPs of one context, of which few have work: a round asks only those.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "netsim/fabric/sim_packets.h"
#include "sdr/sdr_state.h"
#include "sdr/sdr_driver.h"

#define PAIRS 500u
#define MS    LH_NS_PER_MS

static struct sdr_context *contexts[2];
static struct sdr_qp *qps[2][PAIRS];
static struct sim_world *world;
static struct fabric_ops counting;
static const struct fabric_ops *plain;
static uint32_t polls; /* of control: one each time a QP is served */

static int counted_control_poll(struct fabric_endpoint *endpoint, struct fabric_control_arrival *arrivals,
                                uint32_t count)
{
    polls++;
    return plain->control_poll(endpoint, arrivals, count);
}

static void connect_to(struct sdr_qp *one, struct sdr_qp *other)
{
    uint8_t info[QP_INFO_BYTES_MAX];
    assert_int_equal(sdr_qp_info_get(one, info), SDR_SUCCESS);
    assert_int_equal(sdr_qp_connect(other, info), SDR_SUCCESS);
}

static void open_all(void)
{
    const struct lh_context_attr attr = {.workers = LH_SDR_NO_WORKERS};
    const struct lh_qp_attr more = {.slots = 1, .slot_bytes = 4096};
    const struct sdr_qp_attr none = {0};
    static const char *const devices[2] = {"sim:many/0", "sim:many/1"};
    const struct lh_link_spec link = {.delay_ns = MS};
    world = sim_world_create("many", 1, &link);
    assert_non_null(world);
    for (uint32_t side = 0; side < 2; side++) {
        assert_int_equal(sdr_context_open(devices[side], &attr, 10, &contexts[side]), 0);
        for (uint32_t i = 0; i < PAIRS; i++)
            assert_int_equal(lh_sdr_qp_create(contexts[side], &none, &more, &qps[side][i]), 0);
        plain = contexts[side]->fabric->ops;
        counting = *plain;
        counting.control_poll = counted_control_poll;
    }
    for (uint32_t side = 0; side < 2; side++)
        contexts[side]->fabric->ops = &counting;
    for (uint32_t i = 0; i < PAIRS; i++) {
        connect_to(qps[0][i], qps[1][i]);
        connect_to(qps[1][i], qps[0][i]);
    }
}

static void close_all(void)
{
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < PAIRS; i++)
            assert_int_equal(sdr_qp_destroy(qps[side][i]), SDR_SUCCESS);
        contexts[side]->fabric->ops = plain;
        assert_int_equal(sdr_context_destroy(contexts[side]), SDR_SUCCESS);
    }
    sim_world_destroy(world);
}

static void run(lh_time span_ns)
{
    lh_time end = sim_world_now(world) + span_ns;
    for (;;) {
        lh_time now = sim_world_now(world);
        lh_time soonest = sim_world_next_event(world);
        for (uint32_t side = 0; side < 2; side++) {
            lh_time next;
            assert_int_equal(lh_sdr_progress(contexts[side], &next), 0);
            soonest = next < soonest ? next : soonest;
        }
        if (soonest > end)
            break;
        sim_world_advance(world, soonest > now ? soonest : now);
    }
    sim_world_advance(world, end);
}

static void test_only_the_busy_are_asked(void **state)
{
    (void)state;
    lh_time next;
    open_all();
    run(10 * LH_NS_PER_S + 800 * MS); /* between two pings */
    for (uint32_t i = 0; i < 5; i++)  /* what arrived at the end */
        assert_int_equal(lh_sdr_progress(contexts[0], &next), 0);
    polls = 0;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(lh_sdr_progress(contexts[0], &next), 0);
    assert_int_equal(polls, 0);
    assert_true(next > sim_world_now(world)); /* a ping: it is not forgotten */
    /* A message: its sender is asked, and nobody else. */
    uint32_t word = 7;
    assert_int_equal(lh_sdr_message_send(qps[0][PAIRS / 2], &word, sizeof word), 0);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(lh_sdr_progress(contexts[0], &next), 0);
    assert_in_range(polls, 1, 3);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_only_the_busy_are_asked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
