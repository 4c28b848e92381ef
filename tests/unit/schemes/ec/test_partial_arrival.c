/*
 * test_partial_arrival.c - how much parity a message waits for, against binomials.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/ec/partial_arrival.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

static struct ec_partial_arrival partial;

static void of(const char *text, double p, double chunks)
{
    static struct ec_missing missing;
    struct lh_model_scheme scheme;
    struct model_loss loss = model_loss_of_packets(p, 0, 1);
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    ec_missing_of(&scheme, &loss, chunks, &missing);
    ec_partial_start(&partial, &scheme, &loss, chunks, &missing);
}

/* One submessage of 4 chunks: j lost of its 4 + j at most after j rows. */
static void test_one_submessage(void **state)
{
    (void)state;
    const double p = 0.1, q = 0.9;
    of("ec:mds,k=4,m=2", p, 4);
    assert_near(ec_partial_log(&partial, 0), 4 * log(q), 1e-12);
    assert_near(exp(ec_partial_log(&partial, 1)), pow(q, 5) + 5 * p * pow(q, 4), 1e-12);
    double all = pow(q, 6) + 6 * p * pow(q, 5) + 15 * p * p * pow(q, 4);
    assert_near(exp(ec_partial_log(&partial, 2)), all, 1e-12);
    assert_near(ec_partial_log(&partial, 100), ec_partial_log(&partial, 2), 0);
    double mean = 1 - pow(q, 4) + 1 - pow(q, 5) - 5 * p * pow(q, 4);
    assert_near(ec_partial_mean(&partial), mean, 1e-12);
}

/* Rows in their order: one that comes later never makes a message less complete, and the quantile is the
 * first that is enough. */
static void test_quantile(void **state)
{
    (void)state;
    static const char *const texts[] = {"ec:mds,k=8,m=3", "ec:xor,k=8,m=4", "ec:xor,k=8,m=4,spread=2"};
    for (unsigned t = 0; t < 3; t++) {
        of(texts[t], 0.05, 50);
        double all = partial.submessages * partial.rows;
        for (double parity = 1; parity <= all; parity++)
            assert_true(ec_partial_log(&partial, parity) >= ec_partial_log(&partial, parity - 1) - 1e-12);
        for (double share = 0.05; share < 1; share += 0.05) {
            double parity = ec_partial_quantile(&partial, share);
            if (isinf(parity)) {
                assert_true(ec_partial_log(&partial, all) < log(share));
                continue;
            }
            assert_true(ec_partial_log(&partial, parity) >= log(share));
            assert_true(parity == 0 || ec_partial_log(&partial, parity - 1) < log(share));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_submessage),
        cmocka_unit_test(test_quantile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
