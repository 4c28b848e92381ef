/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct cli_lines lines;
static char *text;
static size_t length;

static void start(int rank)
{
    lines = (struct cli_lines){.rank = rank, .out = open_memstream(&text, &length)};
}

static void expect(const char *wanted)
{
    fclose(lines.out);
    assert_string_equal(text, wanted);
    free(text);
}

static void take(const char *bytes)
{
    cli_lines_take(&lines, bytes, strlen(bytes));
}

static void whole_lines(void **state)
{
    (void)state;
    start(3);
    take("a");
    fflush(lines.out);
    assert_int_equal(length, 0);
    take("b\nc\n\nd");
    cli_lines_end(&lines);
    cli_lines_end(&lines);
    expect("[3] ab\n[3] c\n[3] \n[3] d\n");
}

static void without_labels(void **state)
{
    (void)state;
    start(-1);
    take("a\nb");
    cli_lines_end(&lines);
    expect("a\nb\n");
}

/* A line beyond the limit comes in parts, with one label. */
static void long_line(void **state)
{
    (void)state;
    char *long_text = malloc(CLI_LINE_MAX + 4), *wanted = malloc(CLI_LINE_MAX + 16);
    memset(long_text, 'x', CLI_LINE_MAX + 2);
    strcpy(long_text + CLI_LINE_MAX + 2, "\n");
    start(0);
    take(long_text);
    take("y\n");
    snprintf(wanted, CLI_LINE_MAX + 16, "[0] %s[0] y\n", long_text);
    expect(wanted);
    start(0);
    long_text[CLI_LINE_MAX] = '\0';
    take(long_text);
    cli_lines_end(&lines);
    snprintf(wanted, CLI_LINE_MAX + 16, "[0] %s\n", long_text);
    expect(wanted);
    free(long_text);
    free(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines),
        cmocka_unit_test(without_labels),
        cmocka_unit_test(long_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
