/*
 * test_peer_address.c - HOST[:PORT] in every form, and what is none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/options/peer_address.h"
#include "cli/terminal/terminal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct cli_address got;

static int parse(const char *text, int listening)
{
    memset(&got, 0, sizeof got);
    return cli_address_parse("HOST", text, 47910, listening, &got);
}

static void check(const char *text, int listening, const char *where)
{
    assert_int_equal(parse(text, listening), CLI_PROCEED);
    assert_string_equal(got.where, where);
}

static void forms_of_writing(void **state)
{
    (void)state;
    check("example.org", 0, "example.org:47910");
    check("example.org:1", 0, "example.org:1");
    check("10.0.0.7:65535", 0, "10.0.0.7:65535");
    check("::1", 0, "[::1]:47910");
    check("[::1]", 0, "[::1]:47910");
    check("[::1]:80", 0, "[::1]:80");
    check("fe80::1%eth0", 0, "[fe80::1%eth0]:47910");
    check(":0", 1, ":0");
    check("[::]:0", 1, "[::]:0");
    check("127.0.0.1:0", 1, "127.0.0.1:0");
    check("", 1, ":47910");
}

static void what_is_none(void **state)
{
    static const char *const wrong[] = {
        "",           ":80",     "host:",   "host:0",
        "host:65536", "host:x",  "host:-1", "host:80x",
        "[::1",       "[]:80",   "[::1]80", "[::1]x:",
        "a b",        "host/80", "a\nb",    "host:99999999999999999999",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (parse(wrong[i], 0) != CLI_EXIT_USAGE)
            fail_msg("taken, but wrong: \"%s\"", wrong[i]);
}

static void names_have_a_limit(void **state)
{
    char name[300];
    (void)state;
    memset(name, 'a', sizeof name);
    name[254] = 0;
    assert_int_equal(parse(name, 0), CLI_EXIT_USAGE);
    name[253] = 0;
    assert_int_equal(parse(name, 0), CLI_PROCEED);
    assert_int_equal(strlen(got.where), 253 + strlen(":47910"));
}

static void another_port(void **state)
{
    (void)state;
    assert_int_equal(parse("[::1]:80", 0), CLI_PROCEED);
    cli_address_set_port(&got, 443);
    assert_string_equal(got.where, "[::1]:443");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_of_writing),
        cmocka_unit_test(what_is_none),
        cmocka_unit_test(names_have_a_limit),
        cmocka_unit_test(another_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
