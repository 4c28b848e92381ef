/*
 * test_bbr.c - bbr on simulated bottlenecks: goodput, what it loses to its own queue, the first message.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "congestion/bbr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/bottleneck.h"

#define GBIT UINT64_C(1000000000)

struct trial {
    uint64_t rate_bps;
    lh_time rtt_ns;
    double queue_bdp;
    double loss;
};

static struct bottleneck *create(const struct trial *trial)
{
    double bdp = (double)trial->rate_bps * (double)trial->rtt_ns / 8e9;
    const struct bottleneck_path path = {.rate_bps = trial->rate_bps,
                                         .queue_bytes = (uint64_t)(trial->queue_bdp * bdp),
                                         .loss = trial->loss,
                                         .seed = 3};
    return bottleneck_create(&path);
}

/* Within 3 % of the path's rate, at most 1 % lost to our queue, which is short. */
static void test_endless(void **state)
{
    (void)state;
    const double queues[] = {1, 0.2}, losses[] = {0, 1e-3, 1e-2};
    for (uint32_t i = 0; i < 6; i++) {
        const struct trial trial = {2 * GBIT, 25 * LH_NS_PER_MS, queues[i / 3], losses[i % 3]};
        struct bottleneck *b = create(&trial);
        const struct bottleneck_flow_config config = {.controller = &bbr_congestion,
                                                      .rtt_ns = trial.rtt_ns};
        const struct bottleneck_flow *f = bottleneck_add(b, &config);
        bottleneck_run(b, 100 * trial.rtt_ns);
        double goodput = (double)f->arrived_bytes * 8e9 /
                         ((double)trial.rate_bps * (1 - trial.loss) * 100 * (double)trial.rtt_ns);
        double dropped = (double)f->queue_dropped_bytes / (double)f->sent_bytes;
        double delay = f->queue_ns_bytes / (double)f->queued_bytes / (double)trial.rtt_ns;
        printf("queue %.1f loss %g: goodput %.3f dropped %.4f delay %.3f\n", trial.queue_bdp, trial.loss,
               goodput, dropped, delay);
        assert_true(goodput > 0.97 && dropped < 0.01 && delay < 0.25);
        bottleneck_free(b);
    }
}

/* 16 MiB at 2 Gbit/s and 25 ms: the ideal is 92.1 ms. */
static void test_first_message(void **state)
{
    (void)state;
    const struct trial trial = {2 * GBIT, 25 * LH_NS_PER_MS, 1, 0};
    struct bottleneck *b = create(&trial);
    const struct bottleneck_flow_config config = {
        .controller = &bbr_congestion, .rtt_ns = trial.rtt_ns, .message_bytes = 16 << 20};
    const struct bottleneck_flow *f = bottleneck_add(b, &config);
    assert_true(bottleneck_run_messages(b, 1, LH_NS_PER_S));
    assert_true(f->times_ns[0] < 92 * LH_NS_PER_MS + 2 * trial.rtt_ns);
    assert_int_equal(f->queue_dropped_bytes, 0);
    bottleneck_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_first_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
