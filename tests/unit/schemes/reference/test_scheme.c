/*
 * test_scheme.c - what only the model knows: no machines, and the bound of all schemes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/reference/scheme.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/near.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_model_knows_them),
        cmocka_unit_test(test_ideal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
