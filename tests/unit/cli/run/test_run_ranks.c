/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/run/variables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_are_blocks),
        cmocka_unit_test(variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
