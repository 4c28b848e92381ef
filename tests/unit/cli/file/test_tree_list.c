/*
 * test_tree_list.c - the queue between walker, decisions and sender: order, bounds, the end.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/tree_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/file/tree_changes.h"

static struct cli_tree_list list;

static int open_list(void **state)
{
    (void)state;
    return cli_tree_list_open(&list);
}

static int close_list(void **state)
{
    (void)state;
    cli_tree_list_close(&list);
    return 0;
}

static bool add(enum cli_tree_kind kind, const char *path)
{
    const struct cli_tree_record record = {
        .kind = kind, .path = path, .path_bytes = strlen(path), .size_bytes = 7};
    return cli_tree_list_add(&list, &record, 0);
}

static bool decide(enum cli_tree_kind kind, uint64_t number)
{
    char path[CLI_TREE_PATH_MAX + 1];
    uint64_t size;
    const struct cli_tree_record answer = {.kind = kind, .number = number};
    return cli_tree_list_decide(&list, &answer, path, &size);
}

/* The next entry is that one, in that state. */
static void expect(const char *path, enum cli_tree_state state)
{
    struct cli_tree_entry *entry;
    assert_int_equal(cli_tree_list_take(&list, 0, &entry), CLI_TREE_NEXT);
    assert_string_equal(entry->path, path);
    assert_int_equal(entry->state, state);
    cli_tree_entry_free(entry);
}

static void expect_none(enum cli_tree_next next)
{
    struct cli_tree_entry *entry;
    assert_int_equal(cli_tree_list_take(&list, 0, &entry), next);
}

/* Files need a decision and their list, the others the list alone. */
static void entries_are_ready_in_order(void **state)
{
    (void)state;
    assert_true(add(CLI_TREE_LISTED, "a") && add(CLI_TREE_FOLDER_END, "b") && add(CLI_TREE_LISTED, "c"));
    assert_true(decide(CLI_TREE_DECISIONS, CLI_TREE_SEND));
    expect_none(CLI_TREE_NONE_YET);
    assert_false(cli_tree_list_awaits(&list)); /* nobody was asked */
    cli_tree_list_announce(&list);
    assert_false(cli_tree_list_awaits(&list));
    expect("a", CLI_TREE_WANTED);
    expect("b", CLI_TREE_UNDECIDED);
    expect_none(CLI_TREE_NONE_YET);
    assert_true(cli_tree_list_awaits(&list));
    assert_true(decide(CLI_TREE_DECISIONS, CLI_TREE_SKIP));
    assert_false(cli_tree_list_awaits(&list));
    expect("c", CLI_TREE_SKIPPED);
    expect_none(CLI_TREE_NONE_YET);
    cli_tree_list_end(&list);
    expect_none(CLI_TREE_NO_MORE);
}

/* A receiver that decides on more than there is. */
static void a_decision_too_many_is_noticed(void **state)
{
    (void)state;
    assert_false(decide(CLI_TREE_DECISIONS, CLI_TREE_SEND));
    assert_true(add(CLI_TREE_FOLDER_END, "b"));
    assert_false(decide(CLI_TREE_REFUSED, 0));
    assert_true(add(CLI_TREE_LISTED, "a"));
    assert_true(decide(CLI_TREE_RESUME, 4));
    assert_false(decide(CLI_TREE_RESUME, 4));
    cli_tree_list_announce(&list);
    expect("b", CLI_TREE_UNDECIDED);
    expect("a", CLI_TREE_WANTED);
    assert_false(decide(CLI_TREE_RESUME, 4));
}

static void the_queue_is_bounded(void **state)
{
    static char path[CLI_TREE_PATH_MAX + 1];
    unsigned added = 0;
    (void)state;
    while (!cli_tree_list_full(&list)) {
        assert_true(add(CLI_TREE_FOLDER_END, "x"));
        added++;
    }
    assert_int_equal(added, CLI_TREE_ENTRIES_MAX);
    cli_tree_list_announce(&list);
    expect("x", CLI_TREE_UNDECIDED);
    assert_false(cli_tree_list_full(&list));
    memset(path, 'x', CLI_TREE_PATH_MAX);
    for (unsigned i = 1; i < added; i++)
        expect("x", CLI_TREE_UNDECIDED);
    for (added = 0; !cli_tree_list_full(&list); added++)
        assert_true(add(CLI_TREE_FOLDER_END, path));
    assert_true(added <= CLI_TREE_LIST_BYTES_MAX / CLI_TREE_PATH_MAX);
}

/* Of files whose hashes do not fit any more all is sent. */
static void hashes_are_bounded(void **state)
{
    static char hashes[CLI_TREE_CHANGES_BYTES_MAX];
    const struct cli_tree_record file = {
        .kind = CLI_TREE_LISTED, .path = "f", .path_bytes = 1, .size_bytes = (uint64_t)8 << 30};
    const struct cli_tree_record answer = {
        .kind = CLI_TREE_CHANGES, .rest = hashes, .rest_bytes = sizeof hashes};
    const struct cli_tree_record wrong = {
        .kind = CLI_TREE_CHANGES, .rest = hashes, .rest_bytes = sizeof hashes - 1};
    const unsigned most = CLI_TREE_LIST_CHANGES_MAX / sizeof hashes, files = most + 3;
    struct cli_tree_entry *entry;
    char path[CLI_TREE_PATH_MAX + 1];
    uint64_t size;
    unsigned with = 0;
    (void)state;
    for (unsigned i = 0; i < files; i++) {
        assert_true(cli_tree_list_add(&list, &file, 0));
        assert_false(cli_tree_list_decide(&list, &wrong, path, &size));
        assert_true(cli_tree_list_decide(&list, &answer, path, &size));
    }
    cli_tree_list_announce(&list);
    for (unsigned i = 0; i < files; i++) {
        assert_int_equal(cli_tree_list_take(&list, 0, &entry), CLI_TREE_NEXT);
        assert_int_equal(entry->state, CLI_TREE_WANTED);
        with += entry->changes != NULL;
        cli_tree_entry_free(entry);
    }
    assert_int_equal(with, most);
    assert_int_equal(list.changes_bytes, 0);
}

static void stopped_it_takes_and_gives_nothing(void **state)
{
    (void)state;
    assert_true(add(CLI_TREE_FOLDER_END, "a"));
    cli_tree_list_announce(&list);
    cli_tree_list_stop(&list);
    assert_false(add(CLI_TREE_FOLDER_END, "b"));
    expect_none(CLI_TREE_NO_MORE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_list, close_list)
    const struct CMUnitTest tests[] = {
        TEST(entries_are_ready_in_order),
        TEST(a_decision_too_many_is_noticed),
        TEST(the_queue_is_bounded),
        TEST(hashes_are_bounded),
        TEST(stopped_it_takes_and_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
