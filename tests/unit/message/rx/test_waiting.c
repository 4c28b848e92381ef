/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/rx/waiting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct store store;
static struct waiting waiting;
static struct message_request requests[8];

static int begin(void **state)
{
    (void)state;
    store_init(&store, UINT64_MAX);
    waiting = (struct waiting){0};
    return 0;
}

static int end(void **state)
{
    struct rx_receive receive;
    (void)state;
    while (waiting_pop(&waiting, &store, &receive))
        continue;
    waiting_give_back(&waiting, &store);
    assert_int_equal(waiting.count, 0);
    assert_int_equal(store_bytes(&store), 0);
    return 0;
}

static void add(uint32_t number, uint64_t tag, uint64_t ignore)
{
    const struct rx_receive receive = {.request = &requests[number], .tag = tag, .ignore = ignore};
    assert_true(waiting_hold(&waiting, &store));
    waiting_add(&waiting, &receive);
}

/* -1: none. */
static int take(uint64_t tag)
{
    struct rx_receive receive;
    return waiting_take(&waiting, &store, tag, &receive) ? (int)(receive.request - requests) : -1;
}

static void test_fits(void **state)
{
    (void)state;
    const struct rx_receive receive = {.tag = 0xF0, .ignore = 0x0F};
    assert_true(receive_fits(&receive, 0xF0));
    assert_true(receive_fits(&receive, 0xF7));
    assert_false(receive_fits(&receive, 0xE0));
    assert_false(receive_fits(&receive, 0xF0 | (uint64_t)1 << 63));
    assert_true(receive_fits(&(struct rx_receive){.ignore = UINT64_MAX}, 77));
}

static void test_the_first_that_fits(void **state)
{
    (void)state;
    add(0, 1, 0);
    add(1, 2, 0);
    add(2, 0, UINT64_MAX);
    add(3, 2, 0);
    assert_int_equal(take(2), 1);
    assert_int_equal(take(2), 2);
    assert_int_equal(take(2), 3);
    assert_int_equal(take(2), -1);
    add(4, 2, 0);
    assert_int_equal(take(1), 0);
    assert_int_equal(take(2), 4);
    assert_int_equal(waiting.count, 0);
    add(5, 3, 0);
    assert_int_equal(take(3), 5);
}

static void test_taken_out(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        add(i, 0, 0);
    assert_true(waiting_remove(&waiting, &store, &requests[3])); /* the last one */
    assert_true(waiting_remove(&waiting, &store, &requests[0]));
    assert_false(waiting_remove(&waiting, &store, &requests[0]));
    add(5, 0, 0);
    assert_int_equal(take(0), 1);
    assert_int_equal(take(0), 2);
    assert_int_equal(take(0), 5);
    assert_int_equal(take(0), -1);
}

static void test_no_memory(void **state)
{
    (void)state;
    store.limit_bytes = 1;
    assert_false(waiting_hold(&waiting, &store));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),
        cmocka_unit_test_setup_teardown(test_the_first_that_fits, begin, end),
        cmocka_unit_test_setup_teardown(test_taken_out, begin, end),
        cmocka_unit_test_setup_teardown(test_no_memory, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
