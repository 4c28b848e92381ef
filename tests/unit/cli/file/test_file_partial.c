/*
 * test_file_partial.c - unfinished files: what stands under which name at each moment, and what a resumption
 * believes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* File systems without hard links or without permissions, and other processes at the worst moment. */
#define linkat    linkat_or_not
#define renameat2 renameat2_after
#define fchmod    fchmod_or_not
static int linkat_or_not(int from_folder, const char *from, int to_folder, const char *to, int flags);
static int renameat2_after(int from_folder, const char *from, int to_folder, const char *to,
                           unsigned flags);
static int fchmod_or_not(int file, mode_t mode);
#include "cli/file/file_blocks.h"
#include "cli/file/file_names.c"
#include "cli/file/file_partial.c"
#include "cli/file/file_partial.h"
#include "cli/terminal/terminal.h"
#undef linkat
#undef renameat2
#undef fchmod

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#define BLOCKS 3
#define TAIL   100
#define SIZE   (BLOCKS * CLI_BLOCK_BYTES + TAIL)

static char path[] = "/tmp/test_cli_partial.XXXXXX";
static int folder;
static uint8_t *data, *test_block;

static int set_up(void **state)
{
    (void)state;
    data = malloc(SIZE);
    test_block = malloc(CLI_BLOCK_BYTES);
    for (size_t i = 0; data && i < SIZE; i++)
        data[i] = (uint8_t)(i * 31 + (i >> 13));
    folder = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY) : -1;
    return !data || !test_block || folder < 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(data);
    free(test_block);
    close(folder);
    return rmdir(path);
}

static int link_error; /* 0: hard links are supported */
static bool no_modes;
static void (*meanwhile)(void); /* happens once, just before the file is linked or renamed */

static void let_happen(void)
{
    void (*happens)(void) = meanwhile;
    meanwhile = NULL;
    if (happens)
        happens();
}

static int linkat_or_not(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    if (link_error) {
        errno = link_error;
        return -1;
    }
    let_happen();
    return linkat(from_folder, from, to_folder, to, flags);
}

static int renameat2_after(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    let_happen();
    return renameat2(from_folder, from, to_folder, to, flags);
}

static int fchmod_or_not(int file, mode_t mode)
{
    errno = EPERM;
    return no_modes ? -1 : fchmod(file, mode);
}

static bool exists(const char *name)
{
    return !faccessat(folder, name, F_OK, 0);
}

static void put_file(const char *name)
{
    int file = openat(folder, name, O_WRONLY | O_CREAT, 0644);
    assert_true(file >= 0);
    close(file);
}

static int never_stopped(void)
{
    return 0;
}

/* Writes the first blocks with their records, as a receiver does. */
static void write_blocks(struct cli_partial *partial, unsigned blocks)
{
    struct cli_digest digest;
    uint8_t found[CLI_DIGEST_BYTES];
    assert_int_equal(cli_digest_open(&digest), 0);
    for (unsigned i = 0; i < blocks; i++) {
        cli_digest_add(&digest, data + i * CLI_BLOCK_BYTES, CLI_BLOCK_BYTES);
        cli_digest_get(&digest, found);
        assert_true(
            cli_partial_write(partial, i * CLI_BLOCK_BYTES, data + i * CLI_BLOCK_BYTES, CLI_BLOCK_BYTES));
        assert_true(cli_partial_record(partial, i, found));
    }
    cli_digest_close(&digest);
}

/* Leaves an unfinished file of that many blocks, as a process that was killed does. */
static void leave(unsigned blocks)
{
    struct cli_partial partial;
    assert_true(cli_partial_open(&partial, folder, "f", SIZE, false, false));
    write_blocks(&partial, blocks);
    close_both(&partial);
}

