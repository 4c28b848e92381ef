/*
 * test_tree_attributes.c - extended attributes and owners: what is read comes back; hostile names and too
 * many bytes are refused.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/tree_attributes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int from, to;

/* In place of the C library's: a group of many members, which takes much memory. */
int getgrnam_r(const char *name, struct group *group, char *bytes, size_t size, struct group **found)
{
    *found = NULL;
    if (size < 200000)
        return ERANGE;
    snprintf(bytes, size, "%s", name);
    *group = (struct group){.gr_name = bytes, .gr_gid = strcmp(name, "many") ? 0 : 4321};
    *found = strcmp(name, "many") != 0 && strcmp(name, "root") != 0 ? NULL : group;
    return 0;
}

int getgrgid_r(gid_t number, struct group *group, char *bytes, size_t size, struct group **found)
{
    return getgrnam_r(number == 4321 ? "many" : "root", group, bytes, size, found);
}

static int open_files(void **state)
{
    char name[] = "/tmp/test_tree_attributes.XXXXXX";
    (void)state;
    from = mkstemp(name);
    unlink(name);
    to = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return from < 0 || to < 0;
}

static int close_files(void **state)
{
    (void)state;
    close(from);
    close(to);
    return 0;
}

static void skip_without_xattrs(void)
{
    if (fsetxattr(from, "user.try", "", 0, 0)) {
        print_message("no extended attributes in /tmp\n");
        skip();
    }
    fremovexattr(from, "user.try");
}

static void take(struct cli_tree_dress *dress, const char *name, const void *value, size_t bytes)
{
    size_t before = strlen(name) + 1;
    char *rest = malloc(before + bytes);
    memcpy(rest, name, before);
    memcpy(rest + before, value, bytes);
    const struct cli_tree_record record = {
        .kind = CLI_TREE_XATTR, .rest = rest, .rest_bytes = before + bytes};
    cli_tree_dress_take(dress, &record);
    free(rest);
}

static void what_is_read_comes_back(void **state)
{
    struct cli_tree_reading reading = {.xattrs = true, .owners = true};
    struct cli_tree_dress dress = {0};
    struct cli_tree_record record;
    struct stat status;
    char value[16];
    unsigned records = 0;
    (void)state;
    skip_without_xattrs();
    assert_int_equal(fsetxattr(from, "user.one", "1\0x", 3, 0) | fsetxattr(from, "user.none", "", 0, 0), 0);
    assert_int_equal(fstat(from, &status), 0);
    assert_true(cli_tree_reading_take(&reading, from, &status, "", 0));
    for (size_t at = 0; at < reading.used; records++) {
        int64_t used = cli_tree_decode(reading.records + at, reading.used - at, &record);
        assert_true(used > 0);
        cli_tree_dress_take(&dress, &record);
        at += (size_t)used;
    }
    assert_int_equal(records, 3);
    assert_true(dress.owned && dress.user == geteuid());
    cli_tree_dress_put_on(&dress, to, 022);
    assert_string_equal(dress.reason, "");
    assert_int_equal(fgetxattr(to, "user.one", value, sizeof value), 3);
    assert_memory_equal(value, "1\0x", 3);
    assert_int_equal(fgetxattr(to, "user.none", value, sizeof value), 0);
    /* The next entry begins anew. */
    assert_true(cli_tree_reading_take(&reading, to, &status, "d", 1));
    assert_true(cli_tree_decode(reading.records, reading.used, &record) > 0);
    assert_int_equal(record.path_bytes, 1);
    cli_tree_dress_clear(&dress);
    cli_tree_reading_close(&reading);
}

static void hostile_names_are_refused(void **state)
{
    static const char *const names[] = {
        "user.", "user",  "system.nfs4_acl",           "security.capability",
        "x",     "os2.x", "system.posix_acl_access.x", "../user.x"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct cli_tree_dress dress = {0};
        take(&dress, names[i], "x", 1);
        if (!strstr(dress.reason, "not taken") || dress.used)
            fail_msg("%s is taken", names[i]);
        cli_tree_dress_clear(&dress);
    }
    if (geteuid())
        return;
    struct cli_tree_dress dress = {0};
    take(&dress, "trusted.x", "x", 1);
    assert_string_equal(dress.reason, "");
    cli_tree_dress_clear(&dress);
}

static void the_bytes_of_an_entry_are_bounded(void **state)
{
    static uint8_t value[CLI_TREE_XATTR_VALUE_MAX];
    struct cli_tree_dress dress = {0};
    unsigned taken = 0;
    char name[32];
    (void)state;
    for (; !*dress.reason && taken < 100; taken++) {
        snprintf(name, sizeof name, "user.%u", taken);
        take(&dress, name, value, sizeof value);
    }
    assert_int_equal(taken, CLI_TREE_XATTRS_MAX / CLI_TREE_XATTR_VALUE_MAX);
    assert_non_null(strstr(dress.reason, "more than 1 MiB"));
    cli_tree_dress_clear(&dress);
}

