/*
 * test_flow_list.c - the order of a list of flows.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "netsim/base/flow_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"

#define COUNT 300

/* All lengths, few different starts: the order of equal ones shows in `bytes`. */
static void test_sort_is_stable(void **state)
{
    (void)state;
    static struct netsim_flow_request flows[COUNT];
    static struct netsim_flow_request scratch[COUNT];
    struct lh_prng prng;
    lh_prng_seed(&prng, 1);
    for (uint32_t count = 0; count <= COUNT; count++) {
        struct netsim_flow_list list = {.flows = flows, .count = count};
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; i++) {
            flows[i] = (struct netsim_flow_request){.bytes = i, .start_ps = lh_prng_below(&prng, 20)};
            sum += flows[i].start_ps * (i + 1);
        }
        netsim_flow_list_sort(&list, scratch);
        assert_true(netsim_flow_list_is_sorted(&list));
        for (uint32_t i = 0; i < count; i++) {
            sum -= flows[i].start_ps * (flows[i].bytes + 1);
            if (i > 0 && flows[i].start_ps == flows[i - 1].start_ps)
                assert_true(flows[i].bytes > flows[i - 1].bytes);
        }
        assert_true(sum == 0);
    }
}

static void test_is_sorted(void **state)
{
    (void)state;
    struct netsim_flow_request flows[] = {{.start_ps = 1}, {.start_ps = 1}, {.start_ps = 5}};
    struct netsim_flow_list list = {.flows = flows, .count = 3};
    assert_true(netsim_flow_list_is_sorted(&list));
    flows[2].start_ps = 0;
    assert_false(netsim_flow_list_is_sorted(&list));
    list.count = 2;
    assert_true(netsim_flow_list_is_sorted(&list));
    list.count = 0;
    assert_true(netsim_flow_list_is_sorted(&list));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sort_is_stable),
        cmocka_unit_test(test_is_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