/* How many blocks a resumption believes; deletes what is there. */
static uint64_t believed(uint64_t size_bytes)
{
    struct cli_partial partial;
    struct cli_digest digest, expected;
    struct cli_resume_point point;
    uint8_t here[CLI_DIGEST_BYTES], there[CLI_DIGEST_BYTES];
    assert_true(cli_partial_open(&partial, folder, "f", size_bytes, false, true));
    assert_int_equal(cli_digest_open(&digest), 0);
    assert_true(cli_partial_check(&partial, UINT64_MAX, test_block, &digest, never_stopped, &point));
    /* The digest has taken in just what is believed, so that it can go on from there. */
    assert_int_equal(cli_digest_open(&expected), 0);
    cli_digest_add(&expected, data, point.blocks * CLI_BLOCK_BYTES);
    cli_digest_get(&digest, here);
    cli_digest_get(&expected, there);
    assert_memory_equal(here, there, sizeof here);
    if (point.blocks)
        assert_memory_equal(point.digest, there, sizeof there);
    cli_digest_close(&digest);
    cli_digest_close(&expected);
    cli_partial_abandon(&partial, false);
    assert_false(exists(".f.longhaul-partial"));
    return point.blocks;
}

static void the_name_appears_at_the_end(void **state)
{
    struct cli_partial partial;
    (void)state;
    assert_true(cli_partial_open(&partial, folder, "f", SIZE, false, false));
    write_blocks(&partial, BLOCKS);
    assert_true(
        cli_partial_write(&partial, BLOCKS * CLI_BLOCK_BYTES, data + BLOCKS * CLI_BLOCK_BYTES, TAIL));
    assert_false(exists("f"));
    assert_true(exists(".f.longhaul-partial"));
    assert_true(cli_partial_commit(&partial, 0644, NULL));
    assert_true(exists("f"));
    assert_false(exists(".f.longhaul-partial"));
    assert_false(exists(".f.longhaul-resume"));
    unlinkat(folder, "f", 0);
}

static void abandoned_files_go_or_stay(void **state)
{
    struct cli_partial partial;
    (void)state;
    for (int keep = 0; keep < 2; keep++)
        for (unsigned blocks = 0; blocks < 2; blocks++) {
            assert_true(cli_partial_open(&partial, folder, "f", SIZE, false, false));
            write_blocks(&partial, blocks);
            cli_partial_abandon(&partial, keep);
            assert_false(exists("f"));
            assert_int_equal(exists(".f.longhaul-partial"), keep && blocks);
            assert_int_equal(exists(".f.longhaul-resume"), keep && blocks);
        }
    assert_int_equal(believed(SIZE), 1);
}

static void existing_files_stay(void **state)
{
    struct cli_partial partial;
    (void)state;
    put_file("f");
    assert_false(cli_partial_open(&partial, folder, "f", SIZE, false, false));
    assert_non_null(strstr(partial.reason, "exists"));
    assert_false(exists(".f.longhaul-partial"));
    assert_true(cli_partial_open(&partial, folder, "f", 0, true, false));
    assert_true(cli_partial_commit(&partial, 0644, NULL));
    unlinkat(folder, "f", 0);
}

static void one_that_appears_meanwhile_stays_too(void **state)
{
    struct cli_partial partial;
    (void)state;
    assert_true(cli_partial_open(&partial, folder, "f", 0, false, false));
    put_file("f");
    assert_false(cli_partial_commit(&partial, 0644, NULL));
    cli_partial_abandon(&partial, false);
    assert_false(exists(".f.longhaul-partial"));
    unlinkat(folder, "f", 0);
}

static void folders_are_never_replaced(void **state)
{
    struct cli_partial partial;
    (void)state;
    assert_int_equal(mkdirat(folder, "f", 0755), 0);
    assert_false(cli_partial_open(&partial, folder, "f", SIZE, true, false));
    unlinkat(folder, "f", AT_REMOVEDIR);
}

static void two_at_a_time_cannot_be(void **state)
{
    struct cli_partial one, other;
    (void)state;
    assert_true(cli_partial_open(&one, folder, "f", SIZE, false, false));
    assert_false(cli_partial_open(&other, folder, "f", SIZE, false, false));
    assert_non_null(strstr(other.reason, "another transfer"));
    assert_true(exists(".f.longhaul-partial"));
    cli_partial_abandon(&one, false);
}

