/*
 * test_path_file.c - the file of remembered paths: written whole, read whatever it is, never an error.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "history/path_file.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/paths_folder.h"

static const struct path_record sample = {
    .peer = "192.0.2.7", .local = "10.0.0.1", .rate_bps = 2000000000, .rtt_ns = 25 * LH_NS_PER_MS};

static bool known(struct path_record *found)
{
    lh_time age_ns;
    return path_file_read(paths_file, sample.peer, sample.local, found, &age_ns);
}

static void put_text(const char *text)
{
    FILE *out = fopen(paths_file, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct path_record found, other = sample;
    struct stat status;
    assert_false(known(&found));
    assert_true(path_file_write(paths_file, &sample));
    assert_true(known(&found));
    assert_true(found.rate_bps == sample.rate_bps && found.rtt_ns == sample.rtt_ns);
    strcpy(other.peer, "192.0.2.8");
    assert_true(path_file_write(paths_file, &other));
    assert_true(known(&found)); /* still */
    other = sample;
    other.rate_bps = 1000000;
    assert_true(path_file_write(paths_file, &other));
    assert_true(known(&found) && found.rate_bps == 1000000);
    /* Where somebody's connections go is nobody else's business. */
    assert_int_equal(stat(paths_file, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
}

static void the_age_is_by_the_wall_clock(void **state)
{
    (void)state;
    char text[160];
    struct path_record found;
    lh_time age_ns = 0;
    snprintf(text, sizeof text, "192.0.2.7 10.0.0.1 2000000000 25000000 %llu\n",
             (unsigned long long)time(NULL) - 3600);
    put_text(text);
    assert_true(path_file_read(paths_file, sample.peer, sample.local, &found, &age_ns));
    assert_in_range(age_ns / LH_NS_PER_S, 3600, 3600 + 600); /* a test may be slow */
    put_text("192.0.2.7 10.0.0.1 2000000000 25000000 9999999999\n");
    assert_false(known(&found));
}

/* The text of the file, whose bytes it returns. */
static size_t text_of(const char *file, char *out, size_t size)
{
    FILE *in = fopen(file, "r");
    assert_non_null(in);
    size_t bytes = fread(out, 1, size - 1, in);
    out[bytes] = 0;
    fclose(in);
    return bytes;
}

static void a_foreign_file_is_read_and_never_written(void **state)
{
    (void)state;
    static const char *const foreign[] = {
        "\x01\x02 not a file of paths",
        "\n",
        "# paths of longhau",
        " # paths of longhaul: \n",
        "192.0.2.9 10.0.0.1 2000000000 25000000 1\n",
    };
    struct path_record found;
    struct stat before, after;
    char text[160];
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        put_text(foreign[i]);
        assert_int_equal(stat(paths_file, &before), 0);
        assert_false(known(&found));
        assert_false(path_file_write(paths_file, &sample));
        assert_int_equal(text_of(paths_file, text, sizeof text), strlen(foreign[i]));
        assert_string_equal(text, foreign[i]);
        assert_int_equal(stat(paths_file, &after), 0);
        assert_true(after.st_ino == before.st_ino && after.st_mode == before.st_mode);
    }
}

static void an_empty_and_a_damaged_file_are_written(void **state)
{
    (void)state;
    struct path_record found;
    struct stat status;
    put_text("");
    assert_int_equal(chmod(paths_file, 0640), 0);
    assert_true(path_file_write(paths_file, &sample));
    assert_true(known(&found));
    put_text("# paths of longhaul, a later version\n\x01\x02\n");
    assert_true(path_file_write(paths_file, &sample));
    assert_true(known(&found));
    assert_int_equal(stat(paths_file, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640); /* as somebody wished it */
}

/* The link stays, and leads to the file that was written; one that leads nowhere stays, too. */
static void links_are_followed(void **state)
{
    (void)state;
    char link[sizeof paths_file + 8];
    struct path_record found;
    struct stat status;
    lh_time age_ns;
    snprintf(link, sizeof link, "%s.link", paths_file);
    assert_int_equal(symlink("paths", link), 0);
    assert_false(path_file_write(link, &sample));
    assert_true(path_file_write(paths_file, &sample));
    struct path_record other = sample;
    other.rate_bps = 1000000;
    assert_true(path_file_write(link, &other));
    assert_true(known(&found) && found.rate_bps == 1000000);
    assert_true(path_file_read(link, sample.peer, sample.local, &found, &age_ns));
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    put_text("precious");
    assert_false(path_file_write(link, &sample));
    assert_int_equal(unlink(link), 0);
}

/* Neither waits for a writer, nor takes its place: a device could be there as well. */
static void a_pipe_is_left_alone(void **state)
{
    (void)state;
    struct path_record found;
    struct stat status;
    assert_int_equal(mkfifo(paths_file, 0600), 0);
    assert_false(known(&found));
    assert_false(path_file_write(paths_file, &sample));
    assert_int_equal(stat(paths_file, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
}

static void the_longest_name_is_one(void **state)
{
    (void)state;
    char file[sizeof paths_file + 256];
    struct path_record found;
    lh_time age_ns;
    snprintf(file, sizeof file, "%.*s%0255d", (int)(strrchr(paths_file, '/') + 1 - paths_file), paths_file,
             0);
    assert_true(path_file_write(file, &sample));
    assert_true(path_file_read(file, sample.peer, sample.local, &found, &age_ns));
    assert_int_equal(unlink(file), 0);
}

static void where_nothing_can_be_written_nothing_is_left(void **state)
{
    (void)state;
    struct path_record found;
    assert_int_equal(mkdir(paths_file, 0700), 0); /* rename() cannot replace it */
    assert_false(path_file_write(paths_file, &sample));
    assert_false(known(&found));
    assert_false(path_file_write("/dev/null/paths", &sample));
    static char name[2 * PATH_FILE_NAME_MAX];
    memset(name, 'x', sizeof name - 1);
    assert_false(path_file_write(name, &sample));
    assert_false(path_file_read(name, sample.peer, sample.local, &found, &(lh_time){0}));
}

static void addresses_are_texts(void **state)
{
    (void)state;
    char text[PATH_HISTORY_ADDRESS_MAX];
    path_file_address(text, 4, (const uint8_t[16]){192, 0, 2, 7});
    assert_string_equal(text, "192.0.2.7");
    path_file_address(text, 6, (const uint8_t[16]){[15] = 1});
    assert_string_equal(text, "::1");
    path_file_address(text, 6, (const uint8_t[16]){[10] = 0xff, 0xff, 192, 0, 2, 7});
    assert_string_equal(text, "192.0.2.7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PATHS_FOLDER(what_is_written_is_read),
        WITH_PATHS_FOLDER(the_age_is_by_the_wall_clock),
        WITH_PATHS_FOLDER(a_foreign_file_is_read_and_never_written),
        WITH_PATHS_FOLDER(an_empty_and_a_damaged_file_are_written),
        WITH_PATHS_FOLDER(links_are_followed),
        WITH_PATHS_FOLDER(the_longest_name_is_one),
        WITH_PATHS_FOLDER(a_pipe_is_left_alone),
        WITH_PATHS_FOLDER(where_nothing_can_be_written_nothing_is_left),
        cmocka_unit_test(addresses_are_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
