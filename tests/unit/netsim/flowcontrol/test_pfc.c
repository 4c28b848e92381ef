/*
 * test_pfc.c - when an ingress port pauses and resumes, by a fixed threshold and by a share of what is
 * free.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/flowcontrol.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_fixed_threshold(void **state)
{
    (void)state;
    const struct lh_pfc_thresholds at = {.xoff_bytes = 1000, .xon_bytes = 600};
    uint8_t stopped = 0;
    assert_int_equal(lh_pfc_update(&at, 1000, 0, 3, &stopped), LH_FLOW_NONE);
    assert_int_equal(lh_pfc_update(&at, 1001, 0, 3, &stopped), LH_FLOW_PAUSE);
    assert_int_equal(stopped, 1 << 3);
    assert_int_equal(lh_pfc_update(&at, 5000, 0, 3, &stopped), LH_FLOW_NONE);
    assert_int_equal(lh_pfc_update(&at, 601, 0, 3, &stopped), LH_FLOW_NONE);
    assert_int_equal(lh_pfc_update(&at, 1001, 0, 4, &stopped), LH_FLOW_PAUSE); /* of its own */
    assert_int_equal(lh_pfc_update(&at, 600, 0, 3, &stopped), LH_FLOW_RESUME);
    assert_int_equal(stopped, 1 << 4);
    assert_int_equal(lh_pfc_update(&at, 600, 0, 3, &stopped), LH_FLOW_NONE);
}

static void without_hysteresis_each_crossing_tells(void **state)
{
    (void)state;
    const struct lh_pfc_thresholds at = {.xoff_bytes = 1000, .xon_bytes = 1000};
    uint8_t stopped = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lh_pfc_update(&at, 1001, 0, 0, &stopped), LH_FLOW_PAUSE);
        assert_int_equal(lh_pfc_update(&at, 1000, 0, 0, &stopped), LH_FLOW_RESUME);
    }
}

static void a_share_of_what_is_free(void **state)
{
    (void)state;
    const struct lh_pfc_thresholds at = {.xoff_bytes = 1000, .xon_bytes = 800, .alpha = 0.25};
    uint8_t stopped = 0;
    assert_int_equal(lh_pfc_threshold(&at, 0), 1000);
    assert_int_equal(lh_pfc_threshold(&at, 4000), 1000);
    assert_int_equal(lh_pfc_threshold(&at, 40000), 10000);
    assert_int_equal(lh_pfc_update(&at, 9000, 40000, 0, &stopped), LH_FLOW_NONE);
    /* Others took the rest: what it holds is too much now. */
    assert_int_equal(lh_pfc_update(&at, 9000, 20000, 0, &stopped), LH_FLOW_PAUSE);
    assert_int_equal(lh_pfc_update(&at, 4801, 20000, 0, &stopped), LH_FLOW_NONE);
    assert_int_equal(lh_pfc_update(&at, 4800, 20000, 0, &stopped), LH_FLOW_RESUME);
    assert_true(lh_pfc_threshold(&(struct lh_pfc_thresholds){.alpha = 65536}, UINT64_MAX) > (uint64_t)1
                                                                                                << 62);
}

static void thresholds_that_cannot_work_are_refused(void **state)
{
    (void)state;
    struct lh_pfc_thresholds at = {.xoff_bytes = 1000, .xon_bytes = 1000, .alpha = 4};
    assert_int_equal(lh_pfc_check(&at), 0);
    at.xon_bytes = 1001;
    assert_int_equal(lh_pfc_check(&at), -LH_EINVAL);
    assert_non_null(strstr(lh_last_error(), "1001"));
    at.xon_bytes = 0;
    static const double bad[] = {-1, 65537, (double)NAN};
    for (size_t i = 0; i < 3; i++) {
        at.alpha = bad[i];
        assert_int_equal(lh_pfc_check(&at), -LH_ERANGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_threshold),
        cmocka_unit_test(without_hysteresis_each_crossing_tells),
        cmocka_unit_test(a_share_of_what_is_free),
        cmocka_unit_test(thresholds_that_cannot_work_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
