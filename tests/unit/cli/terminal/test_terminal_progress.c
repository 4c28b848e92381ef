/*
 * test_terminal_progress.c - the progress line: what it says, and that it fits.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/terminal/terminal.c"
#include "cli/terminal/terminal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

static struct cli_progress sample_progress(void)
{
    struct cli_progress progress = {
        .label = "a-rather-long-name-of-a-file.bin",
        .total_bytes = 1024 * MIB,
        .bytes_per_ns = 0.125, /* 1 Gbit/s */
    };
    return progress;
}

static void says_what_matters(void **state)
{
    char line[256];
    struct cli_progress progress = sample_progress();
    (void)state;
    cli_progress_line(&progress, 512 * MIB, 120, line, sizeof line);
    assert_non_null(strstr(line, "a-rather-long-name"));
    assert_non_null(strstr(line, " 50 %"));
    assert_non_null(strstr(line, "512MiB of 1GiB"));
    assert_non_null(strstr(line, "1Gbit/s"));
    assert_non_null(strstr(line, "0:04 left"));
    assert_non_null(strstr(line, "=>"));
}

static void fits_any_terminal(void **state)
{
    char line[256];
    struct cli_progress progress = sample_progress();
    (void)state;
    for (unsigned columns = 1; columns < 300; columns++)
        for (uint64_t share = 0; share <= 4; share++) {
            cli_progress_line(&progress, share * 256 * MIB, columns, line, sizeof line);
            assert_true(strlen(line) < columns);
        }
    /* The usual terminal has room for a bar. */
    cli_progress_line(&progress, 0, 80, line, sizeof line);
    assert_non_null(strstr(line, "[>"));
    assert_non_null(strstr(line, "left"));
}

static void long_names_show_head_and_tail(void **state)
{
    char line[512];
    struct cli_progress progress = sample_progress();
    (void)state;
    progress.label = "checkpoint-step-000123000-rank-0007.safetensors";
    for (unsigned columns = 60; columns <= 160; columns++) {
        cli_progress_line(&progress, 0, columns, line, sizeof line);
        assert_memory_equal(line, "check", 5);
        assert_non_null(strstr(line, columns < 146 ? "sors " : "rank-0007.safetensors "));
    }
    cli_progress_line(&progress, 0, 80, line, sizeof line);
    assert_memory_equal(line, "checkp...nsors  [>", 18);
    cli_progress_line(&progress, 0, 160, line, sizeof line);
    assert_non_null(strstr(line, progress.label));
}

/* "é" is one column in two bytes, \xE9 alone is no character. */
static void names_are_cut_between_characters(void **state)
{
    char line[512];
    struct cli_progress progress = sample_progress();
    (void)state;
    progress.label = "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3"
                     "\xA9\xC3\xA9\xC3\xA9.bin";
    cli_progress_line(&progress, 0, 80, line, sizeof line);
    assert_string_equal(strtok(line, " "),
                        "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9...\xC3\xA9.bin");
    progress.label = "\xE9\xE9\xE9\xE9\xE9\xE9\xE9\xE9\xE9\xE9\xE9\xE9.bin";
    cli_progress_line(&progress, 0, 80, line, sizeof line);
    assert_string_equal(strtok(line, " "), "\xE9\xE9\xE9\xE9\xE9\xE9...\xE9.bin");
    progress.label = "\xC3\xA9";
    cli_progress_line(&progress, 0, 80, line, sizeof line);
    assert_memory_equal(line, "\xC3\xA9               [>", 19);
    for (unsigned columns = 1; columns < 300; columns++) {
        cli_progress_line(&progress, 0, columns, line, sizeof line);
        assert_true(cli_text_columns(line) < columns);
    }
}

static void an_empty_file_and_no_rate_yet(void **state)
{
    char line[256];
    struct cli_progress progress = {.label = "empty"};
    (void)state;
    cli_progress_line(&progress, 0, 100, line, sizeof line);
    assert_non_null(strstr(line, "100 %"));
    assert_null(strstr(line, "left"));
}

/* What the terminal at stderr is sent meanwhile, as text. */
static void draw_two(struct cli_progress *one, struct cli_progress *other)
{
    cli_progress_start(one, "first", 4 * MIB, 0);
    cli_progress_start(other, "second", 4 * MIB, 0);
    for (int i = 0; i < 2; i++) {
        drawn_ns = 0; /* long ago */
        cli_progress_show(one, 2 * MIB);
    }
    cli_progress_clear(one);
    drawn_ns = 0;
    cli_progress_show(other, 3 * MIB);
    cli_progress_clear(other);
}

/* Bars of several transfers stand below each other: they are drawn in place, and erased together. */
static void several_bars(void **state)
{
    (void)state;
    struct cli_progress one, other;
    char seen[8192] = "";
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    assert_true(terminal >= 0 && saved >= 0);
    assert_int_equal(grantpt(terminal) | unlockpt(terminal), 0);
    int screen = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(screen >= 0);
    dup2(screen, STDERR_FILENO);
    draw_two(&one, &other);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(screen);
    size_t bytes = 0; /* a read may give a part of it; after all of it the end */
    for (ssize_t got = 1; got > 0 && bytes<sizeof seen - 1; bytes += got> 0 ? (size_t)got : 0)
        got = read(terminal, seen + bytes, sizeof seen - 1 - bytes);
    close(terminal);
    const char *again = strstr(seen, "\033[1A"), *erased = strstr(seen, "\033[J");
    assert_non_null(again);
    assert_non_null(erased);
    assert_true(strstr(seen, "first") < strstr(seen, "second"));
    assert_true(strstr(seen, "second") < again);
    assert_non_null(strstr(again, "first"));
    assert_null(strstr(erased, "first"));
    assert_non_null(strstr(erased, "second"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_matters),
        cmocka_unit_test(fits_any_terminal),
        cmocka_unit_test(long_names_show_head_and_tail),
        cmocka_unit_test(names_are_cut_between_characters),
        cmocka_unit_test(an_empty_file_and_no_rate_yet),
        cmocka_unit_test(several_bars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
