/*
 * test_path_memory.c - what a connection learned of its path is where the next one over it starts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <longhaul/congestion.h>
#include <longhaul/connection.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/connection_pair.h"
#include "support/paths_folder.h"

#define LINK     "rtt=20ms,rate=1Gbit"
#define RATE_BPS 1000000000u
#define BYTES    ((size_t)16 << 20) /* 6 times what the path holds */

/* One connection, with a message each way; what end 0 reports of its sending. */
static struct lh_congestion_report connection_over(const char *link, const char *congestion,
                                                   const char *path_file, size_t bytes)
{
    struct connection_pair pair;
    struct lh_congestion_report report;
    struct lh_attr attr, other;
    connection_pair_attr(&attr);
    attr.slot_bytes = (uint64_t)1 << 20;
    attr.slots = 64;
    other = attr;
    attr.congestion = congestion;
    attr.path_file = path_file;
    connection_pair_open(&pair, "memory", 3, link, &attr, &other);
    connection_pair_transfer(&pair, 0, bytes, bytes);
    assert_int_equal(lh_connection_congestion(pair.ends[0], &report), 0);
    connection_pair_close(&pair);
    return report;
}

static bool is_there(void)
{
    return access(paths_file, F_OK) == 0;
}

static void the_next_connection_starts_where_this_one_ended(void **state)
{
    (void)state;
    struct lh_congestion_report first = connection_over(LINK, "bbr", paths_file, BYTES);
    assert_true(first.remembered_rate_bps == 0);
    assert_in_range(first.bandwidth_bps, RATE_BPS / 2, RATE_BPS);
    struct lh_congestion_report second = connection_over(LINK, "bbr", paths_file, BYTES);
    assert_true(second.remembered_rate_bps == first.bandwidth_bps);
}

static void a_path_with_another_round_trip_is_another_path(void **state)
{
    (void)state;
    assert_true(connection_over(LINK, "bbr", paths_file, BYTES).feedback);
    assert_true(connection_over("rtt=45ms,rate=1Gbit", "bbr", paths_file, 1000).remembered_rate_bps == 0);
    assert_true(connection_over("rtt=9ms,rate=1Gbit", "bbr", paths_file, 1000).remembered_rate_bps == 0);
    assert_true(connection_over("rtt=11ms,rate=1Gbit", "bbr", paths_file, 1000).remembered_rate_bps > 0);
}

static void what_the_application_limited_is_not_remembered(void **state)
{
    (void)state;
    connection_over(LINK, "bbr", paths_file, 1000);
    assert_false(is_there());
}

static void a_given_rate_is_not_remembered(void **state)
{
    (void)state;
    connection_over(LINK, "fixed", paths_file, BYTES);
    assert_false(is_there());
}

static void without_a_file_nothing_is_remembered(void **state)
{
    (void)state;
    connection_over(LINK, "bbr", NULL, BYTES);
    assert_true(connection_over(LINK, "bbr", NULL, 1000).remembered_rate_bps == 0);
}

static void a_file_that_cannot_be_written_is_no_error(void **state)
{
    (void)state;
    assert_true(connection_over(LINK, "bbr", "/dev/null/paths", BYTES).arrived_bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PATHS_FOLDER(the_next_connection_starts_where_this_one_ended),
        WITH_PATHS_FOLDER(a_path_with_another_round_trip_is_another_path),
        WITH_PATHS_FOLDER(what_the_application_limited_is_not_remembered),
        WITH_PATHS_FOLDER(a_given_rate_is_not_remembered),
        WITH_PATHS_FOLDER(without_a_file_nothing_is_remembered),
        WITH_PATHS_FOLDER(a_file_that_cannot_be_written_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
