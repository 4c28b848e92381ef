/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/data_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define OVERDUE_NS (300 * LH_NS_PER_MS)
#define SILENCE_NS (2 * LH_NS_PER_S + 8 * OVERDUE_NS) /* docs/connections.md, where UDP does not pass */

static void test_many_announced_and_none_arrived(void **state)
{
    (void)state;
    struct data_path path = {0};
    for (int i = 0; i < 7; i++) /* a segment counts at most 4 packets */
        assert_true(data_path_on_announced(&path, 1000, false, OVERDUE_NS, 5));
    assert_true(data_path_on_announced(&path, 4, false, OVERDUE_NS, 5 + SILENCE_NS - 1));
    assert_false(data_path_on_announced(&path, 4, false, OVERDUE_NS, 5 + SILENCE_NS));
}

static void test_long_silence_needs_evidence(void **state)
{
    (void)state;
    struct data_path path = {0};
    for (int i = 0; i < 31; i++)
        assert_true(data_path_on_announced(&path, 1, false, OVERDUE_NS, (lh_time)i * SILENCE_NS));
    assert_false(data_path_on_announced(&path, 1, false, OVERDUE_NS, 31 * SILENCE_NS));
}

/* One packet that arrived is enough for ever. */
static void test_one_packet_settles_it(void **state)
{
    (void)state;
    struct data_path path = {0};
    for (int i = 0; i < 8; i++)
        assert_true(data_path_on_announced(&path, 4, false, OVERDUE_NS, 0));
    assert_true(data_path_on_announced(&path, 4, true, OVERDUE_NS, SILENCE_NS));
    assert_true(path.passes);
    assert_true(data_path_on_announced(&path, 4, false, OVERDUE_NS, 100 * SILENCE_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_announced_and_none_arrived),
        cmocka_unit_test(test_long_silence_needs_evidence),
        cmocka_unit_test(test_one_packet_settles_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
