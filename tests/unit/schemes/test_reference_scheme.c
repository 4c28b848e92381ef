/*
 * test_reference_scheme.c - go-back-N against all that may happen to each packet.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "schemes/reference_scheme.h"
#include "support/near.h"
#include "support/predictions.h"

/* ---- test go back n -------------------------------------------------------------------------------- */

static struct go_back_n go;
static struct model_message message;

static void of(double loss, double burst, uint64_t packets)
{
    const struct lh_model_path path = {.message_bytes = packets * 4096,
                                       .chunk_bytes = 4096,
                                       .mtu_bytes = 4096,
                                       .bandwidth_bps = 1e9,
                                       .rtt_s = 1e-3,
                                       .loss = loss,
                                       .burst_packets = burst};
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse("gbn", &scheme), 0);
    assert_int_equal(message_of(&path, &scheme, &message), 0);
    go_back_n_start(&go, &message);
}

/* Packet by packet, and each length of a burst. */
static double packet_by_packet(void)
{
    const double t = message.packet_inject_s;
    const double goes_on = 1 - 1 / message.loss.burst;
    double sum = message.ideal_s;
    for (double i = 0; i < message.packets; i++) {
        double lost = i == 0 ? message.loss.packet : message.loss.enter;
        double behind = message.packets - 1 - i;
        double here = 1;
        for (double more = 0; more < behind; more++, here *= goes_on)
            sum += lost * here * (1 - goes_on) * (message.rtt_s + (2 + more) * t);
        sum += lost * here * (message.rto_s + t);
        sum += lost * message.loss.packet / (1 - message.loss.packet) * (message.rto_s + t);
    }
    return sum;
}

static void test_mean(void **state)
{
    (void)state;
    const double losses[] = {0, 1e-12, 1e-3, 0.1, 0.5};
    for (unsigned l = 0; l < 5; l++)
        for (uint64_t packets = 1; packets <= 1000; packets *= 10) {
            of(losses[l], 0, packets);
            assert_near(go_back_n_mean(&go), packet_by_packet(), 1e-12);
            of(losses[l], 30, packets);
            assert_near(go_back_n_mean(&go), packet_by_packet(), 1e-11);
        }
    of(0, 0, 7);
    assert_near(go_back_n_mean(&go), message.ideal_s, 0);
    assert_near(go_back_n_quantile(&go, 0.999), message.ideal_s, 0);
    assert_near(go_back_n_repeated(&go), 0, 0);
}

/* One packet: ideal, or so many timeouts. */
static void test_one_packet(void **state)
{
    (void)state;
    of(0.1, 0, 1);
    double timeout = message.rto_s + message.packet_inject_s;
    assert_near(go_back_n_cdf(&go, message.ideal_s), 0.9, 1e-9);
    assert_near(go_back_n_cdf(&go, message.ideal_s + timeout * 1.0001), 0.99, 1e-3);
    assert_near(go_back_n_mean(&go), message.ideal_s + timeout / 9, 1e-12);
}

/* The integral of the distribution is the mean: exactly counted, and by its moments. */
static void test_distribution_has_the_mean(void **state)
{
    (void)state;
    const double losses[] = {1e-4, 1e-3, 4e-3, 5e-2, 0.2};
    for (unsigned l = 0; l < 5; l++) {
        of(losses[l], 0, 2000);
        double step = go_back_n_mean(&go) / 3000;
        double sum = message.ideal_s;
        for (double at = message.ideal_s + step / 2; go_back_n_cdf(&go, at) < 1 - 1e-9; at += step)
            sum += (1 - go_back_n_cdf(&go, at)) * step;
        assert_near(sum, go_back_n_mean(&go), 3e-3);
    }
}