static void owners_are_found_by_name_then_by_number(void **state)
{
    static const struct {
        const char *names;
        uint32_t user, group;
    } owners[] = {
        {"root:root", 0, 0}, {"no-such-user-here:root", 77, 0},  {":", 77, 88},       {"", 77, 88},
        {"root", 0, 88},     {"root:no-such-group-here", 0, 88}, {":many", 77, 4321},
    };
    (void)state;
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        struct cli_tree_dress dress = {0};
        const struct cli_tree_record record = {.kind = CLI_TREE_OWNER,
                                               .number = 77 | (uint64_t)88 << 32,
                                               .rest = owners[i].names,
                                               .rest_bytes = strlen(owners[i].names)};
        cli_tree_dress_take(&dress, &record);
        assert_true(dress.owned);
        assert_int_equal(dress.user, owners[i].user);
        assert_int_equal(dress.group, owners[i].group);
    }
}

/* It means "no change" to chown(2). */
static void no_owner_is_the_last_number(void **state)
{
    static const uint64_t numbers[] = {UINT32_MAX, (uint64_t)UINT32_MAX << 32, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct cli_tree_dress dress = {0};
        const struct cli_tree_record record = {.kind = CLI_TREE_OWNER, .number = numbers[i], .rest = ""};
        cli_tree_dress_take(&dress, &record);
        assert_false(dress.owned);
        assert_non_null(strstr(dress.reason, "no user or group has that number"));
    }
}

static void a_group_of_many_members_has_its_name(void **state)
{
    struct cli_tree_reading reading = {.owners = true};
    const struct stat status = {.st_uid = 0, .st_gid = 4321};
    (void)state;
    assert_true(cli_tree_reading_take_owner(&reading, &status, "d", 1));
    assert_string_equal(reading.names, "root:many");
    cli_tree_reading_close(&reading);
}

/* The default list of a folder is in place of the umask for what is created in it. */
static void lists_permit_what_the_umask_does(void **state)
{
    static const uint8_t all[] = {2, 0, 0,    0,    1,    0,    7,  0, 0xff, 0xff, 0xff, 0xff, 2,    0,   7,
                                  0, 1, 0,    0,    0,    4,    0,  7, 0,    0xff, 0xff, 0xff, 0xff, 16,  0,
                                  7, 0, 0xff, 0xff, 0xff, 0xff, 32, 0, 7,    0,    0xff, 0xff, 0xff, 0xff};
    static const char *const names[] = {"system.posix_acl_access", "system.posix_acl_default"};
    char base[] = "/tmp/test_tree_attributes.XXXXXX";
    uint8_t found[64];
    struct stat status;
    (void)state;
    assert_non_null(mkdtemp(base));
    int folder = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < 2; i++) {
        struct cli_tree_dress dress = {0};
        take(&dress, names[i], all, sizeof all);
        cli_tree_dress_put_on(&dress, folder, 027);
        if (strstr(dress.reason, "not supported")) {
            rmdir(base);
            print_message("no access control lists in /tmp\n");
            skip();
        }
        assert_string_equal(dress.reason, "");
        assert_int_equal(fgetxattr(folder, names[i], found, sizeof found), sizeof all);
        assert_int_equal(found[30], 5); /* the mask */
        assert_int_equal(found[38], 0); /* others */
        cli_tree_dress_clear(&dress);
    }
    int file = openat(folder, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_int_equal(fstat(file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_int_equal(unlinkat(folder, "f", 0) | rmdir(base), 0);
    close(file);
    close(folder);
    /* One that is cut off. */
    for (size_t bytes = 0; bytes < sizeof all; bytes++) {
        struct cli_tree_dress dress = {0};
        take(&dress, names[0], all, bytes);
        cli_tree_dress_put_on(&dress, to, 027);
        cli_tree_dress_clear(&dress);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_read_comes_back, open_files, close_files),
        cmocka_unit_test(hostile_names_are_refused),
        cmocka_unit_test(the_bytes_of_an_entry_are_bounded),
        cmocka_unit_test(owners_are_found_by_name_then_by_number),
        cmocka_unit_test(no_owner_is_the_last_number),
        cmocka_unit_test(a_group_of_many_members_has_its_name),
        cmocka_unit_test_setup_teardown(lists_permit_what_the_umask_does, open_files, close_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
