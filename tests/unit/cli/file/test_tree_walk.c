/*
 * test_tree_walk.c - HOST, PORT and PATH of a remote path; operands and their names.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/tree_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/terminal/terminal.h"

static void remote_paths_are_divided(void **state)
{
    static const struct {
        const char *text, *where, *folder;
    } right[] = {
        {"host", "host:47910", ""},
        {"host:1234", "host:1234", ""},
        {"host:dir", "host:47910", "dir"},
        {"host:12a", "host:47910", "12a"},
        {"host:./2024", "host:47910", "2024"},
        {"host:1234:dir/sub", "host:1234", "dir/sub"},
        {"host:1234:5", "host:1234", "5"},
        {"host:a//b/./c/", "host:47910", "a/b/c"},
        {"host:a:b", "host:47910", "a:b"},
        {"host:.", "host:47910", ""},
        {"10.0.0.1:7:x", "10.0.0.1:7", "x"},
        {"10.0.0.1:7:a", "10.0.0.1:7", "a"},
        {"10.0.0.1:7:.", "10.0.0.1:7", ""},
        {"::1", "[::1]:47910", ""},
        {"[::1]", "[::1]:47910", ""},
        {"[::1]:7", "[::1]:7", ""},
        {"[::1]:dir", "[::1]:47910", "dir"},
        {"[::1]:7:dir", "[::1]:7", "dir"},
        {"fe80::1%eth0", "[fe80::1%eth0]:47910", ""},
    };
    static const char *const wrong[] = {
        "",     "host:", "host:0",  "host:65536:a", "host:/abs",  "host:..",    "host:a/../b",
        ":dir", "[::1",  "a b:dir", "::1:47910",    "[::1]x:dir", "host:7:/abs"};
    struct cli_remote remote;
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(cli_remote_parse(right[i].text, "", &remote), CLI_PROCEED);
        assert_string_equal(remote.address.where, right[i].where);
        assert_string_equal(remote.path, right[i].folder);
        assert_int_equal(remote.has_path,
                         *right[i].folder || right[i].text[strlen(right[i].text) - 1] == '.');
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (cli_remote_parse(wrong[i], "", &remote) != CLI_EXIT_USAGE)
            fail_msg("%s is taken", wrong[i]);
}

static void operands_have_the_name_of_their_last_part(void **state)
{
    static const struct {
        const char *path, *prefix, *name;
    } right[] = {
        {"/dev/null", "/dev/", "null"},
        {"/dev//", "/", "dev"},
        {"/", "/", ""},
        {".", "./", ""},
        {"..", "../", ""},
        {"/dev/.", "/dev/./", ""},
    };
    struct cli_tree_operand operand;
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_true(cli_tree_operand_open(&operand, right[i].path));
        assert_string_equal(operand.prefix, right[i].prefix);
        assert_string_equal(operand.name, right[i].name);
        cli_tree_operand_close(&operand);
    }
    assert_false(cli_tree_operand_open(&operand, ""));
    assert_false(cli_tree_operand_open(&operand, "/dev/no/such"));
    assert_false(cli_tree_operand_open(&operand, "/no-such-name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remote_paths_are_divided),
        cmocka_unit_test(operands_have_the_name_of_their_last_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