static void links_are_not_followed(void **state)
{
    struct cli_partial partial;
    (void)state;
    put_file("victim");
    assert_int_equal(symlinkat("victim", folder, ".f.longhaul-partial"), 0);
    assert_false(cli_partial_open(&partial, folder, "f", SIZE, false, false));
    unlinkat(folder, ".f.longhaul-partial", 0);
    assert_int_equal(symlinkat("victim", folder, ".f.longhaul-resume"), 0);
    assert_false(cli_partial_open(&partial, folder, "f", SIZE, false, false));
    assert_true(exists("victim"));
    unlinkat(folder, ".f.longhaul-resume", 0);
    unlinkat(folder, "victim", 0);
}

/* ---- names that others remove and take ---------------------------------------------------------------- */

/* A small file with this byte in it, ready to be committed. */
static void begin(struct cli_partial *partial, char byte, bool force)
{
    assert_true(cli_partial_open(partial, folder, "f", 1, force, false));
    assert_true(cli_partial_write(partial, 0, &byte, 1));
}

static bool holds(const char *name, char byte)
{
    char found[2] = "";
    int file = openat(folder, name, O_RDONLY);
    bool same = file >= 0 && read(file, found, 2) == 1 && found[0] == byte;
    close(file);
    return same;
}

/* Nothing is left but the file, which is removed. */
static void expect_only(const char *name)
{
    assert_int_equal(unlinkat(folder, name, 0), 0);
    assert_false(exists("f"));
    assert_false(exists(".f.longhaul-partial"));
    assert_false(exists(".f.longhaul-resume"));
    assert_false(exists(".f.longhaul-commit"));
}

static void what_was_removed_is_not_committed(void **state)
{
    struct cli_partial partial;
    (void)state;
    for (int force = 0; force < 2; force++) {
        begin(&partial, 'a', force);
        unlinkat(folder, ".f.longhaul-partial", 0);
        assert_false(cli_partial_commit(&partial, 0644, NULL));
        assert_non_null(strstr(partial.reason, "was removed"));
        cli_partial_abandon(&partial, true);
        assert_false(exists("f"));
        unlinkat(folder, ".f.longhaul-resume", 0);
    }
}

static void another_transfers_file_is_not_committed(void **state)
{
    struct cli_partial one, other;
    (void)state;
    for (int linked = 0; linked < 2; linked++)
        for (int force = 0; force < 2; force++) {
            link_error = linked ? 0 : EPERM;
            begin(&one, 'a', force);
            unlinkat(folder, ".f.longhaul-partial", 0);
            begin(&other, 'b', force);
            assert_false(cli_partial_commit(&one, 0644, NULL));
            assert_false(exists("f"));
            cli_partial_abandon(&one, false);
            assert_true(holds(".f.longhaul-partial", 'b'));
            assert_true(exists(".f.longhaul-resume"));
            assert_true(cli_partial_commit(&other, 0644, NULL));
            assert_true(holds("f", 'b'));
            expect_only("f");
        }
    link_error = 0;
}

static void one_that_lost_its_name_but_lives_is_committed(void **state)
{
    struct cli_partial partial;
    (void)state;
    begin(&partial, 'a', false);
    assert_int_equal(renameat(folder, ".f.longhaul-partial", folder, "moved"), 0);
    assert_true(cli_partial_commit(&partial, 0644, NULL));
    assert_true(holds("f", 'a'));
    unlinkat(folder, "moved", 0);
    expect_only("f");
}

static void take_name(void)
{
    unlinkat(folder, ".f.longhaul-partial", 0);
    put_file(".f.longhaul-partial");
}

