/*
 * test_ec_missing.c - chances of a fallback (appendix B), and what is missing then.
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

#include "schemes/ec_missing.h"
#include "support/near.h"

/* ---- test missing ---------------------------------------------------------------------------------- */

static struct ec_missing missing_missing;

static void of(const char *text, double loss, double chunks)
{
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    struct model_loss independent = model_loss_of_chunks(loss, 0, 16);
    ec_missing_of(&scheme, &independent, chunks, &missing_missing);
}

static double paper(const char *text, double loss)
{
    struct lh_model_scheme scheme;
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    return ec_missing_paper(&scheme, loss);
}

/* Appendix B with exact arithmetic elsewhere (fractions of whole numbers). */
static void test_appendix_b(void **state)
{
    (void)state;
    assert_near(paper("ec:mds", 1e-2), 2.066874027208628e-10, 1e-10);
    assert_near(paper("ec:mds", 1e-3), 2.659130504086743e-19, 1e-10);
    assert_near(paper("ec:xor", 1e-2), 0.007814350055664009, 1e-12);
    assert_near(paper("ec:xor", 1e-4), 7.998397321117164e-07, 1e-10);
    assert_near(paper("ec:xor", 1e-12), 8 * 10 * 1e-24, 1e-9);
    assert_near(paper("ec:mds,k=2,m=1", 0.5), 0.5, 1e-14);
    assert_near(paper("ec:mds,k=200,m=55", 0.99), 1, 1e-12);
    assert_near(paper("ec:xor,k=254,m=1", 1e-3), 0.02740608992267805,
                1e-12); /* one class, as long as they get */
    assert_near(paper("ec:xor", 0), 0, 0);
}

/* Whole submessages are the paper's. */
static void test_message_of_whole_submessages(void **state)
{
    (void)state;
    of("ec:xor", 1e-2, 2048);
    assert_near(missing_missing.submessages, 64, 0);
    assert_near(missing_missing.parity_chunks, 512, 0);
    assert_near(-expm1(missing_missing.log_none), 0.3947312432097598, 1e-12);
    assert_near(missing_missing.kind[1].count, 0, 0);
    of("ec:mds", 1e-2, 2048);
    assert_near(-expm1(missing_missing.log_none), 1.322799368801234e-08, 1e-9);
}

/* Submessages of a message that is cut as the protocol cuts it. */
static void test_shorter_messages(void **state)
{
    (void)state;
    of("ec:mds", 0.1, 1); /* three copies */
    assert_near(missing_missing.parity_chunks, 2, 0);
    assert_near(-expm1(missing_missing.log_none), 1e-3, 1e-12);
    of("ec:xor", 0.1, 1);
    assert_near(-expm1(missing_missing.log_none), 1e-3, 1e-12);
    of("ec:mds", 0.1, 2); /* one more parity chunk than data */
    assert_near(missing_missing.parity_chunks, 3, 0);
    assert_near(-expm1(missing_missing.log_none), 5 * 0.9 * 1e-4 + 1e-5, 1e-12);
    of("ec:xor", 0.1, 2); /* two pairs */
    assert_near(missing_missing.parity_chunks, 2, 0);
    assert_near(-expm1(missing_missing.log_none), 1 - 0.99 * 0.99, 1e-12);
    of("ec:mds", 1e-3, 33); /* 17 and 16 */
    assert_near(missing_missing.submessages, 2, 0);
    assert_int_equal(missing_missing.kind[0].size, 17);
    assert_int_equal(missing_missing.kind[1].size, 16);
    assert_near(missing_missing.kind[0].count + missing_missing.kind[1].count, 2, 0);
    assert_near(missing_missing.parity_chunks, 16, 0);
    of("ec:mds,k=2,m=5", 1e-3, 4); /* full ones have all that was asked for, */
    assert_near(missing_missing.parity_chunks, 10, 0);
    of("ec:mds,k=2,m=5", 1e-3, 3); /* and so have all of a message that has a full one */
    assert_near(missing_missing.parity_chunks, 10, 0);
    of("ec:xor", 1e-3, 9);
    assert_near(missing_missing.parity_chunks, 8, 0);
}

/* E[z^N] against the distribution of one submessage, by all ways to lose its chunks. */
static void test_incremental_by_all_ways(void **state)
{
    (void)state;
    const double p = 0.3;
    double chance_mds[5] = {0};
    double chance_xor[5] = {0};
    for (unsigned lost = 0; lost < 1u << 6; lost++) { /* 4 data, 2 parity */
        double chance = 1;
        unsigned class[2] = {0, 0};
        for (unsigned c = 0; c < 6; c++) {
            chance *= lost >> c & 1 ? p : 1 - p;
            class[c % 2] += lost >> c & 1; /* data j mod 2, and parity 4, 5 */
        }
        unsigned all = class[0] + class[1];
        chance_mds[all > 2 ? all - 2 : 0] += chance;
        chance_xor[(class[0] > 1 ? class[0] - 1 : 0) + (class[1] > 1 ? class[1] - 1 : 0)] += chance;
    }
    for (unsigned code = 0; code < 2; code++) {
        const double *chance = code ? chance_xor : chance_mds;
        of(code ? "ec:xor,k=4,m=2" : "ec:mds,k=4,m=2", p, 4);
        for (double w = 0.125; w <= 1; w += 0.125) {
            double z = 1 - w;
            double sum = 0;
            double slope = 0;
            for (unsigned x = 0; x <= 4; x++) {
                sum += chance[x] * pow(z, x);
                slope += x > 0 ? x * chance[x] * pow(z, x - 1.0) : 0;
            }
            assert_near(exp(ec_missing_log(&missing_missing, w)), sum, 1e-12);
            assert_near(ec_missing_slope(&missing_missing, w), slope, 1e-12);
        }
    }
}

