/*
 * test_fabric.c - what the layers above know of a peer over sockets, and of one with RoCE hardware.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "fabric/fabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fabric/udp/udp_state.h"

static void test_peer_traits(void **state)
{
    (void)state;
    const struct qp_info_endpoint sockets = {.fabric = QP_INFO_UDP}, hardware = {.fabric = QP_INFO_VERBS};
    struct fabric_peer_traits traits = endpoint_peer_traits(&sockets);
    assert_true(traits.may_be_translated && traits.shares_control_port && traits.drops_unread);
    traits = endpoint_peer_traits(&hardware);
    assert_false(traits.may_be_translated || traits.shares_control_port || traits.drops_unread);
}

static void test_udp_traits(void **state)
{
    (void)state;
    assert_true(fabric_udp_ops.outruns_path && fabric_udp_ops.local_is_direct);
    assert_ptr_equal(fabric_udp_ops.peer_traits, endpoint_peer_traits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer_traits),
        cmocka_unit_test(test_udp_traits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
