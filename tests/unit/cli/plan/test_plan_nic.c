/*
 * test_plan_nic.c - what a transport costs a NIC, beside what the papers print.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "cli/plan/plan_parts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct cli_nic_design *design(const char *name)
{
    for (unsigned i = 0; i < CLI_NIC_DESIGNS; i++)
        if (!strcmp(cli_nic_designs[i].name, name))
            return &cli_nic_designs[i];
    fail_msg("no design is called %s", name);
    return NULL;
}

static struct cli_nic_derived derived(const char *name)
{
    return cli_nic_derive(design(name), CLI_NIC_SRAM_DEFAULT);
}

/* 4 MiB: OptiNIC 80K and 40K nodes as printed; IRN 7.0K instead of 8K. */
static void test_queue_pairs(void **state)
{
    (void)state;
    assert_int_equal(derived("OptiNIC").queue_pairs, 80659);
    assert_int_equal(derived("OptiNIC").nodes, 40329);
    assert_int_equal(derived("IRN").queue_pairs, 7037);
    assert_int_equal(derived("RoCE").queue_pairs, 10305);
    assert_int_equal(derived("UCCL").nodes, 40); /* 256 are printed */
    assert_int_equal(cli_nic_derive(design("OptiNIC"), 51).queue_pairs, 0);
}

/* The fit: within 0.2 % of Celeris' points, 2 % where the papers print rounded blocks. */
static void test_mtbf(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CLI_NIC_DESIGNS; i++) {
        const struct cli_nic_design *one = &cli_nic_designs[i];
        double off = cli_nic_off(derived(one->name).mtbf_hours, one->printed.mtbf_hours);
        assert_true(fabs(off) < (strstr(one->bram_source, "rounded") ? 0.02 : 0.002));
    }
    struct cli_nic_design irn = {
        .name = "IRN of Celeris", .state_bytes = 596, .connections_per_peer = 2, .bram = 1941.5};
    assert_true(fabs(cli_nic_off(cli_nic_derive(&irn, 1).mtbf_hours, 34.3)) < 0.002);
    assert_true(cli_nic_mtbf_stated_hours(design("RoCE")) < 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_pairs),
        cmocka_unit_test(test_mtbf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