static void a_name_taken_at_the_last_moment_is_found_out(void **state)
{
    struct cli_partial partial;
    (void)state;
    /* Without hard links it is renamed, and what was renamed is looked at. */
    link_error = EOPNOTSUPP;
    begin(&partial, 'a', false);
    meanwhile = take_name;
    assert_false(cli_partial_commit(&partial, 0644, NULL));
    assert_non_null(strstr(partial.reason, "was replaced"));
    cli_partial_abandon(&partial, false);
    link_error = 0;
    assert_false(exists("f"));
    expect_only(".f.longhaul-partial");
}

static void fill_name(void)
{
    put_file("f");
}

static void a_final_name_taken_at_the_last_moment_stays(void **state)
{
    struct cli_partial partial;
    (void)state;
    for (int linked = 0; linked < 2; linked++) {
        link_error = linked ? 0 : EPERM;
        begin(&partial, 'a', false);
        meanwhile = fill_name;
        assert_false(cli_partial_commit(&partial, 0644, NULL));
        assert_non_null(strstr(partial.reason, "was created meanwhile"));
        cli_partial_abandon(&partial, false);
        assert_false(holds("f", 'a'));
        expect_only("f");
    }
    link_error = 0;
}

static void force_replaces(void **state)
{
    struct cli_partial partial;
    (void)state;
    for (int linked = 0; linked < 2; linked++)
        for (int leftover = 0; leftover < 2; leftover++) {
            link_error = linked ? 0 : EPERM;
            put_file("f");
            if (leftover && linked)
                put_file(".f.longhaul-commit");
            begin(&partial, 'a', true);
            assert_true(cli_partial_commit(&partial, 0644, NULL));
            assert_true(holds("f", 'a'));
            expect_only("f");
        }
    link_error = 0;
}

/* Killed while the file had two names: the next transfer goes on, or starts afresh. */
static void a_kill_between_two_names_blocks_nobody(void **state)
{
    const char *const second[] = {"f", ".f.longhaul-commit"};
    struct cli_partial partial;
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin(&partial, 'a', false);
        assert_int_equal(linkat(folder, ".f.longhaul-partial", folder, second[i], 0), 0);
        close_both(&partial);
        assert_true(cli_partial_open(&partial, folder, "f", 1, true, true));
        assert_int_equal(partial.found_bytes, i); /* what stands under the final name is left alone */
        assert_true(cli_partial_write(&partial, 0, "b", 1));
        assert_true(i || holds("f", 'a'));
        assert_true(cli_partial_commit(&partial, 0644, NULL));
        assert_true(holds("f", 'b'));
        expect_only("f");
    }
}

static void expect_in_the_way(const char *what)
{
    struct cli_partial partial;
    for (int resume = 0; resume < 2; resume++) {
        assert_false(cli_partial_open(&partial, folder, "f", SIZE, true, resume));
        if (!strstr(partial.reason, what) || !strstr(partial.reason, "remove .f.longhaul-"))
            fail_msg("%s", partial.reason);
    }
}

static void what_others_planted_is_not_written_to(void **state)
{
    const char *const names[] = {".f.longhaul-partial", ".f.longhaul-resume"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        int file = openat(folder, "victim", O_WRONLY | O_CREAT, 0644);
        assert_int_equal(write(file, "v", 1), 1);
        close(file);
        assert_int_equal(linkat(folder, "victim", folder, names[i], 0), 0);
        expect_in_the_way("hard links");
        unlinkat(folder, names[i], 0);
        assert_int_equal(symlinkat("victim", folder, names[i]), 0);
        expect_in_the_way("symbolic link");
        unlinkat(folder, names[i], 0);
        assert_int_equal(mkfifoat(folder, names[i], 0644), 0);
        expect_in_the_way("pipe");
        unlinkat(folder, names[i], 0);
        assert_true(holds("victim", 'v'));
        expect_only("victim");
    }
}

static void what_others_own_is_not_written_to(void **state)
{
    const char *const names[] = {".f.longhaul-partial", ".f.longhaul-resume"};
    (void)state;
    if (geteuid())
        skip(); /* only root can give files away */
    for (int i = 0; i < 2; i++) {
        put_file(names[i]);
        assert_int_equal(fchownat(folder, names[i], 65534, 65534, 0), 0);
        expect_in_the_way("another user");
        expect_only(names[i]);
    }
}

