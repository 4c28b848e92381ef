/* SPDX-License-Identifier: BSD-3-Clause */
#include "launch/variables/host_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void first_hosts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"node1", "node1"},
        {"node1,node2", "node1"},
        {"node[003-010,12],gpu1", "node003"},
        {"node[7]", "node7"},
        {"node[12,3-5]", "node12"},
        {"rack[1-2]node[04-09]", "rack1node04"},
        {"n[1-2].cluster.example,x", "n1.cluster.example"},
    };
    char host[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(host_list_first(cases[i][0], host, sizeof host));
        assert_string_equal(host, cases[i][1]);
    }
}

static void no_lists(void **state)
{
    (void)state;
    static const char *const cases[] = {"",        ",",      "node[",    "node[]",
                                        "node[x]", "node[1", "node[1x]", "node]"};
    char host[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_false(host_list_first(cases[i], host, sizeof host));
}

static void sizes(void **state)
{
    (void)state;
    char host[8];
    memset(host, 'x', sizeof host);
    assert_true(host_list_first("node[12-13]", host, 7));
    assert_string_equal(host, "node12");
    assert_int_equal(host[7], 'x');
    assert_false(host_list_first("node[12-13]", host, 6));
    assert_false(host_list_first("a", host, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_hosts),
        cmocka_unit_test(no_lists),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
