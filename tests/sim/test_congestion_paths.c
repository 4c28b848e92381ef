/*
 * test_congestion_paths.c - bbr on random paths: none of them makes it collapse.
 *
 * 10 Mbit/s to 400 Gbit/s, 0.1 to 300 ms, at most 256 MiB of bandwidth-delay product, queues of 0.1 to 4 of
 * it (and at least eight packets), loss up to 1 %, single or in bursts. A path is numbered by its seed, which
 * is printed when it fails.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>

#include <cmocka.h>

#include "congestion/controllers.h"
#include "support/bottleneck.h"

#define PATHS   1000
#define BDP_MAX (256 * 1048576.0)

struct drawn {
    struct bottleneck_path path;
    struct bottleneck_flow_config flow;
    lh_time unit_ns; /* a round trip, and the time of some packets: on slow short paths that is longer */
};

static double draw_between(struct lh_prng *prng, double minimum, double maximum)
{
    return minimum * pow(maximum / minimum, lh_prng_double(prng));
}

static struct drawn draw(uint64_t seed)
{
    static const uint32_t mtus[] = {1024, 1400, 4096};
    struct lh_prng prng;
    lh_prng_seed(&prng, seed);
    double rate, rtt_s;
    do { /* most are within the bound */
        rate = draw_between(&prng, 1e7, 4e11);
        rtt_s = draw_between(&prng, 1e-4, 0.3);
    } while (rate * rtt_s / 8 > BDP_MAX);
    uint32_t mtu = mtus[lh_prng_below(&prng, 3)];
    double queue = fmax(draw_between(&prng, 0.1, 4) * rate * rtt_s / 8, 8.0 * mtu);
    lh_time rtt_ns = (lh_time)(rtt_s * 1e9);
    return (struct drawn){
        .path = {.rate_bps = (uint64_t)rate,
                 .queue_bytes = (uint64_t)queue,
                 .loss = lh_prng_below(&prng, 4) == 0 ? 0 : draw_between(&prng, 1e-5, 1e-2),
                 .loss_burst = lh_prng_below(&prng, 3) == 0 ? 1 + (uint32_t)lh_prng_below(&prng, 8) : 1,
                 .seed = seed},
        /* Coarser than real reports and bursts on long paths, for the sake of this test's time. */
        .flow = {.controller = &bbr_congestion,
                 .rtt_ns = rtt_ns,
                 .mtu_bytes = mtu,
                 .report_ns = (lh_time)fmax(fmin((double)rtt_ns / 64, 250e3), (double)rtt_ns / 128),
                 .burst_ns = (lh_time)fmax(fmin((double)rtt_ns / 64, 50e3), (double)rtt_ns / 256)},
        .unit_ns = (lh_time)((rtt_s + 32.0 * mtu * 8 / rate) * 1e9),
    };
}

static void test_no_collapse(void **state)
{
    (void)state;
    double worst = 1;
    for (uint64_t seed = 1; seed <= PATHS; seed++) {
        struct drawn it = draw(seed);
        struct bottleneck *b = bottleneck_create(&it.path);
        const struct bottleneck_flow *f = bottleneck_add(b, &it.flow);
        bottleneck_run(b, 10 * it.unit_ns);
        uint64_t arrived = f->arrived_bytes, dropped = f->queue_dropped_bytes, sent = f->sent_bytes;
        bottleneck_run(b, 60 * it.unit_ns);
        double ideal = (double)it.path.rate_bps * (1 - it.path.loss) * 50 * (double)it.unit_ns / 8e9;
        double goodput = (double)(f->arrived_bytes - arrived) / ideal;
        double again = (double)(f->queue_dropped_bytes - dropped) / (double)(f->sent_bytes - sent + 1);
        if (goodput < 0.7 || again > 0.05)
            printf("path %llu: goodput %.3f of the ideal, %.4f dropped by the queue\n",
                   (unsigned long long)seed, goodput, again);
        assert_true(goodput >= 0.7);
        assert_true(again <= 0.05);
        worst = fmin(worst, goodput);
        bottleneck_free(b);
    }
    printf("%d paths, the worst goodput is %.3f of the ideal\n", PATHS, worst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_collapse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
