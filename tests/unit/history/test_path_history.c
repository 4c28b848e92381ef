/*
 * test_path_history.c - what connections of an engine measured of paths: noted, taken by one at a time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "history/path_history.h"

/* ---- test known paths ------------------------------------------------------------------------------ */

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

static int run_known_paths(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_is_taken),
        cmocka_unit_test(not_by_two_at_once),
        cmocka_unit_test(many_hosts_take_each_others_places),
        cmocka_unit_test(what_is_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test path history ----------------------------------------------------------------------------- */

/* What is remembered of paths, as text: read, written, aged, forgotten. */

#define NOW_S UINT64_C(1800000000)

static struct path_history history;

static void parse(const char *text)
{
    path_history_parse(text, strlen(text), &history);
}

static struct path_record record(const char *peer, const char *local, uint64_t rate_bps, uint64_t time_s)
{
    struct path_record made = {.rate_bps = rate_bps, .rtt_ns = 25 * LH_NS_PER_MS, .time_s = time_s};
    snprintf(made.peer, sizeof made.peer, "%s", peer);
    snprintf(made.local, sizeof made.local, "%s", local);
    return made;
}

static bool put(const char *peer, uint64_t rate_bps, uint64_t time_s)
{
    struct path_record made = record(peer, "10.0.0.1", rate_bps, time_s);
    return path_history_put(&history, &made);
}

static void a_line_is_read(void **state)
{
    (void)state;
    parse("192.0.2.7 10.0.0.1 2000000000 25000000 1800000000\n");
    assert_int_equal(history.count, 1);
    assert_string_equal(history.records[0].peer, "192.0.2.7");
    assert_string_equal(history.records[0].local, "10.0.0.1");
    assert_true(history.records[0].rate_bps == 2000000000);
    assert_true(history.records[0].rtt_ns == 25000000);
    assert_true(history.records[0].time_s == NOW_S);
}

static void what_is_malformed_is_skipped_and_the_rest_stays(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "# a comment",
        " 192.0.2.1 10.0.0.1 2000 25 18",                   /* an empty field */
        "192.0.2.1 10.0.0.1 2000 25 18 ",                   /* another */
        "192.0.2.1 10.0.0.1 2000 25 18 1",                  /* one too many */
        "192.0.2.1 10.0.0.1 2000 25",                       /* one too few */
        "192.0.2.1  10.0.0.1 2000 25 18",                   /* two spaces */
        "192.0.2.1\t10.0.0.1 2000 25 18",                   /* no space */
        "192.0.2.1 10.0.0.1 -2000 25 18",                   /* a sign */
        "192.0.2.1 10.0.0.1 2e9 25 18",                     /* no integer */
        "192.0.2.1 10.0.0.1 999 25 18",                     /* rate below its bound, */
        "192.0.2.1 10.0.0.1 100000000000001 25 18",         /* above it, */
        "192.0.2.1 10.0.0.1 36893488147419103232000 25 18", /* beyond 64 bits: 0x7d0 times 2^64 */
        "192.0.2.1 10.0.0.1 18446744073709553616 25 18",    /* 2^64 + 2000 */
        "192.0.2.1 10.0.0.1 2000 0 18",                     /* round trip */
        "192.0.2.1 10.0.0.1 2000 3600000000001 18",
        "192.0.2.1 10.0.0.1 2000 25 9223372036854775808", /* time */
        "somewhere 10.0.0.1 2000 25 18",
        "192.0.2.1 fe80::1%eth0 2000 25 18",
        "192.0.2.1 1111111111111111111111111111111111111111111111 2000 25 18", /* 46 characters */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "::1 ::1 5000 25 18\n%s\n::2 ::1 6000 25 18\n", wrong[i]);
        parse(text);
        assert_int_equal(history.count, 2);
        assert_true(history.records[0].rate_bps == 5000 && history.records[1].rate_bps == 6000);
    }
    static const char with_zero[] = "::1 ::1 5000\0 25 18\n::2 ::1 6000 25 18\n";
    path_history_parse(with_zero, sizeof with_zero - 1, &history);
    assert_int_equal(history.count, 1);
    assert_true(history.records[0].rate_bps == 6000);
}

