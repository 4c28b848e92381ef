/*
 * test_sr_scheme.c - what is missing at a deadline, against sums chunk by chunk.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/model.h>

#include "model/loss_model.h"
#include "schemes/sr_scheme.h"
#include "support/near.h"
#include "support/predictions.h"

/* ---- test bounded missing -------------------------------------------------------------------------- */

static const struct {
    double loss;
    double overhead;
    unsigned chunks;
} cases[] = {
    {0.1, 7.25, 1},  {0.1, 7.25, 9}, {0.1, 7.25, 50},   {0.5, 1, 50},  {0.3, 2.5, 200},  {0.01, 30.25, 20},
    {0.01, 30, 300}, {0.9, 5.5, 40}, {0.2, 1.125, 100}, {0, 7.25, 50}, {0.001, 100, 64}, {0.99, 3.125, 30},
};
#define CASES      (sizeof cases / sizeof *cases)
#define CHUNKS_MAX 300

/* Chance that a chunk is missing: so many chunks started after it. */
static double missing(double loss, double overhead, double behind, double s)
{
    return pow(loss, floor((s + behind) / overhead) + 1);
}

static void test_mean_is_the_sum(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CASES; i++)
        for (double s = 0; s < 12 * cases[i].overhead; s += 0.4375) {
            double sum = 0;
            for (unsigned behind = 0; behind < cases[i].chunks; behind++)
                sum += missing(cases[i].loss, cases[i].overhead, behind, s);
            assert_near(sr_bounded_missing(cases[i].loss, cases[i].overhead, cases[i].chunks, s), sum,
                        1e-12);
        }
}

static void test_many_chunks(void **state)
{
    (void)state;
    assert_near(sr_bounded_missing(1e-12, 5e9, 1e9, 0), 1e-3, 1e-12); /* all sent once */
    assert_near(sr_bounded_missing(1e-12, 5e9, 1e9, 5e9), 1e-15, 1e-12);
    /* Half of them twice, the rest once. */
    assert_near(sr_bounded_missing(1e-3, 5e8, 1e9, 0), 5e8 * 1e-3 + 5e8 * 1e-6, 1e-12);
}

/* P(N <= most), N the number missing, chunk by chunk. */
static double reached(unsigned i, double s, unsigned maximum)
{
    double chance[CHUNKS_MAX + 1] = {1}, sum = 0;
    for (unsigned behind = 0; behind < cases[i].chunks; behind++) {
        double p = missing(cases[i].loss, cases[i].overhead, behind, s);
        for (unsigned x = behind + 1; x > 0; x--)
            chance[x] = chance[x] * (1 - p) + chance[x - 1] * p;
        chance[0] *= 1 - p;
    }
    for (unsigned x = 0; x <= maximum; x++)
        sum += chance[x];
    return sum;
}

/* What is promised is kept; and where all were sent once nothing less would do. */
static void test_quantiles_are_kept(void **state)
{
    (void)state;
    const double shares[] = {0.5, 0.99, 0.999};
    for (unsigned i = 0; i < CASES; i++)
        for (double s = 0; s < 4 * cases[i].overhead; s += cases[i].overhead / 3)
            for (unsigned share = 1; share < 3; share++) {
                double mean = sr_bounded_missing(cases[i].loss, cases[i].overhead, cases[i].chunks, s);
                double maximum = model_binomial_quantile(mean, cases[i].chunks, shares[share]);
                assert_true(maximum == floor(maximum) && maximum <= cases[i].chunks);
                assert_true(reached(i, s, (unsigned)maximum) >= shares[share] - 1e-12);
                bool once = s + cases[i].chunks - 1 < cases[i].overhead;
                assert_true(!once || maximum == 0 || reached(i, s, (unsigned)maximum - 1) < shares[share]);
            }
}

