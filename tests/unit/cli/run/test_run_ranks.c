/*
 * test_run_ranks.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/run/run_ranks.h"

/* ---- test lines ------------------------------------------------------------------------------------ */

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

static int run_lines(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines),
        cmocka_unit_test(without_labels),
        cmocka_unit_test(long_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test variables -------------------------------------------------------------------------------- */

static void sites_are_blocks(void **state)
{
    (void)state;
    for (uint32_t ranks = 1; ranks <= 40; ranks++)
        for (uint32_t sites = 1; sites <= ranks; sites++) {
            const struct cli_run_job job = {.ranks = ranks, .sites = sites};
            uint32_t sizes[40] = {0};
            for (uint32_t rank = 0; rank < ranks; rank++) {
                uint32_t site = cli_run_site(&job, rank);
                assert_in_range(site, 0, sites - 1);
                assert_true(rank == 0 || site >= cli_run_site(&job, rank - 1));
                sizes[site]++;
            }
            for (uint32_t site = 0; site < sites; site++)
                assert_in_range(sizes[site], ranks / sites, (ranks + sites - 1) / sites);
        }
}

static void variables(void **state)
{
    (void)state;
    struct cli_run_job job = {.ranks = 4, .sites = 2, .port = 4000, .link = "rtt=25ms", .secret = "hush"};
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    setenv("LONGHAUL_SOCKET_IFNAME", "eth", 1);
    cli_run_set_variables(&job, 2);
    assert_string_equal(getenv("LONGHAUL_SOCKET_IFNAME"), "eth");
    assert_string_equal(getenv("RANK"), "2");
    assert_string_equal(getenv("WORLD_SIZE"), "4");
    assert_string_equal(getenv("MASTER_ADDR"), "127.0.0.1");
    assert_string_equal(getenv("MASTER_PORT"), "4000");
    assert_string_equal(getenv("LONGHAUL_SITE"), "site1");
    assert_string_equal(getenv("LONGHAUL_LINK"), "rtt=25ms");
    assert_string_equal(getenv("LONGHAUL_SECRET"), "hush");
    assert_null(getenv("TORCHELASTIC_USE_AGENT_STORE"));
    job.sites = 1;
    job.link = NULL;
    cli_run_set_variables(&job, 2);
    assert_null(getenv("LONGHAUL_SITE"));
    assert_null(getenv("LONGHAUL_LINK"));
}

static int run_variables(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_are_blocks),
        cmocka_unit_test(variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_lines() + run_variables();
}