static void a_line_that_was_cut_does_not_count(void **state)
{
    (void)state;
    parse("::1 ::1 5000 25 18\n::2 ::1 6000 25 1800000");
    assert_int_equal(history.count, 1);
    path_history_parse("", 0, &history);
    assert_int_equal(history.count, 0);
}

static void of_two_lines_about_a_path_the_first_counts(void **state)
{
    (void)state;
    parse("::1 ::1 5000 25 18\n::1 ::1 6000 25 19\n::1 ::2 7000 25 18\n");
    assert_int_equal(history.count, 2);
    assert_true(history.records[0].rate_bps == 5000 && history.records[1].rate_bps == 7000);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    static char text[PATH_HISTORY_TEXT_MAX];
    static struct path_history before;
    /* The longest lines that there are, and as many as there may be. */
    history.count = 0;
    for (uint32_t i = 0; i < PATH_HISTORY_MAX; i++) {
        char peer[PATH_HISTORY_ADDRESS_MAX];
        snprintf(peer, sizeof peer, "1111:2222:3333:4444:5555:6666:255.255.255.%u", i);
        struct path_record made = record(peer, "1111:2222:3333:4444:5555:6666:255.255.255.255",
                                         PATH_HISTORY_RATE_MAX_BPS, INT64_MAX);
        made.rtt_ns = PATH_HISTORY_RTT_MAX_NS;
        assert_true(path_history_put(&history, &made));
    }
    before = history;
    size_t bytes = path_history_format(&history, text);
    assert_true(bytes <= sizeof text);
    path_history_parse(text, bytes, &history);
    assert_int_equal(history.count, PATH_HISTORY_MAX);
    for (uint32_t i = 0; i < PATH_HISTORY_MAX; i++) {
        assert_string_equal(history.records[i].peer, before.records[i].peer);
        assert_true(history.records[i].rate_bps == before.records[i].rate_bps);
        assert_true(history.records[i].rtt_ns == before.records[i].rtt_ns);
        assert_true(history.records[i].time_s == before.records[i].time_s);
    }
}

static void the_oldest_leave(void **state)
{
    (void)state;
    char peer[PATH_HISTORY_ADDRESS_MAX];
    history.count = 0;
    for (uint32_t i = 0; i <= PATH_HISTORY_MAX; i++) {
        snprintf(peer, sizeof peer, "10.1.%u.%u", i >> 8, i & 255);
        assert_true(put(peer, 1000 + i, NOW_S));
        assert_int_equal(history.count, i < PATH_HISTORY_MAX ? i + 1 : PATH_HISTORY_MAX);
    }
    assert_null(path_history_find(&history, "10.1.0.0", "10.0.0.1", NOW_S));
    assert_non_null(path_history_find(&history, "10.1.0.1", "10.0.0.1", NOW_S));
    assert_non_null(path_history_find(&history, "10.1.1.0", "10.0.0.1", NOW_S));
    /* One that is known takes no place. */
    assert_true(put("10.1.0.1", 7777, NOW_S));
    assert_int_equal(history.count, PATH_HISTORY_MAX);
    assert_non_null(path_history_find(&history, "10.1.0.2", "10.0.0.1", NOW_S));
    assert_true(path_history_find(&history, "10.1.0.1", "10.0.0.1", NOW_S)->rate_bps == 7777);
}

static void a_text_that_is_too_long_is_read_in_part(void **state)
{
    (void)state;
    static char text[2 * PATH_HISTORY_TEXT_MAX];
    const char *line = "::1 ::1 5000 25 18\n";
    memset(text, '\n', sizeof text);
    memcpy(text + PATH_HISTORY_TEXT_MAX - strlen(line), line, strlen(line));
    path_history_parse(text, sizeof text, &history);
    assert_int_equal(history.count, 1);
    memset(text, '\n', sizeof text);
    memcpy(text + PATH_HISTORY_TEXT_MAX - strlen(line) + 1, line, strlen(line));
    path_history_parse(text, sizeof text, &history);
    assert_int_equal(history.count, 0);
}

