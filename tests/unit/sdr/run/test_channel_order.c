/*
 * test_channel_order.c - which channel is served next, and how far it may go.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "sdr/run/channel_order.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void check_next(struct channel_order *order, uint32_t expected)
{
    uint32_t channel;
    assert_true(channel_order_next(order, &channel));
    assert_int_equal(channel, expected);
}

static void check_end(struct channel_order *order)
{
    uint32_t channel;
    assert_false(channel_order_next(order, &channel));
}

static void test_without_fronts_by_index(void **state)
{
    (void)state;
    struct channel_order order;
    uint64_t bound;
    channel_order_init(&order, UINT32_C(1) << 31 | 1 << 4 | 1);
    check_next(&order, 0);
    assert_false(channel_order_bound(&order, 0, &bound));
    check_next(&order, 4);
    check_next(&order, 31);
    check_end(&order);
}

/* Also where the count of posts wraps, and with channels that have nothing. */
static void test_earliest_first(void **state)
{
    (void)state;
    struct channel_order order;
    channel_order_init(&order, 0xF);
    channel_order_set(&order, 1, true, 64);
    channel_order_set(&order, 2, true, UINT64_MAX - 63);
    channel_order_set(&order, 3, true, 0);
    check_next(&order, 2);
    check_next(&order, 3);
    check_next(&order, 1);
    check_next(&order, 0);
    check_end(&order);
}

/* A channel that was served is heeded as long as it has something left, unless it is blocked. */
static void test_bound(void **state)
{
    (void)state;
    struct channel_order order;
    uint64_t bound;
    channel_order_init(&order, 0x7);
    channel_order_set(&order, 0, true, 61);
    channel_order_set(&order, 1, true, 64);
    channel_order_set(&order, 2, true, 128);
    check_next(&order, 0);
    assert_true(channel_order_bound(&order, 0, &bound));
    assert_int_equal(bound, 64);
    channel_order_set(&order, 0, true, 192);
    check_next(&order, 1);
    assert_true(channel_order_bound(&order, 1, &bound));
    assert_int_equal(bound, 128);
    channel_order_set(&order, 1, false, 0);
    check_next(&order, 2);
    assert_true(channel_order_bound(&order, 2, &bound));
    assert_int_equal(bound, 192);
    channel_order_set(&order, 0, false, 0);
    assert_false(channel_order_bound(&order, 2, &bound));
    check_end(&order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_fronts_by_index),
        cmocka_unit_test(test_earliest_first),
        cmocka_unit_test(test_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
