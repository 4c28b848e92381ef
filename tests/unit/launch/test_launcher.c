/*
 * test_launcher.c -
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <longhaul/error.h>

#include "launch/launcher.h"

/* ---- test host list -------------------------------------------------------------------------------- */

static void first_hosts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"node1", "node1"},
        {"node1,node2", "node1"},
        {"node[003-010,12],gpu1", "node003"},
        {"node[7]", "node7"},
        {"node[12,3-5]", "node12"},
        {"rack[1-2]node[04-09]", "rack1node04"},
        {"n[1-2].cluster.example,x", "n1.cluster.example"},
    };
    char host[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(host_list_first(cases[i][0], host, sizeof host));
        assert_string_equal(host, cases[i][1]);
    }
}

static void no_lists(void **state)
{
    (void)state;
    static const char *const cases[] = {"",        ",",      "node[",    "node[]",
                                        "node[x]", "node[1", "node[1x]", "node]"};
    char host[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_false(host_list_first(cases[i], host, sizeof host));
}

static void sizes(void **state)
{
    (void)state;
    char host[8];
    memset(host, 'x', sizeof host);
    assert_true(host_list_first("node[12-13]", host, 7));
    assert_string_equal(host, "node12");
    assert_int_equal(host[7], 'x');
    assert_false(host_list_first("node[12-13]", host, 6));
    assert_false(host_list_first("a", host, 1));
    assert_true(host_list_first("a,b", host, 2)); /* the shortest */
    assert_string_equal(host, "a");
    assert_false(host_list_first(",b", host, 2));
}

static int run_host_list(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_hosts),
        cmocka_unit_test(no_lists),
        cmocka_unit_test(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test interface filter ------------------------------------------------------------------------- */

static void validity(void **state)
{
    (void)state;
    static const char *const good[] = {"eth", "=eth0", "^docker,lo", "^=lo", "eth,ib,=x"};
    static const char *const bad[] = {"", "^", "=", "^=", "eth,", ",eth", "eth,,ib"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(interface_filter_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(interface_filter_valid(bad[i]));
}

static void prefixes(void **state)
{
    (void)state;
    assert_int_equal(interface_filter_match("eth,ib", "eth0"), 0);
    assert_int_equal(interface_filter_match("eth,ib", "ib3"), 1);
    assert_int_equal(interface_filter_match("eth,ib", "lo"), -1);
    assert_int_equal(interface_filter_match("eth1", "eth"), -1);
}

static void whole_names(void **state)
{
    (void)state;
    assert_int_equal(interface_filter_match("=eth1,eth0", "eth0"), 1);
    assert_int_equal(interface_filter_match("=eth1,eth0", "eth10"), -1);
    assert_int_equal(interface_filter_match("=eth1,eth0", "eth"), -1);
}

static void exclusions(void **state)
{
    (void)state;
    assert_int_equal(interface_filter_match("^docker,lo", "docker0"), -1);
    assert_int_equal(interface_filter_match("^docker,lo", "lo"), -1);
    assert_int_equal(interface_filter_match("^docker,lo", "eth0"), 0);
    assert_int_equal(interface_filter_match("^=lo", "lo0"), 0);
    assert_int_equal(interface_filter_match("^=lo", "lo"), -1);
}

static int run_interface_filter(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validity),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(whole_names),
        cmocka_unit_test(exclusions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- test launcher --------------------------------------------------------------------------------- */

/* The variables of each launcher, read from a table instead of the environment. */

/* "NAME=value\n…" */
static const char *get(void *context, const char *name)
{
    static char value[16][512];
    static unsigned next;
    size_t length = strlen(name);
    for (const char *line = context; *line; line += strcspn(line, "\n") + 1)
        if (!strncmp(line, name, length) && line[length] == '=') {
            char *out = value[next++ % 16];
            snprintf(out, sizeof *value, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
            return out;
        }
    return NULL;
}

static struct launcher_settings settings;

static void read_all(const char *variables)
{
    char copy[2048];
    snprintf(copy, sizeof copy, "%s\n", variables);
    if (launcher_read(get, copy, &settings))
        fail_msg("%s", lh_last_error());
}

static void expect(const char *variables, const char *launcher, uint32_t rank, uint32_t size,
                   const char *where)
{
    read_all(variables);
    assert_string_equal(settings.launcher, launcher);
    assert_int_equal(settings.rank, rank);
    assert_int_equal(settings.size, size);
    assert_string_equal(settings.where, where);
}

static void refuse(const char *variables, int error, const char *text)
{
    char copy[2048];
    snprintf(copy, sizeof copy, "%s\n", variables);
    assert_int_equal(launcher_read(get, copy, &settings), error);
    if (!strstr(lh_last_error(), text))
        fail_msg("\"%s\" is not in: %s", text, lh_last_error());
}

#define MASTER "MASTER_ADDR=10.0.0.1\nMASTER_PORT=4000\n"

static void launchers(void **state)
{
    (void)state;
    expect(MASTER "RANK=1\nWORLD_SIZE=4", "torchrun", 1, 4, "10.0.0.1:4000");
    expect(MASTER "OMPI_COMM_WORLD_RANK=3\nOMPI_COMM_WORLD_SIZE=4\nPMIX_RANK=3\nSLURM_PROCID=0", "Open MPI",
           3, 4, "10.0.0.1:4000");
    expect(MASTER "PMI_RANK=0\nPMI_SIZE=2", "MPICH", 0, 2, "10.0.0.1:4000");
    expect(MASTER "FLUX_TASK_RANK=5\nFLUX_JOB_SIZE=8", "Flux", 5, 8, "10.0.0.1:4000");
    expect(MASTER "SLURM_PROCID=5\nSLURM_NTASKS=8", "SLURM", 5, 8, "10.0.0.1:4000");
    expect(MASTER "SLURM_PROCID=1\nSLURM_NTASKS=8\nSLURM_STEP_NUM_TASKS=2", "SLURM", 1, 2, "10.0.0.1:4000");
    expect(MASTER "PMIX_RANK=1\nWORLD_SIZE=2", "PMIx", 1, 2, "10.0.0.1:4000");
}

static void rank_zero_without_an_address(void **state)
{
    (void)state;
    expect("OMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_LOCAL_SIZE=2", "Open MPI", 1, 2,
           "127.0.0.1:29500");
    expect("PMI_RANK=1\nPMI_SIZE=2\nMPI_LOCALNRANKS=2\nMASTER_PORT=7", "MPICH", 1, 2, "127.0.0.1:7");
    expect("FLUX_TASK_RANK=1\nFLUX_JOB_SIZE=2\nFLUX_JOB_NNODES=1", "Flux", 1, 2, "127.0.0.1:29500");
    expect("RANK=0\nWORLD_SIZE=1", "torchrun", 0, 1, "127.0.0.1:29500");
    expect("SLURM_PROCID=5\nSLURM_NTASKS=8\nSLURM_STEP_NODELIST=n[03-04]\nSLURM_JOB_NODELIST=n[01-04]",
           "SLURM", 5, 8, "n03:29500");
    refuse("PMI_RANK=1\nPMI_SIZE=4\nMPI_LOCALNRANKS=2", -LH_EINVAL,
           "MASTER_ADDR: not set, and MPICH does not contain the host of rank 0");
    refuse("RANK=1\nWORLD_SIZE=4", -LH_EINVAL, "MASTER_ADDR: not set (set it to the host of rank 0");
    refuse("SLURM_PROCID=5\nSLURM_NTASKS=8\nSLURM_JOB_NODELIST=n[", -LH_EINVAL,
           "SLURM_JOB_NODELIST: \"n[\"");
}

/* Jobs on one machine at once rarely meet at a port; ranks of a job always do. */
static void ports_of_jobs(void **state)
{
    (void)state;
    char first[LAUNCHER_WHERE_MAX];
    read_all("OMPI_COMM_WORLD_RANK=0\nOMPI_COMM_WORLD_SIZE=1\nPMIX_NAMESPACE=1222836225");
    strcpy(first, settings.where);
    read_all("OMPI_COMM_WORLD_RANK=0\nOMPI_COMM_WORLD_SIZE=1\nPMIX_NAMESPACE=1222836226");
    assert_string_not_equal(first, settings.where);
    unsigned port;
    assert_int_equal(sscanf(settings.where, "127.0.0.1:%u", &port), 1);
    assert_in_range(port, LAUNCHER_PORT_FIRST, LAUNCHER_PORT_FIRST + LAUNCHER_PORTS - 1);
}

static void port_beside_the_agent_of_torchrun(void **state)
{
    (void)state;
    expect(MASTER "RANK=1\nWORLD_SIZE=4\nTORCHELASTIC_USE_AGENT_STORE=True", "torchrun", 1, 4,
           "10.0.0.1:4001");
    expect(MASTER "RANK=1\nWORLD_SIZE=4\nTORCHELASTIC_USE_AGENT_STORE=False", "torchrun", 1, 4,
           "10.0.0.1:4000");
    refuse("MASTER_ADDR=h\nMASTER_PORT=65535\nRANK=1\nWORLD_SIZE=4\nTORCHELASTIC_USE_AGENT_STORE=True",
           -LH_EINVAL, "MASTER_PORT: 65535 is out of range (1 to 65534)");
}

static void where_rank_zero_listens(void **state)
{
    (void)state;
    read_all(MASTER "RANK=0\nWORLD_SIZE=2");
    assert_string_equal(settings.listen, ":4000");
    read_all("MASTER_ADDR=::1\nMASTER_PORT=4000\nRANK=0\nWORLD_SIZE=2");
    assert_string_equal(settings.where, "[::1]:4000");
    assert_string_equal(settings.listen, "[::1]:4000");
    read_all("MASTER_ADDR=127.0.0.1\nMASTER_PORT=4000\nRANK=0\nWORLD_SIZE=2");
    assert_string_equal(settings.listen, "127.0.0.1:4000");
}

static void own_variables(void **state)
{
    (void)state;
    read_all(MASTER "RANK=0\nWORLD_SIZE=2\nLONGHAUL_SITE=zurich\nLONGHAUL_SECRET=hush\n"
                    "LONGHAUL_SOCKET_IFNAME=^docker\nLONGHAUL_LINK=rtt=25ms,loss=1e-3");
    assert_string_equal(settings.site, "zurich");
    assert_string_equal(settings.secret, "hush");
    assert_string_equal(settings.interfaces, "^docker");
    assert_int_equal(settings.link.delay_ns, 12500000);
    read_all(MASTER "RANK=0\nWORLD_SIZE=2\nLONGHAUL_SITE=");
    assert_string_equal(settings.site, "");
    assert_string_equal(settings.secret, "");
    assert_true(lh_link_is_none(&settings.link));
}

#define HAND "RANK=0\nWORLD_SIZE=1\n"

static void expect_job(const char *variables, const char *job)
{
    read_all(variables);
    assert_string_equal(settings.job, job);
}

/* What tells two jobs with one MASTER_PORT apart. */
static void names_of_jobs(void **state)
{
    (void)state;
    char first[LAUNCHER_JOB_MAX];
    expect_job(HAND, "");
    expect_job(HAND "TORCHELASTIC_RUN_ID=none", ""); /* as torchrun sets it when the user gave none */
    expect_job(HAND "TORCHELASTIC_RUN_ID=none\nSLURM_JOB_ID=17", "SLURM_JOB_ID=17");
    expect_job(HAND "TORCHELASTIC_RUN_ID=7\nSLURM_JOB_ID=17", "TORCHELASTIC_RUN_ID=7");
    expect_job(HAND "SLURM_JOB_ID=17\nSLURM_STEP_ID=2", "SLURM_JOB_ID=17.2");
    expect_job(HAND "PMIX_NAMESPACE=a\tb", "PMIX_NAMESPACE=a?b");
    read_all(HAND "PMIX_NAMESPACE=0123456789012345678901234567890123456789012345678901234567890123x");
    assert_int_equal(strlen(settings.job), LAUNCHER_JOB_MAX - 1);
    strcpy(first, settings.job);
    read_all(HAND "PMIX_NAMESPACE=0123456789012345678901234567890123456789012345678901234567890123y");
    assert_string_not_equal(settings.job, first);
}

static void wrong_values(void **state)
{
    (void)state;
    char long_site[256];
    refuse("HOME=/", -LH_ESTATE, "no launcher");
    refuse("RANK=", -LH_ESTATE, "no launcher");
    refuse(MASTER "RANK=1", -LH_EINVAL, "WORLD_SIZE: not set, but RANK is 1");
    refuse(MASTER "PMIX_RANK=1", -LH_EINVAL, "WORLD_SIZE: not set, but PMIX_RANK is 1");
    refuse(MASTER "RANK=x\nWORLD_SIZE=2", -LH_EINVAL, "RANK: \"x\" is not a number");
    refuse(MASTER "RANK=-1\nWORLD_SIZE=2", -LH_EINVAL, "RANK: \"-1\" is not a number");
    refuse(MASTER "RANK=1 \nWORLD_SIZE=2", -LH_EINVAL, "RANK: \"1 \" is not a number");
    refuse(MASTER "RANK=2\nWORLD_SIZE=2", -LH_EINVAL, "RANK: 2 is out of range (0 to 1)");
    refuse(MASTER "RANK=0\nWORLD_SIZE=0", -LH_EINVAL, "WORLD_SIZE: 0 is out of range");
    expect(MASTER "RANK=255\nWORLD_SIZE=256", "torchrun", 255, 256, "10.0.0.1:4000");
    refuse(MASTER "RANK=0\nWORLD_SIZE=257", -LH_EINVAL, "WORLD_SIZE: 257 is out of range (1 to 256)");
    refuse(MASTER "RANK=0\nWORLD_SIZE=99999999999", -LH_EINVAL, "WORLD_SIZE: \"99999999999\"");
    refuse("MASTER_ADDR=h\nMASTER_PORT=0\nRANK=0\nWORLD_SIZE=2", -LH_EINVAL,
           "MASTER_PORT: 0 is out of range");
    refuse("MASTER_ADDR=h\nMASTER_PORT=http\nRANK=0\nWORLD_SIZE=2", -LH_EINVAL, "MASTER_PORT: \"http\"");
    refuse("MASTER_ADDR=a b\nRANK=0\nWORLD_SIZE=2", -LH_EINVAL, "MASTER_ADDR: \"a b\"");
    refuse(MASTER "RANK=0\nWORLD_SIZE=2\nLONGHAUL_SOCKET_IFNAME=eth,", -LH_EINVAL,
           "LONGHAUL_SOCKET_IFNAME: \"eth,\"");
    refuse(MASTER "RANK=0\nWORLD_SIZE=2\nLONGHAUL_LINK=rtt=5x", -LH_EINVAL, "LONGHAUL_LINK: ");
    snprintf(long_site, sizeof long_site, MASTER "RANK=0\nWORLD_SIZE=2\nLONGHAUL_SITE=%064d", 0);
    refuse(long_site, -LH_EINVAL, "LONGHAUL_SITE: 64 bytes: too long (at most 63)");
}

static int run_launcher(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers),
        cmocka_unit_test(rank_zero_without_an_address),
        cmocka_unit_test(ports_of_jobs),
        cmocka_unit_test(port_beside_the_agent_of_torchrun),
        cmocka_unit_test(where_rank_zero_listens),
        cmocka_unit_test(own_variables),
        cmocka_unit_test(names_of_jobs),
        cmocka_unit_test(wrong_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return run_host_list() + run_interface_filter() + run_launcher();
}
