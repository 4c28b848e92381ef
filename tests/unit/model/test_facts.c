/*
 * test_facts.c - numbers of the paper that need no scheme.
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

/* Figure 15 at a packet loss of 10^-5: 1 - (1 - 10^-5)^N. */
static void test_chunk_loss(void **state)
{
    (void)state;
    double loss;
    assert_int_equal(lh_model_chunk_loss(1e-5, 0, 1, &loss), 0);
    assert_near(loss, 1e-5, 1e-12);
    assert_int_equal(lh_model_chunk_loss(1e-5, 1, 16, &loss), 0);
    assert_near(loss, 1.5998800055995e-4, 1e-12);
    assert_int_equal(lh_model_chunk_loss(1e-5, 0, 64, &loss), 0);
    assert_near(loss, 6.3979844164e-4, 1e-9);
    assert_int_equal(lh_model_chunk_loss(1e-5, 64, 64, &loss), 0);
    assert_true(loss > 1e-5 && loss < 3e-5);
    assert_int_equal(lh_model_chunk_loss(0, 0, 64, &loss), 0);
    assert_near(loss, 0, 0);
}

/* Section 3.3.2 says "about 100 ms" of 800 Gbit/s and messages of 16 MiB; 2^10 of them take 172 ms. */
static void test_wraparound(void **state)
{
    (void)state;
    double seconds;
    assert_int_equal(lh_model_wraparound(800e9, 16 << 20, 10, &seconds), 0);
    assert_near(seconds, 0.17179869184, 1e-12);
}

static void test_refused(void **state)
{
    (void)state;
    double value = 7;
    assert_int_equal(lh_model_chunk_loss(-0.1, 0, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_chunk_loss(1, 0, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_chunk_loss(NAN, 0, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_chunk_loss(0.1, 0, 0, &value), -LH_EINVAL);
    assert_int_equal(lh_model_chunk_loss(0.1, NAN, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_chunk_loss(0.9, 2, 1, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(0, 1, 10, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(NAN, 1, 10, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(1e9, 0, 10, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(1e9, (uint64_t)1 << 63, 10, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(1e9, 1, 0, &value), -LH_ERANGE);
    assert_int_equal(lh_model_wraparound(1e9, 1, 33, &value), -LH_ERANGE);
    assert_near(value, 7, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunk_loss),
        cmocka_unit_test(test_wraparound),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
