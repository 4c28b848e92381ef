/*
 * test_scheme_samples.c - completion times drawn, of every scheme, against the formulas.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "support/predictions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

/* Share of a mean that may come of what is too rare to be drawn in a test. */
#define RARE 1e-3

static struct model_prediction sampler;
static struct lh_prng prng;

static void of(const char *text, const struct lh_model_path *path)
{
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    if (prediction_of(path, &scheme, &sampler) != 0)
        fail_msg("%s", lh_last_error());
}

static struct lh_model_path path_of(uint64_t chunks, double loss, double burst)
{
    return (struct lh_model_path){.message_bytes = chunks * 4096,
                                  .chunk_bytes = 4096,
                                  .mtu_bytes = 1024,
                                  .bandwidth_bps = 1e9,
                                  .rtt_s = 1e-3,
                                  .loss = loss,
                                  .burst_packets = burst};
}

/* Mean of so many draws, and its standard error. */
static double mean_of(unsigned count, double *error)
{
    uint8_t *cells = calloc(1, sampler.cells + 1);
    double sum = 0;
    double squares = 0;
    for (unsigned i = 0; i < count; i++) {
        double seconds = sample_one(&sampler, &prng, cells);
        assert_true(seconds >= sampler.message.ideal_s * (1 - 1e-12));
        sum += seconds;
        squares += seconds * seconds;
    }
    free(cells);
    double mean = sum / count;
    *error = sqrt(fmax(0, squares / count - mean * mean) / count);
    return mean;
}

static double formula(const char *text, const struct lh_model_path *path)
{
    struct lh_model_scheme scheme;
    struct lh_model_times times;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    assert_int_equal(lh_model_predict(path, &scheme, &times), 0);
    return times.mean_s;
}

/* Within four standard errors, and no more than `share` apart: what the formula leaves out. */
static void check_mean(const char *text, const struct lh_model_path *path, unsigned count, double share)
{
    double error;
    double wanted = formula(text, path);
    of(text, path);
    double mean = mean_of(count, &error);
    if (fabs(mean - wanted) > 4 * error + share * wanted)
        fail_msg("%s, %llu bytes, loss %g, bursts %g: %g drawn, %g by formula, error %g", text,
                 (unsigned long long)path->message_bytes, path->loss, path->burst_packets, mean, wanted,
                 error);
}

/* Bursts that are as long as chance makes them: what draws bursts agrees with what knows none, appendix B
 * included. */
static void test_bursts_of_chance(void **state)
{
    (void)state;
    const char *texts[] = {"sr-rto",
                           "sr-nack",
                           "ec:mds,k=8,m=2,fallback=sr",
                           "ec:xor,k=8,m=4",
                           "ec:mds,k=8,m=2,spread=3",
                           "ec:xor,k=9,m=4,fallback=sr",
                           "gbn"};
    lh_prng_seed(&prng, 6);
    for (unsigned t = 0; t < sizeof texts / sizeof *texts; t++)
        for (uint64_t chunks = 1; chunks <= 200; chunks = chunks * 5 + 2) {
            struct lh_model_path path = path_of(chunks, 0.02, 0);
            double wanted = formula(texts[t], &path);
            path.burst_packets = 1 / (1 - 0.02);
            double error;
            of(texts[t], &path);
            double mean = mean_of(4000, &error);
            if (fabs(mean - wanted) > 4 * error + RARE * wanted)
                fail_msg("%s, %u chunks: %g drawn, %g by formula, error %g", texts[t], (unsigned)chunks,
                         mean, wanted, error);
        }
}

static void test_formulas(void **state)
{
    (void)state;
    const char *texts[] = {
        "ideal", "sr-rto", "sr-nack", "ec:mds", "ec:xor", "ec:mds,fallback=sr", "ec:xor,fallback=sr",
        "gbn"};
    lh_prng_seed(&prng, 7);
    for (unsigned t = 0; t < sizeof texts / sizeof *texts; t++)
        for (double loss = 1e-6; loss < 0.2; loss *= 18) {
            struct lh_model_path path = path_of(700, loss, 0);
            check_mean(texts[t], &path, 2000, RARE);
        }
}

/* With bursts the formulas of selective repeat are off by some per cent, and a submessage is taken to fail
 * without regard to others. */
static void test_bursts(void **state)
{
    (void)state;
    const char *texts[] = {"sr-rto", "ec:mds,fallback=sr", "ec:xor", "gbn"};
    lh_prng_seed(&prng, 8);
    for (unsigned t = 0; t < sizeof texts / sizeof *texts; t++)
        for (double loss = 1e-4; loss < 0.1; loss *= 10)
            for (double burst = 4; burst <= 100; burst *= 5) {
                struct lh_model_path path = path_of(2000, loss, burst);
                check_mean(texts[t], &path, 1000, strcmp(texts[t], "gbn") == 0 ? RARE : 0.04);
            }
}

/* Scratch is left as it was found: a draw does not depend on those before it. */
static void test_cells_are_left_clean(void **state)
{
    (void)state;
    struct lh_model_path path = path_of(300, 0.05, 20);
    of("ec:xor,k=8,m=4,spread=2", &path);
    assert_true(sampler.cells > 0);
    uint8_t *used = calloc(1, sampler.cells);
    uint8_t *fresh = calloc(1, sampler.cells);
    lh_prng_seed(&prng, 9);
    for (unsigned i = 0; i < 300; i++) {
        struct lh_prng same = prng;
        memset(fresh, 0, sampler.cells);
        assert_near(sample_one(&sampler, &prng, used), sample_one(&sampler, &same, fresh), 0);
    }
    free(used);
    free(fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bursts_of_chance),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_cells_are_left_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
