/*
 * test_model_sampler.c - completion times drawn against chunk by chunk, and against the formulas.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/sampler.h"

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

static struct model_sampler sampler;
static struct lh_prng prng;

static void of(const char *text, const struct lh_model_path *path)
{
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    if (model_sampler_start(&sampler, path, &scheme) != 0)
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
        double seconds = model_sampler_draw(&sampler, &prng, cells);
        assert_true(seconds >= sampler.terms.ideal_s * (1 - 1e-12));
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

/* Each chunk by itself, each transmission drawn. */
static double chunk_by_chunk(const struct model_repeat *repeat, double loss, unsigned chunks)
{
    double latest = 0;
    for (unsigned behind = 0; behind < chunks; behind++) {
        double losses = 0;
        while (lh_prng_chance(&prng, loss))
            losses++;
        if (losses > 0)
            latest = fmax(latest, losses * repeat->overhead - behind);
    }
    return latest;
}

/* Short and long beside the timeout. */
static void test_repeat_is_chunk_by_chunk(void **state)
{
    (void)state;
    static struct model_repeat repeat;
    const double overheads[] = {1, 3.3, 17.2, 1000.5};
    const double losses[] = {0.02, 0.3, 0.8};
    lh_prng_seed(&prng, 5);
    for (unsigned o = 0; o < 4; o++)
        for (unsigned l = 0; l < 3; l++) {
            struct model_loss loss = model_loss_of_chunks(losses[l], 0, 1);
            double sums[2] = {0, 0};
            double squares = 0;
            model_repeat_start(&repeat, &loss, overheads[o], 60);
            for (unsigned i = 0; i < 5000; i++) {
                double drawn = model_draw_repeat(&repeat, log(losses[l]), 60, &prng);
                double each = chunk_by_chunk(&repeat, losses[l], 60);
                sums[0] += drawn;
                sums[1] += each;
                squares += drawn * drawn + each * each;
            }
            double allowed = 5 * sqrt(squares) / 5000;
            assert_true(fabs(sums[0] - sums[1]) / 5000 <= allowed);
            assert_true(fabs(sums[0] / 5000 - model_repeat_excess(&repeat, 60)) <= allowed);
        }
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

/* Much is lost, and a timeout is a few chunks: each chunk that is counted once too often shows. */
static void test_dense_loss(void **state)
{
    (void)state;
    static struct model_repeat repeat;
    lh_prng_seed(&prng, 10);
    for (int bursty = 0; bursty < 2; bursty++) {
        struct model_loss loss = model_loss_of_packets(0.4, bursty ? 1 / 0.6 : 0, 1);
        const unsigned count = bursty ? 40000 : 400000;
        double sum = 0;
        double squares = 0;
        loss.bursty = false;
        model_repeat_start(&repeat, &loss, 2.5, 30);
        double wanted = model_repeat_excess(&repeat, 30);
        for (unsigned i = 0; i < count; i++) {
            double drawn = bursty ? model_draw_repeat_bursts(&repeat, &loss, 30, &prng)
                                  : model_draw_repeat(&repeat, log(0.4), 30, &prng);
            sum += drawn;
            squares += drawn * drawn;
        }
        double mean = sum / count;
        assert_true(fabs(mean - wanted) <= 4 * sqrt((squares / count - mean * mean) / count));
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
        assert_near(model_sampler_draw(&sampler, &prng, used), model_sampler_draw(&sampler, &same, fresh),
                    0);
    }
    free(used);
    free(fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeat_is_chunk_by_chunk),
        cmocka_unit_test(test_bursts_of_chance),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_dense_loss),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_cells_are_left_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
