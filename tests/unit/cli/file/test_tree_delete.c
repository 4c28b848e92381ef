/*
 * test_tree_delete.c - entries that a sender does not have: the list stays in the folder, the judge keeps
 * those in doubt, and nothing else than what was listed is removed.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/tree_delete.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[64]; /* holds out, the receiver's; source; and elsewhere */
static struct cli_tree_options options;
static struct cli_tree_store store;
static struct cli_tree_held held;

static int run(const char *line)
{
    char text[512];
    snprintf(text, sizeof text, "cd %s && %s", base, line);
    return system(text);
}

static int open_folder(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", base, name);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int make_folders(void **state)
{
    const struct cli_tree_record root = {.kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION};
    (void)state;
    snprintf(base, sizeof base, "/tmp/test_tree_delete.XXXXXX");
    if (!mkdtemp(base) ||
        run("mkdir -p out/d/sub source/d elsewhere && touch out/d/f out/d/sub/g elsewhere/x "
            "&& ln -s ../elsewhere out/link && ln -s ../../elsewhere out/d/link"))
        return -1;
    options = (struct cli_tree_options){.folder = open_folder("out"), .pipe = -1, .deletes = true};
    held = (struct cli_tree_held){0};
    return cli_tree_store_open(&store, &options, &root) ? 0 : -1;
}

static int remove_folders(void **state)
{
    char command[128];
    (void)state;
    cli_tree_held_close(&held);
    cli_tree_store_close(&store);
    close(options.folder);
    snprintf(command, sizeof command, "rm -rf %s", base);
    return system(command);
}

static bool list(const char *path)
{
    return cli_tree_held_list(&held, &store, path, strlen(path));
}

/* The number of the entry; UINT64_MAX: it is not listed. */
static uint64_t place(const char *path)
{
    for (uint64_t i = 0; i < held.count; i++)
        if (!strcmp(cli_tree_held_entry(&held, i)->path, path))
            return i;
    return UINT64_MAX;
}

static void folders_follow_their_content(void **state)
{
    (void)state;
    assert_true(list("d"));
    assert_int_equal(held.count, 4);
    assert_true(place("d/sub/g") < place("d/sub"));
    assert_true(cli_tree_held_entry(&held, place("d/sub"))->folder);
    assert_false(cli_tree_held_entry(&held, place("d/link"))->folder);
    assert_true(list("none"));
    assert_int_equal(held.count, 4);
}

static void no_link_is_followed(void **state)
{
    (void)state;
    assert_false(list("link"));
    assert_false(list("d/link"));
    assert_false(list("link/x"));
    assert_int_equal(held.count, 0);
    /* It becomes one between the list and the removal. */
    assert_true(list("d"));
    assert_int_equal(
        run("touch elsewhere/g && mv out/d/sub out/d/moved && ln -s ../../elsewhere out/d/sub"), 0);
    assert_false(cli_tree_store_remove(&store, cli_tree_held_entry(&held, place("d/sub/g"))));
    assert_false(cli_tree_store_remove(&store, cli_tree_held_entry(&held, place("d/sub"))));
    assert_int_equal(run("test -e elsewhere/g && test -L out/d/sub"), 0);
}

static void what_came_since_is_kept(void **state)
{
    (void)state;
    assert_true(list("d"));
    assert_int_equal(run("echo new >other && mv other out/d/f && touch out/d/sub/new"), 0);
    assert_false(cli_tree_store_remove(&store, cli_tree_held_entry(&held, place("d/f"))));
    assert_true(cli_tree_store_remove(&store, cli_tree_held_entry(&held, place("d/sub/g"))));
    assert_false(cli_tree_store_remove(&store, cli_tree_held_entry(&held, place("d/sub"))));
    assert_int_equal(run("test \"$(cat out/d/f)\" = new && test -e out/d/sub/new && ! test -e out/d/sub/g"),
                     0);
    /* Removed by another process: that is what was asked for. */
    assert_int_equal(run("rm out/d/link"), 0);
    assert_true(cli_tree_store_remove(&store, cli_tree_held_entry(&held, place("d/link"))));
}

static void decisions_are_on_entries_of_the_list(void **state)
{
    char shown[CLI_TREE_EXTRAS_SHOWN][CLI_TREE_SHOWN_MAX];
    (void)state;
    assert_true(list("d"));
    assert_false(cli_tree_held_decide(&held, "\2", 1));
    assert_true(cli_tree_held_decide(&held, "\0\1\0", 3));
    assert_false(cli_tree_held_decide(&held, "\1\1", 2));
    assert_int_equal(cli_tree_held_removed(&held, shown), 1);
    assert_string_equal(shown[0], cli_tree_held_entry(&held, 1)->path);
}

static void only_what_may_come_is_listed(void **state)
{
    static const char *const names[] = {"d"};
    (void)state;
    assert_int_equal(run("touch out/.profile out/d/.dot out/d/.x.longhaul-partial"), 0);
    assert_true(list(""));
    assert_int_equal(place(".profile"), UINT64_MAX);
    assert_int_equal(place("d/.x.longhaul-partial"), UINT64_MAX);
    assert_int_not_equal(place("d/.dot"), UINT64_MAX);
    options.names = names;
    options.names_count = 1;
    assert_false(list(""));
    assert_false(list("other"));
    assert_true(list("d"));
}

static void the_judge_keeps_what_is_excluded_or_in_doubt(void **state)
{
    struct cli_tree_operand operand;
    const struct cli_tree_rules rules = {.count = 1, .rules = {{.pattern = "*.o", .includes = false}}};
    char path[128];
    (void)state;
    assert_int_equal(run("touch source/d/f && mkdir source/d/closed"), 0);
    snprintf(path, sizeof path, "%s/source/d", base);
    assert_true(cli_tree_operand_open(&operand, path));
    struct cli_tree_judge judge = {
        .operands = &operand, .count = 1, .rules = &rules, .at = {.root = -1, .folder = -1}};
    const struct {
        const char *path;
        bool folder;
        int fate;
    } entries[] = {
        {"d/f", false, CLI_TREE_KEEP},          {"d/g", false, CLI_TREE_REMOVE},
        {"d/a/x.o", false, CLI_TREE_KEEP},      {"d/a/y.c", false, CLI_TREE_REMOVE},
        {"d/a", true, CLI_TREE_KEEP},           {"d/b.o/z", false, CLI_TREE_KEEP},
        {"d/b.o", true, CLI_TREE_KEEP},         {"d/f/under", false, CLI_TREE_REMOVE},
        {"d/closed/x", false, CLI_TREE_REMOVE}, {"d/closed", true, CLI_TREE_KEEP},
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (cli_tree_judge_next(&judge, entries[i].path, strlen(entries[i].path), entries[i].folder) !=
            entries[i].fate)
            fail_msg("%s: the other fate", entries[i].path);
    assert_int_equal(judge.removed, 4);
    assert_int_equal(judge.error, 0);
    assert_string_equal(judge.shown[1], "d/a/y.c");
    cli_tree_judge_close(&judge);
    cli_tree_operand_close(&operand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_follow_their_content, make_folders, remove_folders),
        cmocka_unit_test_setup_teardown(no_link_is_followed, make_folders, remove_folders),
        cmocka_unit_test_setup_teardown(what_came_since_is_kept, make_folders, remove_folders),
        cmocka_unit_test_setup_teardown(decisions_are_on_entries_of_the_list, make_folders, remove_folders),
        cmocka_unit_test_setup_teardown(only_what_may_come_is_listed, make_folders, remove_folders),
        cmocka_unit_test_setup_teardown(the_judge_keeps_what_is_excluded_or_in_doubt, make_folders,
                                        remove_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