static int run_bounded_missing(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_is_the_sum),
        cmocka_unit_test(test_many_chunks),
        cmocka_unit_test(test_quantiles_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test deadline --------------------------------------------------------------------------------- */

/* Messages that end at a deadline: against draws, at the boundary, and what is refused. */

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

static int run_deadline(void)
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

/* ---- test predictor -------------------------------------------------------------------------------- */

/* Selective repeat: ideal without loss, a round trip for what is lost at the end, alpha. */

#define PREDICTOR text_predictor
static const struct model_predictor *text_predictor;

static const struct lh_model_path predictor_path = {.message_bytes = 4 << 20,
                                                    .chunk_bytes = 4096,
                                                    .mtu_bytes = 4096,
                                                    .bandwidth_bps = 1e9,
                                                    .rtt_s = 10e-3,
                                                    .loss = 0.01};
static struct model_prediction prediction;

static void of(const char *text, enum lh_model_timing timing, double loss)
{
    struct lh_model_path link = predictor_path;
    struct lh_model_scheme scheme;
    link.loss = loss;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    scheme.timing = timing;
    assert_int_equal(prediction_of(&link, &scheme, &prediction), 0);
    assert_ptr_equal(prediction.predictor, PREDICTOR);
}

/* The quantile is the first moment at which that share is complete. */
static void check_distribution(void)
{
    for (double share = 0.05; share < 1; share += 0.1) {
        double seconds = prediction.predictor->quantile(&prediction, share);
        assert_true(prediction.predictor->cdf(&prediction, seconds * (1 + 1e-7)) >= share - 1e-6);
        assert_true(prediction.predictor->cdf(&prediction, seconds * (1 - 1e-7)) <= share + 0.2);
    }
    assert_true(prediction.predictor->cdf(&prediction, prediction.message.ideal_s * 0.99) == 0);
}

static void test_without_loss(void **state)
{
    (void)state;
    for (int timing = 0; timing < 2; timing++) {
        text_predictor = &sr_nack_predictor;
        of("sr-nack", (enum lh_model_timing)timing, 0);
        assert_near(sr_nack_predictor.mean(&prediction), prediction.message.ideal_s, 1e-12);
        assert_near(sr_nack_predictor.overhead_bytes(&prediction), 0, 0);
        text_predictor = &sr_rto_predictor;
        of("sr-rto", (enum lh_model_timing)timing, 0);
        assert_near(sr_rto_predictor.quantile(&prediction, 0.999), prediction.message.ideal_s, 1e-12);
    }
}

static void test_reports_are_faster_than_timeouts(void **state)
{
    (void)state;
    text_predictor = &sr_nack_predictor;
    of("sr-nack", LH_MODEL_TIMING_LONGHAUL, 0.01);
    check_distribution();
    double by_report = sr_nack_predictor.mean(&prediction);
    double repeated = sr_nack_predictor.overhead_bytes(&prediction);
    assert_near(repeated, (4 << 20) * 0.01 / 0.99, 1e-9);
    text_predictor = &sr_rto_predictor;
    of("sr-rto", LH_MODEL_TIMING_LONGHAUL, 0.01);
    check_distribution();
    assert_true(sr_rto_predictor.mean(&prediction) > by_report);
}

static void test_alpha(void **state)
{
    (void)state;
    struct lh_model_scheme scheme = {.kind = LH_MODEL_SR_RTO};
    struct model_parameter alpha = model_parameter_at("alpha=0.5,rto=7");
    struct model_parameter other = model_parameter_at("k=2");
    char out[32];
    struct model_text text = {out, sizeof out, 0};
    int failed = 1;
    assert_false(sr_rto_take(&other, &scheme, &failed));
    assert_true(sr_rto_take(&alpha, &scheme, &failed));
    assert_int_equal(failed, 0);
    assert_near(scheme.rto_rtts, 1.5, 0);
    sr_rto_format(&scheme, &text);
    assert_string_equal(out, ",alpha=0.5");
}

static int run_predictor(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_loss),
        cmocka_unit_test(test_reports_are_faster_than_timeouts),
        cmocka_unit_test(test_alpha),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test scheme ----------------------------------------------------------------------------------- */

/* Selective repeat keeps its ids; machines and entry are one scheme. */

static void check_entry(const struct scheme_entry *entry, const struct lh_scheme *machines, unsigned id)
{
    assert_int_equal(machines->id, id); /* on the wire: for ever */
    assert_ptr_equal(entry->shown.machines, machines);
    assert_string_equal(entry->shown.name, machines->name);
    assert_string_equal(entry->shown.help, machines->help);
    assert_int_equal(entry->shown.codes, machines->coding != NULL);
}

static void test_entries(void **state)
{
    (void)state;
    check_entry(&sr_nack_entry, &sr_nack_scheme, 1);
    check_entry(&sr_rto_entry, &sr_rto_scheme, 2);
    assert_true(sr_nack_entry.planner_rank < sr_rto_entry.planner_rank);
}

/* Two round trips instead of three where that is enough; and nothing to spread. */
static void test_candidates(void **state)
{
    (void)state;
    struct lh_model_scheme out[SCHEME_CANDIDATES_MAX];
    assert_int_equal(sr_nack_entry.candidates(true, out), 0);
    assert_int_equal(sr_rto_entry.candidates(true, out), 0);
    assert_int_equal(sr_nack_entry.candidates(false, out), 1);
    assert_int_equal(sr_rto_entry.candidates(false, out), 2);
    assert_true(out[0].rto_rtts == 0 && out[1].rto_rtts == 2);
}

static int run_scheme(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_bounded_missing() + run_deadline() + run_predictor() + run_scheme();
}