static void what_is_old_or_of_the_future_is_not_used(void **state)
{
    (void)state;
    history.count = 0;
    assert_true(put("::1", 5000, NOW_S));
    assert_non_null(path_history_find(&history, "::1", "10.0.0.1", NOW_S));
    assert_null(path_history_find(&history, "::1", "10.0.0.1", NOW_S - 1));
    assert_non_null(path_history_find(&history, "::1", "10.0.0.1", NOW_S + PATH_HISTORY_AGE_MAX_S));
    assert_null(path_history_find(&history, "::1", "10.0.0.1", NOW_S + PATH_HISTORY_AGE_MAX_S + 1));
    assert_null(path_history_find(&history, "::1", "10.0.0.2", NOW_S));
    assert_null(path_history_find(&history, "::2", "10.0.0.1", NOW_S));
    /* It leaves when another is remembered. */
    assert_true(put("::2", 5000, NOW_S + PATH_HISTORY_AGE_MAX_S));
    assert_int_equal(history.count, 2);
    assert_true(put("::3", 5000, NOW_S + PATH_HISTORY_AGE_MAX_S + 1));
    assert_int_equal(history.count, 2);
    assert_null(path_history_find(&history, "::1", "10.0.0.1", NOW_S));
}

static void a_record_out_of_bounds_is_not_remembered(void **state)
{
    (void)state;
    history.count = 0;
    assert_false(put("::1", PATH_HISTORY_RATE_MIN_BPS - 1, NOW_S));
    assert_false(put("::1", PATH_HISTORY_RATE_MAX_BPS + 1, NOW_S));
    assert_false(put("", 5000, NOW_S));
    assert_false(put("a b", 5000, NOW_S));
    struct path_record unterminated = record("::1", "::1", 5000, NOW_S);
    memset(unterminated.peer, '1', sizeof unterminated.peer);
    assert_false(path_history_put(&history, &unterminated));
    assert_int_equal(history.count, 0);
}

static void a_round_trip_agrees_within_a_factor_of_two(void **state)
{
    (void)state;
    assert_true(path_history_rtt_agrees(1000, 1000));
    assert_true(path_history_rtt_agrees(1000, 500));
    assert_false(path_history_rtt_agrees(1000, 499));
    assert_true(path_history_rtt_agrees(1000, 2001));
    assert_false(path_history_rtt_agrees(1000, 2002));
    assert_false(path_history_rtt_agrees(1000, LH_TIME_NEVER));
}

static void a_text_is_known_by_its_beginning(void **state)
{
    (void)state;
    static char text[PATH_HISTORY_TEXT_MAX];
    history.count = 0;
    assert_true(path_history_is_text(text, path_history_format(&history, text)));
    assert_true(path_history_is_text(text, 0));
    assert_true(path_history_is_text(PATH_HISTORY_BEGINNING, sizeof PATH_HISTORY_BEGINNING - 1));
    assert_false(path_history_is_text(PATH_HISTORY_BEGINNING, sizeof PATH_HISTORY_BEGINNING - 2));
    assert_false(path_history_is_text("# comment of another program, which is longer\n", 46));
}

static int run_path_history(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_read),
        cmocka_unit_test(a_text_is_known_by_its_beginning),
        cmocka_unit_test(what_is_malformed_is_skipped_and_the_rest_stays),
        cmocka_unit_test(a_line_that_was_cut_does_not_count),
        cmocka_unit_test(of_two_lines_about_a_path_the_first_counts),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(the_oldest_leave),
        cmocka_unit_test(a_text_that_is_too_long_is_read_in_part),
        cmocka_unit_test(what_is_old_or_of_the_future_is_not_used),
        cmocka_unit_test(a_record_out_of_bounds_is_not_remembered),
        cmocka_unit_test(a_round_trip_agrees_within_a_factor_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_known_paths() + run_path_history();
}
