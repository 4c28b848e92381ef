/*
 * test_deadline.c - messages that end at a deadline: against draws, at the boundary, and what is refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/model.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

#define SAMPLES 20000

static const struct lh_model_scheme nack = {.kind = LH_MODEL_SR_NACK};

/* 2048 chunks of 64 KiB: 27.7 ms when nothing is lost. */
static struct lh_model_path link_of(double loss, double burst)
{
    return (struct lh_model_path){.message_bytes = 128u << 20,
                                  .chunk_bytes = 65536,
                                  .mtu_bytes = 4096,
                                  .bandwidth_bps = 400e9,
                                  .rtt_s = 0.025,
                                  .loss = loss,
                                  .loss_of_chunk = true,
                                  .burst_packets = burst};
}

static struct lh_model_bounded bounded_by(const struct lh_model_path *path, double deadline_s)
{
    struct lh_model_bounded bounded;
    assert_int_equal(lh_model_bounded(path, &nack, deadline_s, &bounded), 0);
    return bounded;
}

static double ideal_of(const struct lh_model_path *path)
{
    struct lh_model_times times;
    assert_int_equal(lh_model_predict(path, &nack, &times), 0);
    return times.ideal_s;
}

/* The mean of what is cut off, and how many are whole, by experiment. */
static void test_against_draws(void **state)
{
    (void)state;
    const double waits[] = {0, 0.01, 0.0251, 0.04, 0.06};
    static double seconds[SAMPLES];
    struct lh_model_path path = link_of(1e-3, 0);
    assert_int_equal(lh_model_sample(&path, &nack, 1, 2, seconds, SAMPLES), 0);
    for (unsigned i = 0; i < sizeof waits / sizeof *waits; i++) {
        double deadline = ideal_of(&path) + waits[i], sum = 0, whole = 0;
        struct lh_model_bounded bounded = bounded_by(&path, deadline);
        for (unsigned s = 0; s < SAMPLES; s++) {
            sum += fmin(seconds[s], deadline);
            whole += seconds[s] <= deadline;
        }
        assert_near(bounded.mean_s, sum / SAMPLES, 0.005);
        assert_true(fabs(bounded.whole - whole / SAMPLES) < 0.015);
        assert_true(bounded.p50_s <= bounded.p99_s && bounded.p999_s <= deadline * (1 + 1e-12));
    }
}

/* Without patience: every chunk was sent once. */
static void test_at_the_ideal_time(void **state)
{
    (void)state;
    struct lh_model_path path = link_of(1e-3, 0);
    struct lh_model_bounded bounded = bounded_by(&path, ideal_of(&path));
    assert_near(bounded.mean_s, ideal_of(&path), 1e-12);
    assert_near(bounded.missing, 1e-3, 1e-9);
    assert_near(bounded.whole, pow(1 - 1e-3, 2048), 1e-9);
    assert_near(bounded.overhead_bytes, 0, 1e-6);
    /* Poisson with mean 2.05: 99.9 % have at most 8. */
    assert_near(bounded.missing_p999, 8.0 / 2048, 1e-12);
}

/* Much later it is selective repeat. */
static void test_late_deadlines_change_nothing(void **state)
{
    (void)state;
    struct lh_model_path path = link_of(1e-2, 0);
    struct lh_model_times times;
    struct lh_model_bounded bounded = bounded_by(&path, 10);
    assert_int_equal(lh_model_predict(&path, &nack, &times), 0);
    assert_near(bounded.mean_s, times.mean_s, 1e-9);
    assert_near(bounded.p999_s, times.p999_s, 1e-9);
    assert_near(bounded.whole, 1, 1e-9);
    assert_near(bounded.overhead_bytes, times.overhead_bytes, 1e-9);
    assert_true(bounded.missing < 1e-15 && bounded.missing_p999 == 0);
}

static void test_the_earliest_deadline(void **state)
{
    (void)state;
    const double shares[] = {0, 0.99, 0.999};
    struct lh_model_path path = link_of(1e-3, 0);
    for (unsigned i = 0; i < 3; i++)
        for (double missing = 1e-2; missing > 1e-8; missing /= 3) {
            double deadline;
            assert_int_equal(lh_model_deadline(&path, &nack, missing, shares[i], &deadline), 0);
            for (unsigned early = 0; early < 2; early++) {
                double at = deadline - early * 1e-8;
                if (at < ideal_of(&path))
                    continue;
                struct lh_model_bounded bounded = bounded_by(&path, at);
                double found = i == 0   ? bounded.missing
                               : i == 1 ? bounded.missing_p99
                                        : bounded.missing_p999;
                assert_true(early ? found > missing : found <= missing);
            }
        }
}

/* In the mean bursts miss as much; how they spread over messages is not known. */
static void test_bursts(void **state)
{
    (void)state;
    struct lh_model_path single = link_of(1e-3, 0), bursts = link_of(1e-3, 64);
    double deadline = ideal_of(&single) + 0.01;
    assert_near(bounded_by(&bursts, deadline).missing, bounded_by(&single, deadline).missing, 1e-9);
    assert_true(isnan(bounded_by(&bursts, deadline).missing_p999));
    assert_true(bounded_by(&bursts, deadline).whole > bounded_by(&single, deadline).whole);
    assert_int_equal(lh_model_deadline(&bursts, &nack, 1e-4, 0, &deadline), 0);
    assert_int_equal(lh_model_deadline(&bursts, &nack, 1e-4, 0.99, &deadline), -LH_EINVAL);
}

static void test_what_cannot_be(void **state)
{
    (void)state;
    const struct lh_model_scheme code = {.kind = LH_MODEL_EC_MDS, .k = 32, .m = 8};
    struct lh_model_path path = link_of(1e-3, 0);
    struct lh_model_bounded bounded;
    double deadline = 7;
    const double wrong[] = {0, -1, 1, NAN, INFINITY};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(lh_model_deadline(&path, &nack, wrong[i], 0, &deadline), -LH_ERANGE);
    for (unsigned i = 1; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(lh_model_deadline(&path, &nack, 1e-3, wrong[i], &deadline), -LH_ERANGE);
    const double times[] = {0, 0.027, -1, NAN, INFINITY};
    for (unsigned i = 0; i < sizeof times / sizeof *times; i++)
        assert_int_equal(lh_model_bounded(&path, &nack, times[i], &bounded), -LH_ERANGE);
    assert_int_equal(lh_model_bounded(&path, &code, 1, &bounded), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "sr-nack"));
    assert_int_equal(lh_model_deadline(&path, &code, 1e-3, 0, &deadline), -LH_EINVAL);
    const struct lh_model_scheme longhaul = {.kind = LH_MODEL_SR_NACK, .timing = LH_MODEL_TIMING_LONGHAUL};
    assert_int_equal(lh_model_deadline(&path, &longhaul, 1e-3, 0, &deadline), -LH_EINVAL);
    assert_true(deadline == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_draws),
        cmocka_unit_test(test_at_the_ideal_time),
        cmocka_unit_test(test_late_deadlines_change_nothing),
        cmocka_unit_test(test_the_earliest_deadline),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
