/*
 * test_known_paths.c - what connections of an engine measured of paths: noted, taken by one at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "history/known_paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MS LH_NS_PER_MS

static const uint8_t here[16] = {10, 0, 0, 1}, there[16] = {10, 0, 0, 2};

static struct lh_congestion_report report_of(uint64_t bandwidth_bps)
{
    struct lh_congestion_report report = {.feedback = true,
                                          .bandwidth_bps = bandwidth_bps,
                                          .rtt_minimum_ns = 10 * MS,
                                          .arrived_bytes = bandwidth_bps / 8 / 100};
    report.limited_ns[LH_LIMIT_RATE] = 10 * MS;
    return report;
}

static void the_newest_is_taken(void **state)
{
    (void)state;
    static struct known_paths paths;
    struct known_path known;
    struct lh_congestion_report slow = report_of(1000000), fast = report_of(9000000);
    assert_false(known_paths_take(&paths, 4, here, MS, &known));
    known_paths_put(&paths, 4, here, &slow, 5 * MS);
    known_paths_put(&paths, 4, here, &fast, 7 * MS);
    assert_false(known_paths_take(&paths, 4, there, 8 * MS, &known));
    assert_false(known_paths_take(&paths, 6, here, 8 * MS, &known));
    assert_true(known_paths_take(&paths, 4, here, 8 * MS, &known));
    assert_int_equal(known.rate_bps, 9000000);
    assert_int_equal(known.rtt_ns, 10 * MS);
    assert_int_equal(known.measured_ns, 7 * MS);
}

/* Whatever is measured meanwhile. */
static void not_by_two_at_once(void **state)
{
    (void)state;
    static struct known_paths paths;
    struct known_path known;
    struct lh_congestion_report report = report_of(1000000);
    known_paths_put(&paths, 4, here, &report, MS);
    assert_true(known_paths_take(&paths, 4, here, 2 * MS, &known));
    known_paths_put(&paths, 4, here, &report, 3 * MS);
    assert_false(known_paths_take(&paths, 4, here, 2 * MS + KNOWN_PATHS_TURN * 10 * MS - 1, &known));
    assert_true(known_paths_take(&paths, 4, here, 2 * MS + KNOWN_PATHS_TURN * 10 * MS, &known));
}

static void many_hosts_take_each_others_places(void **state)
{
    (void)state;
    static struct known_paths paths;
    struct known_path known;
    struct lh_congestion_report report = report_of(1000000);
    uint8_t address[16] = {10};
    for (uint32_t i = 0; i < 1000; i++) {
        address[14] = (uint8_t)(i >> 8);
        address[15] = (uint8_t)i;
        known_paths_put(&paths, 4, address, &report, MS);
        assert_true(known_paths_take(&paths, 4, address, MS, &known));
        assert_memory_equal(known.address, address, 16);
    }
}

static void what_is_learned(void **state)
{
    (void)state;
    struct lh_congestion_report report = report_of(1000000);
    assert_true(known_paths_is_learned(&report));
    report.arrived_bytes--; /* than the path holds */
    assert_false(known_paths_is_learned(&report));
    report = report_of(1000000);
    report.limited_ns[LH_LIMIT_RATE]--; /* less than a round trip */
    assert_false(known_paths_is_learned(&report));
    report.limited_ns[LH_LIMIT_HOST]++;
    assert_true(known_paths_is_learned(&report));
    report.feedback = false;
    assert_false(known_paths_is_learned(&report));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_is_taken),
        cmocka_unit_test(not_by_two_at_once),
        cmocka_unit_test(many_hosts_take_each_others_places),
        cmocka_unit_test(what_is_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
