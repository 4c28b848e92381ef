/*
 * test_request_rounds.c - rounds of requests: one is enough where the code has a margin, else chances fall
 * with each.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/ec/request_rounds.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

static struct ec_rounds rounds;
static struct ec_missing missing;

static void of(const char *text, double p, double chunks)
{
    struct lh_model_scheme scheme;
    struct model_loss loss = model_loss_of_packets(p, 0, 1);
    assert_int_equal(lh_model_scheme_parse(text, &scheme), 0);
    ec_missing_of(&scheme, &loss, chunks, &missing);
    ec_rounds_start(&rounds, &scheme, &loss, chunks, &missing);
}

static void test_margin(void **state)
{
    (void)state;
    of("ec:mds,k=8,m=2", 0.2, 80);
    assert_near(ec_rounds_log(&rounds, 0), missing.log_none, 0);
    assert_near(ec_rounds_log(&rounds, 1), 0, 0);
    assert_near(ec_rounds_more(&rounds), 0, 0);
    assert_near(ec_rounds_quantile(&rounds, 0.999), 1, 0);
}

/* The only chunk and a copy, then once a round: lost r + 2 times. */
static void test_copies(void **state)
{
    (void)state;
    const double p = 0.3;
    of("ec:mds,k=8,m=1", p, 1);
    for (double r = 0; r < 6; r++)
        assert_near(-expm1(ec_rounds_log(&rounds, r)), pow(p, r + 2), 1e-9);
    assert_near(ec_rounds_more(&rounds), pow(p, 3) / (1 - p), 1e-6);
}

static void test_each_round_brings_more(void **state)
{
    (void)state;
    static const char *const texts[] = {"ec:mds,k=8,m=2,fallback=sr", "ec:xor,k=8,m=2",
                                        "ec:xor,k=8,m=2,fallback=sr"};
    for (unsigned t = 0; t < 3; t++) {
        of(texts[t], 0.2, 100);
        for (double r = 1; r < 20; r++)
            assert_true(ec_rounds_log(&rounds, r) > ec_rounds_log(&rounds, r - 1));
        for (double share = 0.1; share < 1; share += 0.2) {
            double r = ec_rounds_quantile(&rounds, share);
            assert_true(ec_rounds_log(&rounds, r) >= log(share));
            assert_true(r == 0 || ec_rounds_log(&rounds, r - 1) < log(share));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_each_round_brings_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
