/* SPDX-License-Identifier: BSD-3-Clause */
#include "schemes/ec/margin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* P(fewer than `needed` of `sent` arrive), summed the other way round than the code does. */
static double too_few(uint32_t sent, uint32_t needed, double loss)
{
    double sum = 0;
    for (uint32_t come = 0; come < needed; come++) {
        double term = 1;
        for (uint32_t i = 0; i < come; i++)
            term *= (double)(sent - i) / (i + 1) * (1 - loss);
        for (uint32_t i = 0; i < sent - come; i++)
            term *= loss;
        sum += term;
    }
    return sum;
}

static void test_the_smallest_that_is_enough(void **state)
{
    (void)state;
    static const uint32_t arrived[] = {500, 800, 900, 990, 999};
    static const uint32_t lacking[] = {1, 2, 3, 5, 8, 17, 32};
    for (size_t a = 0; a < 5; a++)
        for (size_t i = 0; i < 7; i++) {
            double loss = (1000.0 - arrived[a]) / 1000;
            if (loss < 1.0 / 1024)
                loss = 1.0 / 1024;
            uint32_t margin = ec_margin(lacking[i], 1000, arrived[a]);
            assert_true(too_few(lacking[i] + margin, lacking[i], loss) <= 1.001e-6);
            assert_true(margin == 0 || too_few(lacking[i] + margin - 1, lacking[i], loss) > 0.999e-6);
        }
}

static void test_the_loss_has_limits(void **state)
{
    (void)state;
    assert_int_equal(ec_margin(1, 1000, 1000), ec_margin(1, 1024, 1023)); /* nothing seems to be lost */
    assert_int_equal(ec_margin(1, 10, 20), ec_margin(1, 1000, 1000));
    assert_int_equal(ec_margin(1, 0, 0), ec_margin(1, 1000, 1000));
    assert_int_equal(ec_margin(1, 1000, 1000), 1);
    assert_int_equal(ec_margin(4, 1000, 0), ec_margin(4, 1000, 500)); /* all is lost */
    assert_int_equal(ec_margin(1, 1000, 500), 19);                    /* 2^-20 < 1e-6 */
    assert_true(ec_margin(255, 1000, 0) <= EC_MARGIN_MAX);
}

static void test_more_for_more(void **state)
{
    (void)state;
    for (uint32_t lacking = 1; lacking < 100; lacking++)
        for (uint32_t lost = 0; lost < 500; lost += 10) {
            uint32_t margin = ec_margin(lacking, 1000, 1000 - lost);
            assert_true(margin <= ec_margin(lacking, 1000, 990 - lost));
            assert_true(margin <= ec_margin(lacking + 1, 1000, 1000 - lost));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_smallest_that_is_enough),
        cmocka_unit_test(test_the_loss_has_limits),
        cmocka_unit_test(test_more_for_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
