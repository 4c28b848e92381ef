/*
 * test_tree_store.c - the output folder of a tree, by records that a hostile sender makes: nothing outside,
 * no link followed, no name for what is not whole.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/file/tree_store.h"

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
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/file/tree_beneath.h"
#include "cli/file/tree_changes.h"

static char base[64]; /* holds out, the output folder, and elsewhere */
static int out;
static struct cli_tree_options options;
static struct cli_tree_store store;

static int make_folders(void **state)
{
    char path[96];
    (void)state;
    snprintf(base, sizeof base, "/tmp/test_tree_store.XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(path, sizeof path, "%s/elsewhere", base);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/elsewhere/inside", base);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/out", base);
    mkdir(path, 0700);
    out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    options = (struct cli_tree_options){.folder = out, .pipe = -1, .umask = 022};
    umask(022);
    const struct cli_tree_record root = {.kind = CLI_TREE_ROOT, .number = CLI_TREE_VERSION};
    return cli_tree_store_open(&store, &options, &root) ? 0 : -1;
}

static int remove_folders(void **state)
{
    char command[192];
    (void)state;
    cli_tree_store_close(&store);
    close(out);
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", base, base);
    return system(command);
}

static struct cli_tree_record record_of(enum cli_tree_kind kind, const char *path, uint64_t size)
{
    return (struct cli_tree_record){
        .kind = kind,
        .attributes = {.known = true, .mode = 0666, .written = {.tv_sec = 1000, .tv_nsec = 5}},
        .size_bytes = size,
        .path = path,
        .path_bytes = strlen(path),
    };
}

static bool put(enum cli_tree_kind kind, const char *path)
{
    const struct cli_tree_record record = record_of(kind, path, 0);
    return kind == CLI_TREE_FOLDER ? cli_tree_store_folder(&store, &record)
                                   : cli_tree_store_folder_end(&store, &record);
}

static bool put_link(enum cli_tree_kind kind, const char *path, const char *target)
{
    /* Hard links: to a file of three bytes. */
    struct cli_tree_record record = record_of(kind, path, kind == CLI_TREE_HARD_LINK ? 3 : 0);
    record.rest = target;
    record.rest_bytes = strlen(target);
    return kind == CLI_TREE_LINK ? cli_tree_store_link(&store, &record)
                                 : cli_tree_store_hard_link(&store, &record);
}

static bool put_file(const char *path, const char *text)
{
    uint8_t digest[CLI_DIGEST_BYTES];
    const struct cli_tree_record record = record_of(CLI_TREE_FILE, path, strlen(text));
    cli_digest_of(text, strlen(text), digest);
    return cli_tree_store_begin(&store, &record) && cli_tree_store_data(&store, text, strlen(text)) &&
           cli_tree_store_end(&store, digest);
}

