/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/eager/inbound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define US LH_NS_PER_US

static void arrive(struct inbound *inbound, uint8_t flags, uint32_t carrier, lh_time rtt, lh_time now)
{
    const struct eager_packet packet = {.flags = flags, .carrier = carrier};
    inbound_on_carrier(inbound, &packet, rtt, now);
}

static void test_counts_carriers(void **state)
{
    (void)state;
    struct inbound inbound = {0};
    arrive(&inbound, EAGER_HAS_ACK, 5, US, 0);
    assert_false(inbound.any || inbound.ack_wanted); /* it is none */
    arrive(&inbound, EAGER_HAS_ENTRIES, 0xFFFFFFFE, US, 0);
    arrive(&inbound, EAGER_HAS_ENTRIES, 1, US, 0);
    arrive(&inbound, EAGER_HAS_ENTRIES, 0xFFFFFFFF, US, 0);
    assert_int_equal(inbound.newest, 1);
    assert_int_equal(inbound.received, 3);
}

static void test_acknowledges_soon(void **state)
{
    (void)state;
    struct inbound inbound = {0};
    arrive(&inbound, EAGER_HAS_ENTRIES, 0, 40 * US, 100 * US);
    assert_true(inbound.ack_wanted);
    assert_int_equal(inbound.ack_at, 110 * US);
    arrive(&inbound, EAGER_HAS_ENTRIES, 1, 40 * US, 105 * US);
    assert_int_equal(inbound.ack_at, 110 * US);
    inbound_on_acknowledged(&inbound);
    assert_false(inbound.ack_wanted);
    arrive(&inbound, EAGER_HAS_ENTRIES, 2, 25000 * US, 200 * US);
    assert_int_equal(inbound.ack_at, 220 * US);
    arrive(&inbound, EAGER_PROBE, 3, 25000 * US, 210 * US);
    assert_int_equal(inbound.ack_at, 210 * US);
}

static void test_newest_message(void **state)
{
    (void)state;
    struct inbound inbound = {0};
    inbound_on_message(&inbound, 0xFFFFFFF0);
    assert_int_equal(inbound.seen_next, 0xFFFFFFF1);
    inbound_on_message(&inbound, 0xFFFFFFFF);
    assert_int_equal(inbound.seen_next, 0);
    inbound_on_message(&inbound, 0xFFFFFFF5);
    assert_int_equal(inbound.seen_next, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_carriers),
        cmocka_unit_test(test_acknowledges_soon),
        cmocka_unit_test(test_newest_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
