/* SPDX-License-Identifier: BSD-3-Clause */
#include "message/control/machine.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_grows_when_it_must(void **state)
{
    (void)state;
    struct store store;
    void *machine = NULL;
    uint32_t has = 0;
    store_init(&store, 6000);
    assert_true(machine_hold(&machine, &has, &store, 0));
    assert_null(machine);
    assert_true(machine_hold(&machine, &has, &store, 1));
    assert_int_equal(has, MACHINE_BYTES_LEAST);
    assert_int_equal((uintptr_t)machine % 64, 0);
    assert_true(machine_hold(&machine, &has, &store, 3000));
    assert_int_equal(has, 4096);
    void *before = machine;
    assert_true(machine_hold(&machine, &has, &store, 4096));
    assert_ptr_equal(machine, before);
    assert_false(machine_hold(&machine, &has, &store, 4097));
    assert_ptr_equal(machine, before);
    assert_int_equal(has, 4096);
    assert_int_equal(store_bytes(&store), 4096);
    store_give(&store, machine, has);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grows_when_it_must)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