/* ---- permissions and times ----------------------------------------------------------------------------- */

static mode_t mode_of(const char *name)
{
    struct stat status;
    assert_int_equal(fstatat(folder, name, &status, 0), 0);
    return status.st_mode & 07777;
}

static void others_cannot_read_what_is_unfinished(void **state)
{
    struct cli_partial partial;
    mode_t mask = umask(0);
    (void)state;
    begin(&partial, 'a', false);
    umask(mask);
    assert_int_equal(mode_of(".f.longhaul-partial"), 0600);
    assert_int_equal(mode_of(".f.longhaul-resume"), 0600);
    cli_partial_abandon(&partial, false);
    /* Of an older version. */
    put_file(".f.longhaul-partial");
    put_file(".f.longhaul-resume");
    assert_true(cli_partial_open(&partial, folder, "f", 1, false, true));
    assert_int_equal(mode_of(".f.longhaul-partial"), 0600);
    assert_int_equal(mode_of(".f.longhaul-resume"), 0600);
    cli_partial_abandon(&partial, false);
}

static void mode_and_time_are_as_given(void **state)
{
    const mode_t modes[] = {0, 0444, 0600, 0644, 0755, 0777};
    const struct timespec written = {.tv_sec = 1234567890, .tv_nsec = 123456000};
    struct cli_partial partial;
    struct stat status;
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        begin(&partial, 'a', false);
        assert_true(cli_partial_commit(&partial, modes[i], &written));
        assert_false(partial.attributes_lost);
        assert_int_equal(fstatat(folder, "f", &status, 0), 0);
        assert_int_equal(status.st_mode & 07777, modes[i]);
        assert_int_equal(status.st_mtim.tv_sec, written.tv_sec);
        assert_int_equal(status.st_mtim.tv_nsec, written.tv_nsec);
        expect_only("f");
    }
}

static void a_file_system_without_modes_takes_files_too(void **state)
{
    struct cli_partial partial;
    (void)state;
    no_modes = true;
    begin(&partial, 'a', false);
    assert_true(cli_partial_commit(&partial, 0640, NULL));
    no_modes = false;
    assert_true(partial.attributes_lost);
    expect_only("f");
}

/* ---- resumption ---------------------------------------------------------------------------------------- */

static void what_is_kept_takes_no_more_room_than_it_needs(void **state)
{
    struct cli_partial partial;
    struct stat status;
    (void)state;
    assert_true(cli_partial_open(&partial, folder, "f", SIZE, false, false));
    write_blocks(&partial, 1);
    assert_true(cli_partial_write(&partial, CLI_BLOCK_BYTES, data, TAIL));
    assert_int_equal(cli_partial_abandon(&partial, true), CLI_BLOCK_BYTES);
    assert_int_equal(fstatat(folder, ".f.longhaul-partial", &status, 0), 0);
    assert_int_equal(status.st_size, CLI_BLOCK_BYTES);
    assert_true((uint64_t)status.st_blocks * 512 < CLI_BLOCK_BYTES + 65536);
    assert_int_equal(believed(SIZE), 1);
}

static void one_that_does_not_fit_leaves_the_earlier_one(void **state)
{
    struct cli_partial partial;
    (void)state;
    leave(2);
    assert_false(cli_partial_open(&partial, folder, "f", UINT64_MAX, false, false));
    assert_int_equal(believed(SIZE), 2);
}

static void what_is_replaced_is_known(void **state)
{
    struct cli_partial partial;
    (void)state;
    leave(2);
    assert_true(cli_partial_open(&partial, folder, "f", SIZE, false, false));
    assert_int_equal(partial.found_bytes, 2 * CLI_BLOCK_BYTES);
    assert_int_equal(cli_partial_abandon(&partial, true), 0);
    assert_true(cli_partial_open(&partial, folder, "f", SIZE, false, false));
    assert_int_equal(partial.found_bytes, 0);
    cli_partial_abandon(&partial, false);
}

