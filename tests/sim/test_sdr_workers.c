/*
 * test_sdr_workers.c - what several workers of a QP tell each other, over a simulated network.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sdr/sdr_state.h"
#include "sdr/sdr_driver.h"
#include "support/sdr_pair.h"

#define MTU  SDR_PAIR_MTU
#define SLOT (256u * 1024)
#define MS   LH_NS_PER_MS

/* A fabric that reads payload later than it takes the packets, like a NIC. */
static struct {
    const struct fabric_ops *plain;
    bool holds;
    uint64_t taken[2];
} late;

static int post_late(struct fabric_endpoint *endpoint, uint32_t channel, const struct fabric_write *writes,
                     uint32_t count)
{
    int taken = late.plain->post_writes(endpoint, channel, writes, count);
    late.taken[channel] += taken > 0 ? (uint64_t)taken : 0;
    return taken;
}

static uint64_t released_late(struct fabric_endpoint *endpoint, uint32_t channel)
{
    (void)endpoint;
    return late.holds ? 0 : late.taken[channel];
}

static lh_time count_step(void *steps, lh_time now)
{
    (void)now;
    (*(uint32_t *)steps)++;
    return LH_TIME_NEVER;
}

/* Two rounds of a worker: in the first something may be left that marked it before. */
static void run_worker(struct sdr_pair *pair, uint32_t worker)
{
    bool moved;
    lh_time next;
    for (uint32_t turn = 0; turn < 2; turn++)
        sdr_context_round(pair->ends[SDR_PAIR_TX].context, worker, 2, &moved, &next);
}

/* The layer above may wait for places in the queue, and for the end of a send: with a controller it is told
 * when the second worker makes some free, not only when that sends. */
static void test_the_driver_is_told_what_became_free(void **state)
{
    (void)state;
    const struct sdr_pair_options options = {
        .seed = 1, .congestion = "bbr", .channels = 2, .link.delay_ns = 5 * MS};
    struct sdr_pair pair;
    sdr_pair_open(&pair, &options);
    sdr_pair_run(&pair, 50 * MS); /* hello, and the first round trip */
    struct sdr_context *sender = pair.ends[SDR_PAIR_TX].context;
    struct sdr_recv_handle *recv;
    struct sdr_send_handle *send;
    uint32_t steps = 0;
    int done = 0;
    assert_int_equal(sdr_pair_recv(&pair, 0, SLOT, &recv), SDR_SUCCESS);
    sdr_pair_run(&pair, 20 * MS);
    late.plain = sender->fabric->ops;
    late.holds = true;
    struct fabric_ops ops = *late.plain;
    ops.post_writes = post_late;
    ops.released = released_late;
    sender->fabric->ops = &ops;
    assert_int_equal(sdr_pair_send(&pair, 0, SLOT, 0, &send), SDR_SUCCESS);
    assert_int_equal(sdr_qp_driver_set(pair.ends[SDR_PAIR_TX].qp, count_step, &steps), 0);
    for (uint32_t turn = 0; turn < 1000 && late.taken[0] + late.taken[1] < SLOT / MTU; turn++) {
        lh_time next;
        run_worker(&pair, turn % 2);
        assert_int_equal(lh_sdr_progress(pair.ends[SDR_PAIR_RX].context, &next), 0);
        sim_world_advance(pair.world, sim_world_now(pair.world) + MS);
    }
    assert_true(late.taken[1] > 0 && late.taken[0] + late.taken[1] == SLOT / MTU);
    sdr_send_poll(send, &done, NULL);
    assert_false(done);
    late.holds = false;
    sdr_qp_user_window(pair.ends[SDR_PAIR_TX].qp, true); /* as a fabric that is polled, each has a round */
    run_worker(&pair, 0);
    uint32_t before = steps;
    run_worker(&pair, 0);
    assert_int_equal(steps, before);
    run_worker(&pair, 1);
    run_worker(&pair, 0);
    assert_true(steps > before);
    sdr_send_poll(send, &done, NULL);
    assert_true(done);
    sdr_qp_driver_set(pair.ends[SDR_PAIR_TX].qp, NULL, NULL);
    sender->fabric->ops = late.plain;
    sdr_pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_driver_is_told_what_became_free)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