static int compare(const void *a, const void *b)
{
    const double *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

/* Each packet drawn by itself, where every third is lost and the last of them costs a timeout: a share of
 * the messages has at most as many losses as the distribution says, within what it leaves out. */
static void test_few_packets_are_near_draws(void **state)
{
    enum { DRAWS = 20000 };
    static double sampled[DRAWS];
    static const uint64_t packets[] = {2, 3, 5, 10};
    (void)state;
    for (unsigned p = 0; p < 4; p++) {
        struct model_prediction prediction = {0};
        struct lh_prng prng;
        of(0.3, 0, packets[p]);
        prediction.message = message;
        lh_prng_seed(&prng, 1);
        for (unsigned i = 0; i < DRAWS; i++)
            sampled[i] = go_back_n_entry.predictor->sample(&prediction, &prng, NULL);
        qsort(sampled, DRAWS, sizeof *sampled, compare);
        for (unsigned i = 0; i < DRAWS; i++) {
            /* Costs of one kind differ by a packet or two. */
            const double at = sampled[i] * 1.02;
            unsigned below = i + 1;
            while (below < DRAWS && sampled[below] <= at)
                below++;
            assert_true(fabs(go_back_n_cdf(&go, at) - (double)below / DRAWS) < 0.06);
            i = below - 1;
        }
    }
}

static void test_quantiles_invert(void **state)
{
    (void)state;
    const double losses[] = {1e-5, 1e-3, 5e-2, 0.3};
    const double shares[] = {0, 0.5, 0.99, 0.999};
    for (unsigned l = 0; l < 4; l++)
        for (unsigned s = 0; s < 4; s++) {
            of(losses[l], 0, 2000);
            double at = go_back_n_quantile(&go, shares[s]);
            assert_true(go_back_n_cdf(&go, at) >= shares[s]);
            assert_true(at <= message.ideal_s || go_back_n_cdf(&go, at * (1 - 1e-7)) <= shares[s]);
        }
}

/* What is in flight when a NAK comes was sent for nothing, as far as there is anything to send. */
static void test_repeated_packets(void **state)
{
    (void)state;
    of(1e-9, 0, 1000000);
    double window = message.rtt_s / message.packet_inject_s + 1;
    assert_near(go_back_n_repeated(&go), 1e-3 * window, 1e-3);
    of(1e-9, 0, 2);
    assert_near(go_back_n_repeated(&go), 3e-9, 1e-3); /* the second alone, or both */
}

static int run_go_back_n(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_one_packet),
        cmocka_unit_test(test_distribution_has_the_mean),
        cmocka_unit_test(test_few_packets_are_near_draws),
        cmocka_unit_test(test_quantiles_invert),
        cmocka_unit_test(test_repeated_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test scheme ----------------------------------------------------------------------------------- */

/* What only the model knows: no machines, and the bound of all schemes. */

static void test_only_the_model_knows_them(void **state)
{
    (void)state;
    assert_null(go_back_n_entry.shown.machines);
    assert_null(ideal_entry.shown.machines);
    assert_null(go_back_n_entry.candidates);
    assert_null(ideal_entry.candidates);
}

static void test_ideal(void **state)
{
    (void)state;
    const struct lh_model_path path = {.message_bytes = 1000000,
                                       .chunk_bytes = 1000,
                                       .mtu_bytes = 1000,
                                       .bandwidth_bps = 1e9,
                                       .rtt_s = 1e-3,
                                       .loss = 0.1};
    const struct lh_model_scheme ideal = {.kind = LH_MODEL_IDEAL}, gbn = {.kind = LH_MODEL_GBN};
    struct lh_model_times bound, times;
    assert_int_equal(lh_model_predict(&path, &ideal, &bound), 0);
    assert_near(bound.ideal_s, 9e-3, 1e-12);
    assert_near(bound.mean_s, bound.ideal_s, 0);
    assert_near(bound.p999_s, bound.ideal_s, 0);
    assert_near(bound.overhead_bytes, 0, 0);
    assert_int_equal(lh_model_predict(&path, &gbn, &times), 0);
    assert_true(times.mean_s > bound.mean_s && times.overhead_bytes > 0);
}

static int run_scheme(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_model_knows_them),
        cmocka_unit_test(test_ideal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_go_back_n() + run_scheme();
}
