/*
 * test_scheme.c - the erasure codes keep their ids; machines and entry are one scheme.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "schemes/ec/scheme.h"

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
    check_entry(&ec_mds_entry, &ec_mds_scheme, 3);
    check_entry(&ec_xor_entry, &ec_xor_scheme, 4);
    assert_ptr_not_equal(ec_mds_entry.candidates, ec_xor_entry.candidates);
    assert_ptr_not_equal(ec_mds_entry.encode_rate, ec_xor_entry.encode_rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
