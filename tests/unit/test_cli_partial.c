/*
 * test_cli_partial.c - unfinished files: what stands under which name at each moment, and what a resumption
 * believes.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "../../cli/digest.c"
#include "../../cli/disk_space.c"
#include "../../cli/partial.c"
#include "../../cli/resume.c"
#include "../../cli/whole_io.c"

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
static uint8_t *data, *block;

static int set_up(void **state)
{
    (void)state;
    data = malloc(SIZE);
    block = malloc(CLI_BLOCK_BYTES);
    for (size_t i = 0; data && i < SIZE; i++)
        data[i] = (uint8_t)(i * 31 + (i >> 13));
    folder = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY) : -1;
    return !data || !block || folder < 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(data);
    free(block);
    close(folder);
    return rmdir(path);
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
    assert_true(cli_partial_check(&partial, block, &digest, never_stopped, &point));
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
    assert_true(cli_partial_commit(&partial));
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
    assert_true(cli_partial_commit(&partial));
    unlinkat(folder, "f", 0);
}

static void one_that_appears_meanwhile_stays_too(void **state)
{
    struct cli_partial partial;
    (void)state;
    assert_true(cli_partial_open(&partial, folder, "f", 0, false, false));
    put_file("f");
    assert_false(cli_partial_commit(&partial));
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
        cmocka_unit_test(resumption_believes_what_is_right),
        cmocka_unit_test(resumption_stops_at_damage),
        cmocka_unit_test(without_resume_an_old_one_is_replaced),
        cmocka_unit_test(no_file_is_longer_than_files_can_be),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