static void test_moments(void **state)
{
    (void)state;
    of("ec:mds,fallback=sr", 0.1, 2048);
    double fails = missing_missing.kind[0].above[0];
    assert_near(missing_missing.mean, 64 * fails * 32, 1e-12);
    assert_near(missing_missing.variance, 64 * 32 * 32 * fails * (1 - fails), 1e-9);
    assert_near(ec_missing_slope(&missing_missing, 0), missing_missing.mean, 1e-12);
    double repeated = missing_missing.mean;
    of("ec:mds,fallback=ir", 0.1, 2048);
    assert_near(missing_missing.kind[0].above[0], fails, 1e-14);
    assert_true(missing_missing.mean < repeated / 10);
}

/* Interleaving puts the chunks of a burst into different submessages. */
static void test_bursts_and_spread(void **state)
{
    (void)state;
    struct lh_model_scheme scheme;
    struct model_loss loss = model_loss_of_packets(1e-3, 400, 16);
    double chance[3];
    const char *texts[] = {"ec:mds,spread=8", "ec:mds,spread=64", "ec:mds"};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(lh_model_scheme_parse(texts[i], &scheme), 0);
        ec_missing_of(&scheme, &loss, 32 * 1024, &missing_missing);
        chance[i] = missing_missing.kind[0].above[0];
    }
    assert_true(chance[0] > 10 * chance[1] && chance[1] > 10 * chance[2]);
}

static int run_missing(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appendix_b),       cmocka_unit_test(test_message_of_whole_submessages),
        cmocka_unit_test(test_shorter_messages), cmocka_unit_test(test_incremental_by_all_ways),
        cmocka_unit_test(test_moments),          cmocka_unit_test(test_bursts_and_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test missing sampler -------------------------------------------------------------------------- */

/* What is missing, drawn, against its mean. */

static struct ec_missing missing;
static struct lh_model_scheme missing_sampler_scheme;
static struct lh_prng prng;

static void missing_sampler_of(const char *text, const struct model_loss *loss, double chunks)
{
    assert_int_equal(lh_model_scheme_parse(text, &missing_sampler_scheme), 0);
    ec_missing_of(&missing_sampler_scheme, loss, chunks, &missing);
    lh_prng_seed(&prng, 11);
}

static double mean_of(const struct model_loss *loss, unsigned count, double *error)
{
    uint8_t *cells = calloc(1, ec_missing_cells(&missing, &missing_sampler_scheme));
    double sum = 0, squares = 0;
    assert_non_null(cells);
    for (unsigned i = 0; i < count; i++) {
        double chunks = ec_missing_sample_one(&missing, &missing_sampler_scheme, loss, &prng, cells).chunks;
        sum += chunks;
        squares += chunks * chunks;
    }
    free(cells);
    *error = sqrt(fmax(0, squares / count - sum / count * sum / count) / count);
    return sum / count;
}

/* Losses one by one, and bursts that are as long as chance makes them: the mean is that of the formula. */
static void test_mean(void **state)
{
    (void)state;
    static const char *const texts[] = {"ec:mds,k=8,m=2", "ec:mds,k=8,m=2,spread=3", "ec:xor,k=8,m=4",
                                        "ec:mds,k=8,m=2,fallback=sr", "ec:xor,k=9,m=4,fallback=sr"};
    for (unsigned t = 0; t < sizeof texts / sizeof *texts; t++)
        for (int bursty = 0; bursty < 2; bursty++) {
            struct model_loss loss = model_loss_of_packets(0.1, bursty ? 1 / 0.9 : 0, 1);
            double error;
            missing_sampler_of(texts[t], &loss, 200);
            double mean = mean_of(&loss, 4000, &error);
            if (fabs(mean - missing.mean) > 4 * error)
                fail_msg("%s: %g drawn, %g by formula, error %g", texts[t], mean, missing.mean, error);
        }
}

static void test_nothing_is_lost(void **state)
{
    (void)state;
    struct model_loss none = model_loss_of_packets(0, 0, 1);
    double error;
    missing_sampler_of("ec:mds", &none, 1000);
    assert_true(mean_of(&none, 10, &error) == 0);
    assert_true(ec_rounds_sample(&none, 1000, &prng) == 1);
}

/* One chunk is sent until it comes: 1 / (1 - p) rounds in the mean. */
static void test_rounds(void **state)
{
    (void)state;
    struct model_loss loss = model_loss_of_packets(0.25, 1 / 0.75, 1);
    double sum = 0;
    lh_prng_seed(&prng, 12);
    for (unsigned i = 0; i < 10000; i++)
        sum += ec_rounds_sample(&loss, 1, &prng);
    assert_true(fabs(sum / 10000 - 1 / 0.75) < 4 * sqrt(0.25 / 0.75 / 0.75 / 10000));
}

static int run_missing_sampler(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_missing() + run_missing_sampler();
}
