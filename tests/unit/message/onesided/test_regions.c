/*
 * test_regions.c - keys, and what they permit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "message/onesided/regions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <longhaul/onesided.h>

#define RANDOM UINT64_C(0x9E3779B97F4A7C15)

static void a_key_finds_its_region_alone(void **state)
{
    (void)state;
    static struct regions regions;
    static struct region all[REGIONS_MAX + 1];
    for (uint32_t i = 0; i < REGIONS_MAX; i++)
        assert_true(regions_add(&regions, &all[i], RANDOM * (i / 2 + 1))); /* the same number twice */
    assert_false(regions_add(&regions, &all[REGIONS_MAX], RANDOM));
    for (uint32_t i = 0; i < REGIONS_MAX; i++) {
        assert_ptr_equal(regions_find(&regions, all[i].key), &all[i]);
        for (int bit = 0; bit < 64; bit++)
            assert_ptr_not_equal(regions_find(&regions, all[i].key ^ UINT64_C(1) << bit), &all[i]);
    }
    regions_remove(&regions, &all[7]);
    assert_null(regions_find(&regions, all[7].key));
    assert_true(regions_add(&regions, &all[REGIONS_MAX], RANDOM * 99991)); /* in its place */
    assert_null(regions_find(&regions, all[7].key));
    assert_ptr_equal(regions_find(&regions, all[REGIONS_MAX].key), &all[REGIONS_MAX]);
}

static void what_is_permitted(void **state)
{
    (void)state;
    const struct region region = {.bytes = 100, .access = LH_ACCESS_WRITE};
    const struct {
        uint64_t offset;
        uint64_t bytes;
        int error;
    } cases[] = {
        {0, 100, 0},
        {100, 0, 0},
        {99, 1, 0},
        {0, 101, LH_ERANGE},
        {101, 0, LH_ERANGE},
        {99, 2, LH_ERANGE},
        {1, UINT64_MAX, LH_ERANGE},
        {UINT64_MAX, 2, LH_ERANGE},
        {UINT64_MAX - 1, UINT64_MAX, LH_ERANGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(region_check(&region, LH_ACCESS_WRITE, cases[i].offset, cases[i].bytes),
                         cases[i].error);
    assert_int_equal(region_check(&region, LH_ACCESS_READ, 0, 1), LH_EKEY);
    assert_int_equal(region_check(NULL, LH_ACCESS_WRITE, 0, 0), LH_EKEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_finds_its_region_alone),
        cmocka_unit_test(what_is_permitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