static bool holds(const char *path, const char *text)
{
    char found[64] = "";
    int file = openat(out, path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file >= 0 ? read(file, found, sizeof found - 1) : -1;
    if (file >= 0)
        close(file);
    return bytes >= 0 && !strcmp(found, text);
}

/* Nothing but the folder `inside` of elsewhere. */
static bool is_empty(const char *path)
{
    char command[192];
    snprintf(command, sizeof command, "[ -z \"$(find %s/%s -mindepth 1 ! -name inside)\" ]", base, path);
    return system(command) == 0;
}

static unsigned decision(const char *path, uint64_t size)
{
    struct cli_tree_record answer;
    const struct cli_tree_record listed = record_of(CLI_TREE_LISTED, path, size);
    cli_tree_store_decide(&store, &listed, &answer);
    return answer.kind == CLI_TREE_DECISIONS ? (unsigned)answer.number : 100u + answer.kind;
}

static void a_tree_is_written(void **state)
{
    struct stat status;
    (void)state;
    assert_int_equal(decision("a", 3), CLI_TREE_SEND);
    assert_true(put(CLI_TREE_FOLDER, "d"));
    assert_true(put_file("d/f", "one"));
    assert_true(put_link(CLI_TREE_LINK, "d/l", "../elsewhere"));
    assert_true(put_link(CLI_TREE_HARD_LINK, "h", "d/f"));
    assert_true(put(CLI_TREE_FOLDER_END, "d"));
    assert_true(holds("d/f", "one") && holds("h", "one"));
    assert_int_equal(fstatat(out, "d", &status, 0), 0);
    assert_int_equal(status.st_mtim.tv_sec, 1000);
    assert_int_equal(fstatat(out, "h", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0644);
    assert_int_equal(status.st_nlink, 2);
    assert_int_equal(status.st_mtim.tv_nsec, 5);
    assert_int_equal(decision("d/f", 3), CLI_TREE_SKIP);
    assert_int_equal(decision("d/f", 4), 100 + CLI_TREE_REFUSED);
}

/* The sender makes a link, and then sends what lies behind it. */
static void a_link_of_the_stream_is_not_followed(void **state)
{
    (void)state;
    assert_true(put_link(CLI_TREE_LINK, "d", "../elsewhere"));
    assert_false(put_file("d/f", "one"));
    assert_false(put_file("d/inside/f", "one"));
    assert_false(put(CLI_TREE_FOLDER, "d/inside/e"));
    assert_false(put(CLI_TREE_FOLDER_END, "d/inside"));
    assert_false(put(CLI_TREE_FOLDER, "d/e"));
    assert_false(put(CLI_TREE_FOLDER, "d"));
    assert_false(put(CLI_TREE_FOLDER_END, "d"));
    assert_false(put_link(CLI_TREE_LINK, "d/l", "x"));
    assert_true(put_file("g", "one"));
    assert_false(put_link(CLI_TREE_HARD_LINK, "d/h", "g"));
    assert_false(put_link(CLI_TREE_HARD_LINK, "h", "d/f"));
    assert_int_equal(decision("d/f", 3), 100 + CLI_TREE_REFUSED);
    assert_true(is_empty("elsewhere"));
}

/* A folder that is replaced by a link when it is known already. */
static void a_folder_that_becomes_a_link_is_not_followed(void **state)
{
    char path[96];
    (void)state;
    assert_true(put(CLI_TREE_FOLDER, "d"));
    assert_true(put_file("d/f", "one"));
    snprintf(path, sizeof path, "%s/elsewhere", base);
    assert_int_equal(renameat(out, "d", out, "other"), 0);
    assert_int_equal(symlinkat(path, out, "d"), 0);
    put_file("d/g", "two"); /* into the folder that was opened, under its new name */
    assert_false(put(CLI_TREE_FOLDER_END, "d"));
    assert_true(put_file("e", "three")); /* another folder comes between */
    assert_false(put_file("d/g", "two"));
    assert_true(is_empty("elsewhere"));
}

static void a_link_is_replaced_not_written_through(void **state)
{
    char path[96];
    struct stat status;
    (void)state;
    snprintf(path, sizeof path, "%s/elsewhere/victim", base);
    assert_int_equal(symlinkat(path, out, "f"), 0);
    assert_false(put_file("f", "one"));
    options.force = true;
    assert_true(put_file("f", "one"));
    assert_int_equal(fstatat(out, "f", &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(status.st_mode));
    assert_true(put_link(CLI_TREE_LINK, "f", "x"));
    assert_true(put_file("g", "two"));
    assert_true(put_link(CLI_TREE_HARD_LINK, "f", "g"));
    assert_true(holds("f", "two"));
    assert_true(is_empty("elsewhere"));
}

/* The file that the link is to was refused: what has its name is not the sender's. */
static void a_hard_link_to_another_file_is_refused(void **state)
{
    struct stat status;
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000, .tv_nsec = 6}};
    (void)state;
    assert_true(put_file("f", "four"));
    assert_false(put_link(CLI_TREE_HARD_LINK, "h", "f"));
    assert_true(put_file("g", "old"));
    assert_int_equal(utimensat(out, "g", times, 0), 0);
    assert_false(put_link(CLI_TREE_HARD_LINK, "h", "g"));
    assert_int_equal(mkfifoat(out, "p", 0600), 0);
    assert_false(put_link(CLI_TREE_HARD_LINK, "h", "p"));
    assert_true(put_link(CLI_TREE_LINK, "l", "f"));
    assert_false(put_link(CLI_TREE_HARD_LINK, "h", "l"));
    assert_int_equal(fstatat(out, "h", &status, AT_SYMLINK_NOFOLLOW), -1);
}

static void folders_are_never_replaced(void **state)
{
    (void)state;
    options.force = true;
    assert_true(put(CLI_TREE_FOLDER, "d"));
    assert_false(put_file("d", "one"));
    assert_false(put_link(CLI_TREE_LINK, "d", "x"));
    assert_true(put_file("f", "one"));
    assert_false(put_link(CLI_TREE_HARD_LINK, "d", "f"));
    assert_false(put(CLI_TREE_FOLDER, "f"));
    assert_int_equal(decision("d", 3), 100 + CLI_TREE_REFUSED);
}

static void reserved_and_hidden_names_are_refused(void **state)
{
    (void)state;
    assert_false(put_file(".f.longhaul-partial", "one"));
    assert_false(put_file("x.longhaul-commit", "one"));
    assert_false(put_file(".profile", "one"));
    assert_false(put(CLI_TREE_FOLDER, ".ssh"));
    assert_true(put(CLI_TREE_FOLDER, "d"));
    assert_true(put_file("d/.f", "one"));
    options.dotfiles = true;
    assert_true(put_file(".profile", "one"));
}

/* They would be in the way of a file that is written there. */
static void a_reserved_name_is_no_root(void **state)
{
    struct cli_tree_record root = {
        .kind = CLI_TREE_ROOT, .path = "r/.f.longhaul-partial", .path_bytes = 21};
    (void)state;
    cli_tree_store_close(&store);
    assert_false(cli_tree_store_open(&store, &options, &root));
    cli_tree_store_close(&store);
    root.path = "r/.f.longhaul-partial/f";
    root.path_bytes = 23;
    root.flags = CLI_TREE_PIPE;
    assert_true(cli_tree_store_open(&store, &options, &root));
    assert_false(cli_tree_store_begin(&store, &root));
    assert_int_equal(unlinkat(out, "r", AT_REMOVEDIR), 0);
}

/* Whatever is wrong with its content: no name, and nothing left. */
static void what_is_not_whole_gets_no_name(void **state)
{
    uint8_t digest[CLI_DIGEST_BYTES];
    struct cli_tree_record record = record_of(CLI_TREE_FILE, "f", 3);
    (void)state;
    cli_digest_of("two", 3, digest);
    assert_true(cli_tree_store_begin(&store, &record) && cli_tree_store_data(&store, "one", 3));
    assert_false(cli_tree_store_end(&store, digest));
    assert_true(cli_tree_store_begin(&store, &record));
    assert_false(cli_tree_store_data(&store, "long", 4));
    cli_digest_of("on", 2, digest);
    assert_true(cli_tree_store_begin(&store, &record) && cli_tree_store_data(&store, "on", 2));
    assert_false(cli_tree_store_end(&store, digest));
    assert_true(cli_tree_store_begin(&store, &record));
    assert_false(cli_tree_store_hole(&store, 3)); /* it is not sparse */
    record.flags = CLI_TREE_SPARSE;
    assert_true(cli_tree_store_begin(&store, &record));
    assert_false(cli_tree_store_hole(&store, UINT64_MAX));
    assert_true(cli_tree_store_begin(&store, &record));
    cli_tree_store_drop(&store, true);
    record.number = 1; /* it begins in the middle */
    assert_false(cli_tree_store_begin(&store, &record));
    record.number = UINT64_MAX;
    record.size_bytes = CLI_TREE_LARGE_BYTES + 1;
    record.flags = 0;
    assert_false(cli_tree_store_begin(&store, &record));
    assert_false(store.fatal);
    assert_true(is_empty("out"));
}

/* A folder of the receiver for all users stays one in which nobody removes what is another's. */
static void a_folder_keeps_its_own_bits(void **state)
{
    struct stat status;
    (void)state;
    assert_int_equal(mkdirat(out, "d", 0777), 0);
    assert_int_equal(fchmodat(out, "d", S_ISVTX | S_ISGID | 0777, 0), 0);
    assert_true(put(CLI_TREE_FOLDER, "d") && put(CLI_TREE_FOLDER_END, "d"));
    assert_int_equal(fstatat(out, "d", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, S_ISVTX | S_ISGID | 0644);
}

/* What lies on another file system than the output folder is known until it is synced. */
static void other_file_systems_are_synced(void **state)
{
    char path[96];
    (void)state;
    snprintf(path, sizeof path, "%s/out/m", base);
    assert_int_equal(mkdir(path, 0700), 0);
    if (mount("none", path, "tmpfs", 0, "size=1m"))
        skip();
    bool other = put_file("m/f", "one") && store.mounted >= 0;
    bool back = put_file("f", "one") && store.mounted < 0;
    bool synced =
        put_file("m/g", "one") && store.mounted >= 0 && cli_tree_store_sync(&store) && store.mounted < 0;
    cli_beneath_close(&store.data_at);
    assert_int_equal(umount(path), 0);
    assert_true(other);
    assert_true(back);
    assert_true(synced);
}

/* From here on this process finds a file system without O_TMPFILE. */
static bool forbid_unnamed_files(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof program / sizeof program[0], .filter = program};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* Links of the list come while a file is open: each has a temporary name of its own. */
static void files_with_temporary_names_are_whole(void **state)
{
    uint8_t digest[CLI_DIGEST_BYTES];
    const struct cli_tree_record record = record_of(CLI_TREE_FILE, "f", 3);
    (void)state;
    if (!forbid_unnamed_files())
        skip();
    cli_digest_of("one", 3, digest);
    assert_true(cli_tree_store_begin(&store, &record));
    assert_true(store.file.temporary_named);
    assert_true(put_link(CLI_TREE_LINK, "l", "x"));
    assert_true(cli_tree_store_data(&store, "one", 3) && cli_tree_store_end(&store, digest));
    assert_true(holds("f", "one"));
    assert_false(put_file("f", "two"));
    options.force = true;
    assert_true(put_file("f", "two") && holds("f", "two"));
    assert_true(cli_tree_store_begin(&store, &record));
    assert_true(put_link(CLI_TREE_LINK, "m", "x"));
    cli_tree_store_drop(&store, true);
    assert_int_equal(unlinkat(out, "f", 0) + unlinkat(out, "l", 0) + unlinkat(out, "m", 0), 0);
    assert_true(is_empty("out"));
}

/* Where openat2(2) is missing it is the same. */
static void both_paths_to_a_file_are_equal(void **state)
{
    static const struct {
        const char *path;
        int code;
    } cases[] = {{"d/f", 0},          {"", 0},       {"d", 0},       {"l/f", -ELOOP},
                 {"d/f/x", -ENOTDIR}, {"l", -ELOOP}, {"x", -ENOENT}, {"x/y", -ENOENT}};
    (void)state;
    assert_true(put(CLI_TREE_FOLDER, "d") && put_file("d/f", "one") &&
                put_link(CLI_TREE_LINK, "l", "../elsewhere"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int opened = cli_beneath_open(out, cases[i].path, O_RDONLY, 0);
        int walked = cli_beneath_walk(out, cases[i].path, O_RDONLY, 0);
        assert_int_equal(opened < 0, cases[i].code < 0);
        assert_int_equal(walked < 0, cases[i].code < 0);
        if (cases[i].code) {
            assert_int_equal(opened, cases[i].code);
            /* A link between is no folder to the walk. */
            assert_true(walked == cases[i].code || (walked == -ENOTDIR && cases[i].code == -ELOOP));
        } else {
            close(opened);
            close(walked);
        }
    }
}

/* Parts of the file that is replaced; no other bytes than the digest says. */
static void a_changed_file_is_put_together(void **state)
{
    const size_t size = CLI_TREE_LARGE_BYTES + 10;
    uint8_t digest[CLI_DIGEST_BYTES], *text = calloc(1, size);
    struct cli_tree_record answer, record = record_of(CLI_TREE_FILE, "f", size);
    struct stat status;
    char path[96];
    (void)state;
    snprintf(path, sizeof path, "%s/out/f", base);
    options.force = options.hashes = true;
    int old = openat(out, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(old, (off_t)size), 0);
    cli_tree_store_decide(&store, &record, &answer);
    assert_int_equal(answer.kind, CLI_TREE_CHANGES);
    assert_int_equal(answer.rest_bytes, CLI_TREE_CHANGES_HEADER + 128 * CLI_DIGEST_BYTES);
    /* Without its flag no copy; none before its data, none beyond the end. */
    assert_true(cli_tree_store_begin(&store, &record));
    assert_false(cli_tree_store_copy(&store, 1));
    record.flags = CLI_TREE_CHANGED;
    assert_true(cli_tree_store_begin(&store, &record));
    assert_false(cli_tree_store_copy(&store, size + 1));
    assert_true(cli_tree_store_begin(&store, &record));
    assert_true(cli_tree_store_copy(&store, 5000000));
    assert_true(cli_tree_store_data(&store, "data", 4));
    assert_true(cli_tree_store_copy(&store, size - 5000004));
    cli_digest_of(text, size, digest);
    assert_false(cli_tree_store_end(&store, digest));
    assert_true(cli_tree_store_begin(&store, &record));
    assert_true(cli_tree_store_copy(&store, 5000000) && cli_tree_store_data(&store, "data", 4));
    assert_true(cli_tree_store_copy(&store, size - 5000004));
    memcpy(text + 5000000, "data", 4);
    cli_digest_of(text, size, digest);
    assert_true(cli_tree_store_end(&store, digest));
    /* It shrinks; it is a link, or nothing, by then; a small file. */
    assert_true(cli_tree_store_begin(&store, &record));
    assert_int_equal(truncate(path, 1000), 0);
    assert_false(cli_tree_store_copy(&store, 5000));
    assert_non_null(strstr(store.reason, "shrank"));
    assert_int_equal(unlinkat(out, "f", 0) | symlinkat("../elsewhere", out, "f"), 0);
    assert_false(cli_tree_store_begin(&store, &record));
    assert_int_equal(unlinkat(out, "f", 0), 0);
    assert_false(cli_tree_store_begin(&store, &record));
    record.size_bytes = 10;
    assert_false(cli_tree_store_begin(&store, &record));
    assert_int_equal(fstatat(out, ".f.longhaul-partial", &status, 0), -1);
    free(text);
    close(old);
}

/* Who may not read the folder learns nothing of a file by comparing it. */
static void hashes_and_copies_need_permission(void **state)
{
    const size_t size = CLI_TREE_LARGE_BYTES + 10;
    struct cli_tree_record answer, record = record_of(CLI_TREE_FILE, "f", size);
    (void)state;
    options.force = true;
    int old = openat(out, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(old, (off_t)size), 0);
    close(old);
    cli_tree_store_decide(&store, &record, &answer);
    assert_int_equal(answer.kind, CLI_TREE_DECISIONS);
    assert_int_equal(answer.number, CLI_TREE_SEND);
    record.flags = CLI_TREE_CHANGED;
    assert_false(cli_tree_store_begin(&store, &record));
    assert_non_null(strstr(store.reason, "comes as a whole"));
}

/* A FIFO wakes who writes to it, a tape winds back. */
static void what_is_no_file_is_not_opened(void **state)
{
    char path[96], event[256];
    struct cli_tree_record answer, record = record_of(CLI_TREE_FILE, "p", CLI_TREE_LARGE_BYTES + 10);
    (void)state;
    options.force = options.hashes = true;
    assert_int_equal(mkfifoat(out, "p", 0600), 0);
    snprintf(path, sizeof path, "%s/out/p", base);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    cli_tree_store_decide(&store, &record, &answer);
    assert_int_equal(answer.kind, CLI_TREE_DECISIONS);
    record.flags = CLI_TREE_CHANGED;
    assert_false(cli_tree_store_begin(&store, &record));
    assert_int_equal(read(watch, event, sizeof event), -1);
    close(watch);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folders, remove_folders)
    const struct CMUnitTest tests[] = {
        TEST(a_tree_is_written),
        TEST(a_link_of_the_stream_is_not_followed),
        TEST(a_folder_that_becomes_a_link_is_not_followed),
        TEST(a_link_is_replaced_not_written_through),
        TEST(a_hard_link_to_another_file_is_refused),
        TEST(folders_are_never_replaced),
        TEST(reserved_and_hidden_names_are_refused),
        TEST(a_reserved_name_is_no_root),
        TEST(what_is_not_whole_gets_no_name),
        TEST(both_paths_to_a_file_are_equal),
        TEST(a_folder_keeps_its_own_bits),
        TEST(a_changed_file_is_put_together),
        TEST(hashes_and_copies_need_permission),
        TEST(what_is_no_file_is_not_opened),
        TEST(other_file_systems_are_synced),
        TEST(files_with_temporary_names_are_whole), /* the last: it cannot be undone */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
