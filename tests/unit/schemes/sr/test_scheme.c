/*
 * test_scheme.c - selective repeat keeps its ids; machines and entry are one scheme.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/sr/scheme.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_entry(const struct scheme_entry *entry, const struct lh_scheme *machines, unsigned id)
{
    assert_int_equal(machines->id, id); /* on the wire: for ever */
    assert_ptr_equal(entry->shown.machines, machines);
    assert_string_equal(entry->shown.name, machines->name);
    assert_string_equal(entry->shown.help, machines->help);
    assert_int_equal(entry->shown.codes, machines->coding != NULL);
}

static void test_entries(void **state)
{
    (void)state;
    check_entry(&sr_nack_entry, &sr_nack_scheme, 1);
    check_entry(&sr_rto_entry, &sr_rto_scheme, 2);
    assert_true(sr_nack_entry.planner_rank < sr_rto_entry.planner_rank);
}

/* Two round trips instead of three where that is enough; and nothing to spread. */
static void test_candidates(void **state)
{
    (void)state;
    struct lh_model_scheme out[SCHEME_CANDIDATES_MAX];
    assert_int_equal(sr_nack_entry.candidates(true, out), 0);
    assert_int_equal(sr_rto_entry.candidates(true, out), 0);
    assert_int_equal(sr_nack_entry.candidates(false, out), 1);
    assert_int_equal(sr_rto_entry.candidates(false, out), 2);
    assert_true(out[0].rto_rtts == 0 && out[1].rto_rtts == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
