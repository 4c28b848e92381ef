/*
 * test_rate.c - DCQCN in 32 bytes: the rate of the one with all its bits, and no packet ahead of it.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "xp/rate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"

#define GBIT UINT64_C(1000000000)

static const uint64_t lines[] = {1000000, 10 * GBIT, 400 * GBIT, 4000 * GBIT};
#define LINES (sizeof lines / sizeof lines[0])

/* Notifications in bursts and alone, after silences of up to a minute; at whole units of time, since whether
 * one falls before or after a cut changes all that follows. */
static void test_as_dcqcn(void **state)
{
    (void)state;
    struct lh_prng prng;
    lh_prng_seed(&prng, 3);
    for (unsigned line = 0; line < LINES; line++) {
        struct xp_rate_config config;
        struct xp_rate rate;
        struct dcqcn reference;
        lh_time now = (lh_time)1 << 40;
        xp_rate_config_init(&config, lines[line]);
        xp_rate_start(&rate, &config, now);
        dcqcn_init(&reference, lines[line]);
        double worst = 0;
        for (int i = 0; i < 20000; i++) {
            now += 8 * lh_prng_below(&prng, (uint64_t)1 << lh_prng_below(&prng, i % 100 ? 17 : 33));
            if (lh_prng_chance(&prng, 0.5)) {
                xp_rate_on_notification(&rate, &config, now);
                dcqcn_on_cnp(&reference, &config.dcqcn, now);
            } else {
                xp_rate_on_sent(&rate, &config, 4096, now);
            }
            dcqcn_on_time(&reference, &config.dcqcn, now);
            double off = (double)xp_rate_bps(&rate, &config, now) / (double)reference.rate_bps - 1;
            worst = fmax(worst, fabs(off));
        }
        print_message("%.0f Mbit/s: at most %.2g %% off\n", (double)lines[line] / 1e6, 100 * worst);
        assert_true(worst < 0.02);
    }
}

/* Seconds of packets as fast as they may: the rate, and at no time more than a burst ahead of it. */
static void test_pace(void **state)
{
    (void)state;
    for (unsigned line = 0; line < LINES; line++) {
        struct xp_rate_config config;
        struct xp_rate rate;
        lh_time now = 12345, next, start = now;
        uint64_t sent = 0, packets = lines[line] > GBIT ? 200000 : 300;
        xp_rate_config_init(&config, lines[line]);
        xp_rate_start(&rate, &config, now);
        for (uint64_t i = 0; i < packets; i++) {
            if (!xp_rate_may_send(&rate, &config, now, &next))
                now = next;
            assert_true(xp_rate_may_send(&rate, &config, now, &next));
            sent += 4000;
            xp_rate_on_sent(&rate, &config, 4000, now);
        }
        double bps = (double)sent * 8e9 / (double)(now - start + 1);
        assert_true(bps < 1.01 * (double)lines[line] || lines[line] == 4000 * GBIT);
        assert_true(bps > 0.99 * (double)lines[line]);
    }
}

/* What has been idle, for however long, sends at once, and no burst of all that time. */
static void test_idle(void **state)
{
    (void)state;
    struct xp_rate_config config;
    struct xp_rate rate;
    lh_time next;
    xp_rate_config_init(&config, 10 * GBIT);
    for (lh_time idle = LH_NS_PER_S; idle < 100 * LH_NS_PER_S; idle += 777 * LH_NS_PER_MS) {
        lh_time now = (lh_time)1 << 33;
        xp_rate_start(&rate, &config, now);
        xp_rate_on_notification(&rate, &config, now);
        xp_rate_on_sent(&rate, &config, 4000, now);
        now += idle;
        assert_true(xp_rate_may_send(&rate, &config, now, &next) || next - now < 350 * LH_NS_PER_US);
        uint64_t burst = 0;
        while (xp_rate_may_send(&rate, &config, now, &next)) {
            xp_rate_on_sent(&rate, &config, 4000, now);
            burst += 4000;
        }
        assert_true(burst < 10 * GBIT / 8 / 4000 + 8000); /* 250 us */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_dcqcn),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