static void resumption_believes_what_is_right(void **state)
{
    (void)state;
    leave(0);
    assert_int_equal(believed(SIZE), 0);
    leave(2);
    assert_int_equal(believed(SIZE), 2);
    leave(3);
    assert_int_equal(believed(SIZE), 3);
    leave(2);
    assert_int_equal(believed(SIZE + 1), 0); /* another file */
}

static void damage_name(const char *name, off_t place)
{
    uint8_t byte;
    int file = openat(folder, name, O_RDWR);
    assert_int_equal(pread(file, &byte, 1, place), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, place), 1);
    close(file);
}

static void cut_partial(off_t bytes)
{
    int file = openat(folder, ".f.longhaul-partial", O_RDWR);
    assert_int_equal(ftruncate(file, bytes), 0);
    close(file);
}

static void resumption_stops_at_damage(void **state)
{
    (void)state;
    leave(3);
    damage_name(".f.longhaul-partial", CLI_BLOCK_BYTES + 5);
    assert_int_equal(believed(SIZE), 1);
    leave(3);
    damage_name(".f.longhaul-resume", RESUME_HEADER + 2 * CLI_DIGEST_BYTES);
    assert_int_equal(believed(SIZE), 2);
    leave(3);
    damage_name(".f.longhaul-resume", 3);
    assert_int_equal(believed(SIZE), 0);
    leave(3);
    cut_partial(2 * CLI_BLOCK_BYTES - 1);
    assert_int_equal(believed(SIZE), 1);
}

static void without_resume_an_old_one_is_replaced(void **state)
{
    struct cli_partial partial;
    (void)state;
    leave(2);
    assert_true(cli_partial_open(&partial, folder, "f", SIZE, false, false));
    close_both(&partial);
    assert_int_equal(believed(SIZE), 0);
}

static void no_file_is_longer_than_files_can_be(void **state)
{
    struct cli_partial partial;
    (void)state;
    assert_false(cli_partial_open(&partial, folder, "f", UINT64_MAX, false, false));
    assert_false(cli_partial_open(&partial, folder, "f", (uint64_t)1 << 62, false, false));
    assert_false(exists(".f.longhaul-partial"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_appears_at_the_end),
        cmocka_unit_test(abandoned_files_go_or_stay),
        cmocka_unit_test(existing_files_stay),
        cmocka_unit_test(one_that_appears_meanwhile_stays_too),
        cmocka_unit_test(folders_are_never_replaced),
        cmocka_unit_test(two_at_a_time_cannot_be),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(what_was_removed_is_not_committed),
        cmocka_unit_test(another_transfers_file_is_not_committed),
        cmocka_unit_test(one_that_lost_its_name_but_lives_is_committed),
        cmocka_unit_test(a_name_taken_at_the_last_moment_is_found_out),
        cmocka_unit_test(a_final_name_taken_at_the_last_moment_stays),
        cmocka_unit_test(force_replaces),
        cmocka_unit_test(a_kill_between_two_names_blocks_nobody),
        cmocka_unit_test(what_others_planted_is_not_written_to),
        cmocka_unit_test(what_others_own_is_not_written_to),
        cmocka_unit_test(others_cannot_read_what_is_unfinished),
        cmocka_unit_test(mode_and_time_are_as_given),
        cmocka_unit_test(a_file_system_without_modes_takes_files_too),
        cmocka_unit_test(what_is_kept_takes_no_more_room_than_it_needs),
        cmocka_unit_test(one_that_does_not_fit_leaves_the_earlier_one),
        cmocka_unit_test(what_is_replaced_is_known),
        cmocka_unit_test(resumption_believes_what_is_right),
        cmocka_unit_test(resumption_stops_at_damage),
        cmocka_unit_test(without_resume_an_old_one_is_replaced),
        cmocka_unit_test(no_file_is_longer_than_files_can_be),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
