/*
 * test_arrival_order.c - the examples of RFC 4737 section 6, by hand.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "model/arrival_order.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define PACKETS_MAX 16

static struct model_place places[PACKETS_MAX];

/* Arrivals 1 ms apart. */
static struct model_arrival_order order_of(uint32_t packets, const uint32_t *numbers, size_t count)
{
    struct model_arrival_order order;
    model_arrival_order_init(&order, places, packets);
    for (size_t i = 0; i < count; i++)
        model_arrival_order_add(&order, numbers[i], i * LH_NS_PER_MS);
    return order;
}

static void test_in_order(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(5, (uint32_t[]){0, 1, 3, 4}, 4);
    assert_int_equal(order.received, 4);
    assert_int_equal(order.reordered + order.duplicates + order.extent_max, 0);
    assert_true(model_arrival_order_has(&order, 3) && !model_arrival_order_has(&order, 2));
    assert_false(model_arrival_order_has(&order, 5));
}

/* One packet late by two places: 0 1 3 4 2. Only that one is reordered; the first that overtook it is 3. */
static void test_one_late(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(5, (uint32_t[]){0, 1, 3, 4, 2}, 5);
    assert_int_equal(order.received, 5);
    assert_int_equal(order.reordered, 1);
    assert_int_equal(order.extent_max, 2);
    assert_int_equal(order.extent_sum, 2);
    assert_int_equal(order.late_max_ns, 2 * LH_NS_PER_MS);
}

/* One packet early, 0 3 1 2: those that it passed are reordered, with extents 1 and 2. */
static void test_one_early(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(4, (uint32_t[]){0, 3, 1, 2}, 4);
    assert_int_equal(order.reordered, 2);
    assert_int_equal(order.extent_sum, 3);
    assert_int_equal(order.extent_max, 2);
}

static void test_duplicates_are_no_reordering(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(4, (uint32_t[]){0, 1, 0, 3, 1, 2, 2}, 7);
    assert_int_equal(order.received, 4);
    assert_int_equal(order.duplicates, 3);
    assert_int_equal(order.reordered, 1);
    assert_int_equal(order.extent_max, 1);
}

static void test_last_place_and_empty(void **state)
{
    (void)state;
    struct model_arrival_order order = order_of(PACKETS_MAX, (uint32_t[]){PACKETS_MAX - 1, 0}, 2);
    assert_int_equal(order.received, 2);
    assert_int_equal(order.extent_max, 1);
    order = order_of(0, NULL, 0);
    assert_false(model_arrival_order_has(&order, 0));
}

/* A clock that steps back must not make a packet late for ages. */
static void test_clock_goes_back(void **state)
{
    (void)state;
    struct model_arrival_order order;
    model_arrival_order_init(&order, places, 3);
    model_arrival_order_add(&order, 2, 100);
    model_arrival_order_add(&order, 1, 50);
    assert_int_equal(order.late_max_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_one_late),
        cmocka_unit_test(test_one_early),
        cmocka_unit_test(test_duplicates_are_no_reordering),
        cmocka_unit_test(test_last_place_and_empty),
        cmocka_unit_test(test_clock_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
