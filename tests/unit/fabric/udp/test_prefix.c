/*
 * test_prefix.c - the cached start of an iCRC is the computed one, for every IP ID, length and port, in any
 * order.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/udp/prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void check(struct icrc_flow *flow)
{
    static const uint32_t lengths[] = {60, 60, 4132, 61};
    static const uint16_t ports[] = {49152, 49153, 49153, 65535};
    struct udp_prefix prefix = {0};
    for (uint32_t i = 0; i < 4; i++) {
        flow->source_port = ports[i];
        for (uint32_t turn = 0; turn < 2; turn++) /* computed, then cached */
            for (uint32_t id = 0; id <= 2 * UINT8_MAX; id++) {
                uint32_t expected = icrc_begin(flow, lengths[i], flow->ipv4 ? (uint16_t)id : 0, true);
                assert_int_equal(udp_prefix_get(&prefix, flow, lengths[i], ports[i], id), expected);
            }
    }
}

static void test_ipv4(void **state)
{
    (void)state;
    struct icrc_flow flow = {.ipv4 = true};
    flow.source[0] = 192;
    check(&flow);
}

static void test_ipv6(void **state)
{
    (void)state;
    struct icrc_flow flow = {0};
    flow.source[15] = 1;
    check(&flow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ipv4), cmocka_unit_test(test_ipv6)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
