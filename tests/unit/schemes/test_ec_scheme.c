/*
 * test_paper_times.c - a message with parity: its mean against the mixture over all fallbacks.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/ec/paper_times.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/near.h"
#include "support/predictions.h"

static struct ec_paper_times coded;
static struct model_repeat repeat;
static struct lh_model_scheme scheme;
static struct model_message message;

static void of(const char *text, double loss, uint64_t bytes, double rtt_s)
{
    const struct lh_model_path path = {.message_bytes = bytes,
                                       .chunk_bytes = 65536,
                                       .mtu_bytes = 4096,
                                       .bandwidth_bps = 400e9,
                                       .rtt_s = rtt_s,
                                       .loss = loss,
                                       .loss_of_chunk = true};
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    assert_int_equal(message_of(&path, &scheme, &message), 0);
    ec_paper_start(&coded, &scheme, &message);
}

/* Each number of failed submessages by itself. */
static double mixture(void)
{
    double all = coded.missing.submessages;
    double fails = coded.missing.kind[0].above[0];
    double sum = coded.whole_s * exp(all * log1p(-fails));
    model_repeat_start(&repeat, &message.loss, model_message_overhead(&message), message.chunks);
    for (double f = 1; f <= all; f++) {
        double chunks = f * coded.missing.kind[0].size;
        sum += exp(model_binomial_log(all, f, fails)) *
               (coded.asked_s + (chunks + model_repeat_excess(&repeat, chunks)) * message.inject_s);
    }
    return sum;
}

static void test_mean_is_the_mixture(void **state)
{
    (void)state;
    const char *texts[] = {"ec:mds,fallback=sr", "ec:xor,fallback=sr",
                           "ec:mds,k=16,m=2,beta=2,fallback=sr"};
    const double losses[] = {1e-6, 1e-3, 1e-2, 0.1, 0.3};
    for (unsigned t = 0; t < 3; t++)
        for (unsigned l = 0; l < 5; l++) {
            of(texts[t], losses[l], 128 << 20, 25e-3);
            assert_near(ec_paper_mean(&coded), mixture(), 1e-9);
        }
}

/* A short round trip: more may be lacking than is sent within a timeout. */
static void test_mean_where_much_is_lacking(void **state)
{
    (void)state;
    const double losses[] = {1e-3, 1e-2, 0.1, 0.3};
    for (unsigned l = 0; l < 4; l++) {
        of("ec:xor,fallback=sr", losses[l], 128 << 20, 1e-4);
        assert_near(ec_paper_mean(&coded), mixture(), 1e-3);
    }
}

/* The integral of the distribution is the mean, but for the places of what is lacking. */
static void test_distribution_has_the_mean(void **state)
{
    (void)state;
    const char *texts[] = {"ec:mds,fallback=sr", "ec:xor,fallback=sr", "ec:mds", "ec:xor"};
    const double losses[] = {1e-3, 1e-2, 0.1, 0.3};
    for (unsigned t = 0; t < 4; t++)
        for (unsigned l = 0; l < 4; l++) {
            of(texts[t], losses[l], 16 << 20, 25e-3);
            double sum = coded.whole_s;
            const double step = 2e-6;
            for (double at = coded.whole_s + step / 2; ec_paper_cdf(&coded, at) < 1 - 1e-9; at += step)
                sum += (1 - ec_paper_cdf(&coded, at)) * step;
            assert_near(sum, ec_paper_mean(&coded), 1e-3);
        }
}

static void test_quantiles_invert(void **state)
{
    (void)state;
    const double shares[] = {0, 0.3, 0.5, 0.99, 0.999};
    const double losses[] = {0, 1e-3, 1e-2, 0.1, 0.5};
    for (unsigned l = 0; l < 5; l++)
        for (unsigned s = 0; s < 5; s++) {
            of(l % 2 ? "ec:xor" : "ec:xor,fallback=sr", losses[l], 128 << 20, 25e-3);
            double at = ec_paper_quantile(&coded, shares[s]);
            assert_true(ec_paper_cdf(&coded, at) >= shares[s] - 1e-9);
            assert_true(at <= coded.whole_s || ec_paper_cdf(&coded, at * (1 - 1e-8)) <= shares[s]);
        }
}

/* The printed formula at the points that the design settled: 28.4, 28.4, 28.6, 54.4 ms. */
static void test_printed_formula(void **state)
{
    (void)state;
    of("ec:mds,fallback=sr", 1e-2, 128 << 20, 25e-3);
    assert_near(ec_paper_formula(&scheme, &message), 28.355444018887e-3, 1e-9);
    const double losses[] = {1e-4, 1e-3, 1e-2};
    const double wanted[] = {28.35737720164e-3, 28.559066662435e-3, 54.441867655e-3};
    for (unsigned l = 0; l < 3; l++) {
        of("ec:xor,fallback=sr", losses[l], 128 << 20, 25e-3);
        assert_near(ec_paper_formula(&scheme, &message), wanted[l], 1e-9);
        double given = ec_paper_formula(&scheme, &message);
        of("ec:xor,fallback=ir", losses[l], 128 << 20, 25e-3); /* it knows selective repeat only */
        assert_near(ec_paper_formula(&scheme, &message), given, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_is_the_mixture),       cmocka_unit_test(test_mean_where_much_is_lacking),
        cmocka_unit_test(test_distribution_has_the_mean), cmocka_unit_test(test_quantiles_invert),
        cmocka_unit_test(test_printed_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
